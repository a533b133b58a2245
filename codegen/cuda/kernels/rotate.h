// Rotary position embedding of one pair of a head's elements. `angles` holds rotary_dim / 2 cosines
// and then as many sines.
#ifndef TENON_CODEGEN_CUDA_KERNELS_ROTATE_H
#define TENON_CODEGEN_CUDA_KERNELS_ROTATE_H

#include "codegen/kernels/shapes.h"
#include "device.h"

namespace tk {

// Elements `low` and `high` of a head.
struct RotatedPair {
  int32_t low, high;
  float a, b;
};

TK_DEVICE RotatedPair rotatePair(int32_t style, int32_t rotaryDim, const float *x,
                                 const float *angles, int32_t i) {
  int32_t half = rotaryDim / 2;
  int32_t low = style == TK_ROPE_HALF ? i : 2 * i;
  int32_t high = style == TK_ROPE_HALF ? i + half : 2 * i + 1;
  float a = x[low], b = x[high], cosine = angles[i], sine = angles[half + i];
  return {low, high, a * cosine - b * sine, b * cosine + a * sine};
}

// Piece `i` of a head, of which there are headDim - rotaryDim / 2: pairs, then what is not rotated.
// store(d, value).
template <class Store>
TK_DEVICE void rotatePiece(int32_t style, int32_t rotaryDim, const float *x, const float *angles,
                           int32_t i, Store store) {
  int32_t half = rotaryDim / 2;
  if (i >= half) {
    store(i + half, x[i + half]);
    return;
  }
  RotatedPair pair = rotatePair(style, rotaryDim, x, angles, i);
  store(pair.low, pair.a);
  store(pair.high, pair.b);
}

} // namespace tk

#endif // TENON_CODEGEN_CUDA_KERNELS_ROTATE_H
