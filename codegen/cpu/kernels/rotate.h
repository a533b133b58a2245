// Rotary position embedding of one head. `angles` holds rotary_dim / 2 cosines and then as many
// sines.
#ifndef TENON_KERNELS_ROTATE_H
#define TENON_KERNELS_ROTATE_H

#include "isa.h"

namespace {

// out may be x.
TK_INLINE void rotate(int32_t style, int64_t rotaryDim, int64_t headDim, const float *x,
                      const float *angles, float *out) {
  int64_t half = rotaryDim / 2;
  for (int64_t i = 0; i < half; i += 16) {
    int64_t n = least(16, half - i);
    Vec cosine = load(angles + i, n), sine = load(angles + half + i, n), a, b;
    if (style == TK_ROPE_HALF) {
      a = load(x + i, n);
      b = load(x + half + i, n);
    } else {
      Vec first = load(x + 2 * i, 2 * n), second = load(x + 2 * i + 16, 2 * n - 16);
      a = __builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26,
                                  28, 30);
      b = __builtin_shufflevector(first, second, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27,
                                  29, 31);
    }
    Vec u = a * cosine - b * sine, v = b * cosine + a * sine;
    if (style == TK_ROPE_HALF) {
      store(out + i, u, n);
      store(out + half + i, v, n);
    } else {
      store(out + 2 * i,
            __builtin_shufflevector(u, v, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
            2 * n);
      store(out + 2 * i + 16,
            __builtin_shufflevector(u, v, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                    31),
            2 * n - 16);
    }
  }
  if (out != x)
    for (int64_t i = rotaryDim; i < headDim; i += 16)
      store(out + i, load(x + i, least(16, headDim - i)), least(16, headDim - i));
}

} // namespace

#endif // TENON_KERNELS_ROTATE_H
