// Activations of one float. A NaN stays one.
#ifndef TENON_CODEGEN_CUDA_KERNELS_ACTIVATION_H
#define TENON_CODEGEN_CUDA_KERNELS_ACTIVATION_H

#include "codegen/kernels/shapes.h"
#include "device.h"

namespace tk {

TK_DEVICE float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

// The normal distribution function. 1 + erf(x) would lose what is small far to the left, so this is
// the complementary error function's rational Chebyshev fit (relative error 1.2e-7, Numerical
// Recipes 6.2): erfc(z) = t · exp(-z² + P(t)), t = 1 / (1 + z / 2), z >= 0.
TK_DEVICE float normalCdf(float x) {
  float z = (x < 0 ? -x : x) * 0.707106781f;
  float t = 1.0f / (1.0f + 0.5f * z);
  float p = t * 0.17087277f - 0.82215223f;
  p = p * t + 1.48851587f;
  p = p * t - 1.13520398f;
  p = p * t + 0.27886807f;
  p = p * t - 0.18628806f;
  p = p * t + 0.09678418f;
  p = p * t + 0.37409196f;
  p = p * t + 1.00002368f;
  p = p * t - 1.26551223f;
  float tail = 0.5f * t * exponential(p - x * x * 0.5f);
  return x > 0 ? 1.0f - tail : tail;
}

TK_DEVICE float activate(int32_t kind, float x) {
  switch (kind) {
  case TK_ACT_RELU:
    return x < 0 ? 0 : x;
  case TK_ACT_RELU2: {
    float r = x < 0 ? 0 : x;
    return r * r;
  }
  case TK_ACT_SILU:
    return x / (1.0f + exponential(-x));
  case TK_ACT_GELU_ERF:
    return x * normalCdf(x);
  case TK_ACT_GELU_TANH: // 0.5 · x · (1 + tanh u) = x · sigmoid(2u)
    return x * sigmoid(1.59576912f * (x + 0.044715f * (x * x * x)));
  case TK_ACT_QUICK_GELU:
    return x * sigmoid(1.702f * x);
  case TK_ACT_SIGMOID:
    return sigmoid(x);
  case TK_ACT_TANH:
    return hyperbolicTangent(x);
  default:
    return x;
  }
}

} // namespace tk

#endif // TENON_CODEGEN_CUDA_KERNELS_ACTIVATION_H
