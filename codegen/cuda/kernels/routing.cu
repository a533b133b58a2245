// Choosing experts and weighing them: tk_top_k, tk_gather_columns, tk_combine; and tk_join_heads,
// tk_slice_heads. A row for each y.
#include "reduce.h"

namespace tk {

// The first place of the largest of `count` scores, which is then made the smallest; by one warp.
// A NaN is no score.
TK_DEVICE int64_t takeLargest(float *scores, int64_t count) {
  float best = -tk::infinity();
  int32_t at = int32_t(count);
  for (int64_t i = lane(); i < count; i += 32)
    if (scores[i] > best || (scores[i] == best && at == count)) {
      best = scores[i];
      at = int32_t(i);
    }
  TK_UNROLL
  for (int mask = 16; mask > 0; mask /= 2) {
    float other = shuffleXor(best, mask);
    int32_t place = shuffleXor(at, mask);
    if (other > best || (other == best && place < at)) {
      best = other;
      at = place;
    }
  }
  at = least(at, int32_t(count - 1));
  syncWarp();
  if (lane() == 0)
    scores[at] = -tk::infinity();
  syncWarp();
  return at;
}

// The score of a group of columns.
TK_DEVICE float judge(int32_t kind, const float *x, int64_t cols) {
  float first = -tk::infinity(), second = first;
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

} // namespace tk

// A warp for each row; its scores are in shared memory, and those of the groups behind them.
TK_DEVICE void tk_top_k(const tk_top_k_shape &s, const tk_args &args) {
  const float *x = (const float *)args.io[0] + tk::blockY() * s.x_stride;
  const float *bias = (const float *)args.io[1];
  float *out = (float *)args.io[s.bias ? 2 : 1] + tk::blockY() * s.out_stride;
  float *scores = (float *)tk::shared(), *groups = scores + s.cols;
  const float chosen = tk::notANumber(); // is not found again
  for (int64_t c = tk::lane(); c < s.cols; c += 32)
    scores[c] = s.bias ? x[c] + bias[c] : x[c];
  tk::syncWarp();
  if (s.groups > 1) {
    int64_t size = s.cols / s.groups;
    for (int64_t g = tk::lane(); g < s.groups; g += 32)
      groups[g] = tk::judge(s.group_score, scores + g * size, size);
    tk::syncWarp();
    for (int64_t i = 0; i < s.top_groups; ++i) {
      int64_t g = tk::takeLargest(groups, s.groups);
      if (tk::lane() == 0)
        groups[g] = chosen;
      tk::syncWarp();
    }
    for (int64_t c = tk::lane(); c < s.cols; c += 32)
      if (groups[c / size] == groups[c / size])
        scores[c] = -tk::infinity();
    tk::syncWarp();
  }
  for (int64_t k = 0; k < s.count; ++k) {
    int64_t c = tk::takeLargest(scores, s.cols);
    if (tk::lane() == 0)
      out[k] = (float)c;
  }
}

// A number beyond the columns stands for the nearest one.
TK_DEVICE void tk_gather_columns(const tk_slots_shape &s, const tk_args &args) {
  const float *x = (const float *)args.io[0] + tk::blockY() * s.x_stride;
  const float *y = (const float *)args.io[1] + tk::blockY() * s.y_stride;
  float *out = (float *)args.io[2] + tk::blockY() * s.out_stride;
  for (int64_t k = tk::threadIndex(); k < s.slots; k += tk::threadCount()) {
    float last = (float)(s.cols - 1);
    out[k] = x[y[k] > 0 ? (int64_t)(y[k] < last ? y[k] : last) : 0];
  }
}

TK_DEVICE void tk_combine(const tk_slots_shape &s, const tk_args &args) {
  const float *x = (const float *)args.io[0] + tk::blockY() * s.x_stride;
  const float *y = (const float *)args.io[1] + tk::blockY() * s.y_stride;
  float *out = (float *)args.io[2] + tk::blockY() * s.out_stride;
  int64_t step = tk::gridX() * tk::threadCount();
  for (int64_t c = tk::blockX() * tk::threadCount() + tk::threadIndex(); c < s.cols; c += step) {
    float sum = 0;
    for (int64_t k = 0; k < s.slots; ++k)
      sum += x[k * s.cols + c] * y[k];
    out[c] = sum;
  }
}

TK_DEVICE void tk_join_heads(const tk_heads_shape &s, const tk_args &args) {
  const float *a = (const float *)args.io[0] + tk::blockY() * s.a_stride;
  const float *b = (const float *)args.io[1] + tk::blockY() * s.b_stride;
  float *out = (float *)args.io[2] + tk::blockY() * s.out_stride;
  int64_t dim = s.a_dim + s.b_dim, step = tk::gridX() * tk::threadCount();
  for (int64_t c = tk::blockX() * tk::threadCount() + tk::threadIndex(); c < s.heads * dim;
       c += step) {
    int64_t head = c / dim, i = c % dim;
    out[c] = i < s.a_dim ? a[head * s.a_dim + i] : b[head * s.b_dim + i - s.a_dim];
  }
}

TK_DEVICE void tk_slice_heads(const tk_heads_shape &s, const tk_args &args) {
  const float *a = (const float *)args.io[0] + tk::blockY() * s.a_stride + s.first;
  float *out = (float *)args.io[1] + tk::blockY() * s.out_stride;
  int64_t step = tk::gridX() * tk::threadCount();
  for (int64_t c = tk::blockX() * tk::threadCount() + tk::threadIndex(); c < s.heads * s.out_dim;
       c += step)
    out[c] = a[c / s.out_dim * s.a_dim + c % s.out_dim];
}
