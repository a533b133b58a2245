// Sums and maxima of a warp and of a block, always formed in the same order; how many rows a kernel
// has.
#ifndef TENON_CODEGEN_CUDA_KERNELS_REDUCE_H
#define TENON_CODEGEN_CUDA_KERNELS_REDUCE_H

#include "codegen/kernels/shapes.h"
#include "device.h"

namespace tk {

TK_DEVICE int64_t countRows(int32_t rows, const tk_args &args) {
  return rows == TK_ROWS_SCORED ? args.batch->scored : args.batch->tokens;
}

template <typename T> TK_DEVICE T least(T a, T b) { return a < b ? a : b; }

// A NaN of b's is kept, one of a's is not.
TK_DEVICE float greater(float a, float b) { return a > b ? a : b; }

// Every lane gets the result.
template <typename T> TK_DEVICE T warpSum(T v) {
  TK_UNROLL
  for (int mask = 16; mask > 0; mask /= 2)
    v += shuffleXor(v, mask);
  return v;
}
TK_DEVICE float warpMax(float v) {
  TK_UNROLL
  for (int mask = 16; mask > 0; mask /= 2)
    v = greater(v, shuffleXor(v, mask));
  return v;
}

// Every thread sees the sum of each warp in `space`, shared memory which is free again behind the
// next barrier.
template <typename T> TK_DEVICE void warpSums(T v, T *space) {
  v = warpSum(v);
  if (lane() == 0)
    space[warp()] = v;
  sync();
}
// Every thread gets the result.
template <typename T> TK_DEVICE T blockSum(T v, T *space) {
  warpSums(v, space);
  T sum = 0;
  for (int i = 0; i < warps(); ++i)
    sum += space[i];
  return sum;
}
TK_DEVICE float blockMax(float v, float *space) {
  v = warpMax(v);
  if (lane() == 0)
    space[warp()] = v;
  sync();
  float largest = space[0];
  for (int i = 1; i < warps(); ++i)
    largest = greater(space[i], largest);
  return largest;
}

} // namespace tk

#endif // TENON_CODEGEN_CUDA_KERNELS_REDUCE_H
