// Norms of one row, written to a contiguous buffer or in place.
#ifndef TENON_KERNELS_NORM_H
#define TENON_KERNELS_NORM_H

#include "isa.h"

namespace {

// Adds up f(16 elements, how many of them count) over a row.
template <class F> TK_INLINE float sumOver(int64_t cols, F f) {
  Vec acc[4] = {0, 0, 0, 0};
  int64_t c = 0;
  for (; c + 64 <= cols; c += 64)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      acc[i] += f(c + 16 * i, 16);
  for (; c < cols; c += 16)
    acc[0] += f(c, least(16, cols - c));
  return sum((acc[0] + acc[1]) + (acc[2] + acc[3]));
}

// out = norm(x); `bias` is null unless the norm has one. out may be x.
TK_INLINE void normalise(int32_t kind, float eps, int64_t cols, const float *x, const float *weight,
                         const float *bias, float *out) {
  float mean = 0;
  if (kind == TK_NORM_LAYER)
    mean = sumOver(cols, [=](int64_t c, int64_t n) { return load(x + c, n); }) / (float)cols;
  float squares = sumOver(cols, [=](int64_t c, int64_t n) {
    Vec v = load(x + c, n);
    if (kind == TK_NORM_LAYER) {
      Vec centred = v - mean;
      for (int64_t i = n; i < 16; ++i)
        centred[i] = 0;
      v = centred;
    }
    return v * v;
  });
  float scale = 1.0f / __builtin_sqrtf(squares / (float)cols + eps);
  for (int64_t c = 0; c < cols; c += 16) {
    int64_t n = least(16, cols - c);
    Vec v = load(x + c, n), w = load(weight + c, n);
    if (kind == TK_NORM_LAYER)
      v = v - mean;
    if (kind == TK_NORM_RMS_PLUS_ONE)
      w = w + 1.0f;
    v = v * scale * w;
    if (bias)
      v = v + load(bias + c, n);
    store(out + c, v, n);
  }
}

} // namespace

#endif // TENON_KERNELS_NORM_H
