// Norm and rotation of heads, in two steps:
//
//   sumOfSquares(x)  ─▶  scale = 1 / sqrt(sum / head_dim + eps)  ─▶  scaleAndRotate(x, scale)
//
// so that 16 heads share the slow part, one square root and one division of vectors. Between the
// steps a head stays in the nearest cache; it is written once, rotated.
#ifndef QK_NORM_ROPE_H
#define QK_NORM_ROPE_H

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

TK_INLINE Vec scaleOf(Vec squares, int64_t headDim, float eps) {
  return 1.0f / __builtin_elementwise_sqrt(squares / (float)headDim + eps);
}

TK_INLINE void scaleAndRotate(int32_t style, int64_t rotaryDim, int64_t headDim, const float *x,
                              float scale, const float *weight, const float *angles, float *out) {
  int64_t half = rotaryDim / 2;
  if (style != TK_ROPE_HALF || rotaryDim != headDim || half % 16) {
    for (int64_t c = 0; c < headDim; c += 16) {
      int64_t n = least(16, headDim - c);
      store(out + c, load(x + c, n) * scale * load(weight + c, n), n);
    }
    return rotate(style, rotaryDim, headDim, out, angles, out);
  }
  for (int64_t i = 0; i < half; i += 16) {
    Vec a = load(x + i) * scale * load(weight + i);
    Vec b = load(x + half + i) * scale * load(weight + half + i);
    Vec cosine = load(angles + i), sine = load(angles + half + i);
    store(out + i, a * cosine - b * sine);
    store(out + half + i, b * cosine + a * sine);
  }
}

} // namespace

#endif // QK_NORM_ROPE_H
