// Norms of one vector by a whole block.
#ifndef TENON_CODEGEN_CUDA_KERNELS_NORM_H
#define TENON_CODEGEN_CUDA_KERNELS_NORM_H

#include "reduce.h"

namespace tk {

// What a norm does to an element once its vector is known: (x - mean) · scale · w + b.
struct NormOfRow {
  float mean, scale;
};

TK_DEVICE float normed(int32_t kind, NormOfRow n, float x, float weight, float bias) {
  if (kind == TK_NORM_LAYER)
    x -= n.mean;
  if (kind == TK_NORM_RMS_PLUS_ONE)
    weight += 1.0f;
  return x * n.scale * weight + bias;
}

// sumOf(f) gives every thread the sum of f over the elements of the vector.
template <class SumOf>
TK_DEVICE NormOfRow measure(int32_t kind, float eps, int64_t cols, SumOf sumOf) {
  NormOfRow n = {0, 1};
  if (kind == TK_NORM_LAYER)
    n.mean = sumOf([](float x) { return x; }, 0) / (float)cols;
  float mean = n.mean;
  float squares = sumOf([mean](float x) { return (x - mean) * (x - mean); }, 1);
  n.scale = 1.0f / squareRoot(squares / (float)cols + eps);
  return n;
}

} // namespace tk

#endif // TENON_CODEGEN_CUDA_KERNELS_NORM_H
