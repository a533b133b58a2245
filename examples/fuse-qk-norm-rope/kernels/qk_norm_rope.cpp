// qk_norm_rope: rows over threads, or heads when there are few rows. Heads are taken 16 at a time,
// in two steps:
//
//   sumOfSquares(x)  ─▶  scale = 1 / sqrt(sum / head_dim + eps)  ─▶  scaleAndRotate(x, scale)
//
// so that they share the slow part, one square root and one division of vectors. Between the steps
// they stay in the nearest cache; they are written once, rotated.
#include "kernels/shapes.h"
#include "norm.h"
#include "rotate.h"

namespace {

TK_INLINE float sumOfSquares(const float *x, int64_t headDim) {
  return sumOver(headDim, [=](int64_t c, int64_t n) {
    Vec v = load(x + c, n);
    return v * v;
  });
}

TK_INLINE void scaleAndRotate(int32_t style, int64_t rotaryDim, int64_t headDim, const float *x,
                              float scale, const float *weight, const float *angles, float *out) {
  if (style != TK_ROPE_HALF || rotaryDim != headDim) {
    for (int64_t c = 0; c < headDim; c += 16) {
      int64_t n = least(16, headDim - c);
      store(out + c, load(x + c, n) * scale * load(weight + c, n), n);
    }
    return rotate(style, rotaryDim, headDim, out, angles, out);
  }
  int64_t half = headDim / 2;
  for (int64_t i = 0; i < half; i += 16) {
    int64_t n = least(16, half - i);
    Vec a = load(x + i, n) * scale * load(weight + i, n);
    Vec b = load(x + half + i, n) * scale * load(weight + half + i, n);
    Vec cosine = load(angles + i, n), sine = load(angles + half + i, n);
    store(out + i, a * cosine - b * sine, n);
    store(out + half + i, b * cosine + a * sine, n);
  }
}

// Some heads of one token.
TK_INLINE void normRope(const qk_norm_rope_shape &s, float eps, Range heads, const float *x,
                        const float *weight, const float *angles, float *out) {
  for (int64_t begin = heads.begin; begin < heads.end; begin += 16) {
    int64_t end = least(begin + 16, heads.end);
    float scale[16] = {};
    for (int64_t h = begin; h < end; ++h)
      scale[h - begin] = sumOfSquares(x + h * s.head_dim, s.head_dim);
    store(scale, 1.0f / __builtin_elementwise_sqrt(load(scale) / (float)s.head_dim + eps));
    for (int64_t h = begin; h < end; ++h)
      scaleAndRotate(s.style, s.rotary_dim, s.head_dim, x + h * s.head_dim, scale[h - begin],
                     weight, angles, out + h * s.head_dim);
  }
}

} // namespace

TK_KERNEL(qk_norm_rope) {
  const auto &s = *(const qk_norm_rope_shape *)shape;
  int64_t tokens = env->batch->tokens;
  bool byRow = tokens >= env->threads;
  Range rows = byRow ? shareOf(tokens, env) : Range{0, tokens};
  auto run = [&](const qk_rows &set, int64_t row, const void *x, const void *weight,
                 void *out) __attribute__((always_inline)) {
    normRope(s, set.eps, byRow ? Range{0, set.heads} : shareOf(set.heads, env),
             (const float *)x + row * set.x_stride, (const float *)weight,
             (const float *)io[2] + row * s.angles_stride, (float *)out + row * set.out_stride);
  };
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    run(s.first, row, io[0], io[1], io[3]);
    if (s.second.heads)
      run(s.second, row, io[4], io[5], io[6]);
  }
}
