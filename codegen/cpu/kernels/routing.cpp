// Choosing experts and weighing them: tk_softmax, tk_normalise, tk_top_k, tk_gather_columns,
// tk_combine; and tk_join_heads, tk_slice_heads. Rows over threads.
#include "vmath.h"

namespace {

constexpr float LeastFloat = -__builtin_inff();

// A column by its number in f32; numbers beyond the columns stand for the nearest one.
TK_INLINE int64_t columnOf(float number, int64_t cols) {
  return number > 0 ? least((int64_t)(number < 1e9f ? number : 1e9f), cols - 1) : 0;
}

// Calls f(row) for this thread's rows.
template <class F> TK_INLINE void forEachRow(int32_t rows, const tenon_env *env, F f) {
  Range share = shareOf(countRows(rows, env), env);
  for (int64_t r = share.begin; r < share.end; ++r)
    f(r);
}

TK_INLINE Vec loadOr(const float *p, int64_t n, float other) {
  if (n >= 16)
    return load(p);
  Vec v = other;
  for (int64_t i = 0; i < n; ++i)
    v[i] = p[i];
  return v;
}

TK_INLINE float largestOf(const float *x, int64_t cols) {
  Vec largest = LeastFloat;
  for (int64_t c = 0; c < cols; c += 16)
    largest = greater(loadOr(x + c, cols - c, LeastFloat), largest);
  return __builtin_reduce_max(largest);
}

TK_INLINE float sumOf(const float *x, int64_t cols) {
  Vec total = 0;
  for (int64_t c = 0; c < cols; c += 16)
    total = total + load(x + c, least(16, cols - c));
  return sum(total);
}

TK_INLINE void divide(const float *x, int64_t cols, float by, float *out) {
  for (int64_t c = 0; c < cols; c += 16) {
    int64_t n = least(16, cols - c);
    store(out + c, load(x + c, n) / by, n);
  }
}

TK_INLINE void copy(const float *x, int64_t count, float *out) {
  for (int64_t c = 0; c < count; c += 16) {
    int64_t n = least(16, count - c);
    store(out + c, load(x + c, n), n);
  }
}

// The score of a group of columns.
TK_INLINE float judge(int32_t kind, const float *x, int64_t cols) {
  float first = LeastFloat, second = LeastFloat;
  for (int64_t c = 0; c < cols; ++c) {
    if (x[c] > first) {
      second = first;
      first = x[c];
    } else if (x[c] > second) {
      second = x[c];
    }
  }
  return kind == TK_GROUP_LARGEST ? first : first + second;
}

// The first column of the largest element.
TK_INLINE int64_t takeLargest(float *x, int64_t cols) {
  float largest = largestOf(x, cols);
  int64_t c = 0;
  while (c + 1 < cols && !(x[c] == largest))
    ++c;
  x[c] = LeastFloat;
  return c;
}

} // namespace

TK_KERNEL(tk_softmax) {
  const auto &s = *(const tk_unary_shape *)shape;
  forEachRow(s.rows, env, [&](int64_t r) {
    const float *x = (const float *)io[0] + r * s.x_stride;
    float *out = (float *)io[1] + r * s.out_stride;
    float largest = largestOf(x, s.cols);
    for (int64_t c = 0; c < s.cols; c += 16) {
      int64_t n = least(16, s.cols - c);
      store(out + c, exponential(load(x + c, n) - largest), n);
    }
    divide(out, s.cols, sumOf(out, s.cols), out);
  });
}

TK_KERNEL(tk_normalise) {
  const auto &s = *(const tk_unary_shape *)shape;
  forEachRow(s.rows, env, [&](int64_t r) {
    const float *x = (const float *)io[0] + r * s.x_stride;
    divide(x, s.cols, sumOf(x, s.cols), (float *)io[1] + r * s.out_stride);
  });
}

TK_KERNEL(tk_top_k) {
  const auto &s = *(const tk_top_k_shape *)shape;
  const float *bias = s.bias ? (const float *)io[1] : nullptr;
  float *scores = (float *)env->scratch, *groups = scores + tk_round_up(s.cols, 16);
  int64_t size = s.cols / s.groups;
  forEachRow(s.rows, env, [&](int64_t r) {
    const float *x = (const float *)io[0] + r * s.x_stride;
    float *out = (float *)io[s.bias ? 2 : 1] + r * s.out_stride;
    for (int64_t c = 0; c < s.cols; ++c)
      scores[c] = s.bias ? x[c] + bias[c] : x[c];
    if (s.groups > 1) {
      for (int64_t g = 0; g < s.groups; ++g)
        groups[g] = judge(s.group_score, scores + g * size, size);
      for (int64_t i = 0; i < s.top_groups; ++i)
        groups[takeLargest(groups, s.groups)] = __builtin_nanf(""); // is searched
      for (int64_t c = 0; c < s.cols; ++c)
        if (groups[c / size] == groups[c / size])
          scores[c] = LeastFloat;
    }
    for (int64_t k = 0; k < s.count; ++k)
      out[k] = (float)takeLargest(scores, s.cols);
  });
}

TK_KERNEL(tk_gather_columns) {
  const auto &s = *(const tk_slots_shape *)shape;
  forEachRow(s.rows, env, [&](int64_t r) {
    const float *x = (const float *)io[0] + r * s.x_stride;
    const float *y = (const float *)io[1] + r * s.y_stride;
    float *out = (float *)io[2] + r * s.out_stride;
    for (int64_t k = 0; k < s.slots; ++k)
      out[k] = x[columnOf(y[k], s.cols)];
  });
}

// Columns over threads when there are few rows.
TK_KERNEL(tk_combine) {
  const auto &s = *(const tk_slots_shape *)shape;
  int64_t rows = countRows(s.rows, env), pieces = (s.cols + 15) / 16;
  Range share = shareOf(rows * pieces, env);
  for (int64_t i = share.begin; i < share.end; ++i) {
    int64_t r = i / pieces, c = i % pieces * 16, n = least(16, s.cols - c);
    const float *x = (const float *)io[0] + r * s.x_stride + c;
    const float *y = (const float *)io[1] + r * s.y_stride;
    Vec total = 0;
    for (int64_t k = 0; k < s.slots; ++k)
      total = total + load(x + k * s.cols, n) * y[k];
    store((float *)io[2] + r * s.out_stride + c, total, n);
  }
}

TK_KERNEL(tk_join_heads) {
  const auto &s = *(const tk_heads_shape *)shape;
  forEachRow(s.rows, env, [&](int64_t r) {
    float *out = (float *)io[2] + r * s.out_stride;
    for (int64_t h = 0; h < s.heads; ++h, out += s.a_dim + s.b_dim) {
      copy((const float *)io[0] + r * s.a_stride + h * s.a_dim, s.a_dim, out);
      copy((const float *)io[1] + r * s.b_stride + h * s.b_dim, s.b_dim, out + s.a_dim);
    }
  });
}

TK_KERNEL(tk_slice_heads) {
  const auto &s = *(const tk_heads_shape *)shape;
  forEachRow(s.rows, env, [&](int64_t r) {
    for (int64_t h = 0; h < s.heads; ++h)
      copy((const float *)io[0] + r * s.a_stride + h * s.a_dim + s.first, s.out_dim,
           (float *)io[1] + r * s.out_stride + h * s.out_dim);
  });
}
