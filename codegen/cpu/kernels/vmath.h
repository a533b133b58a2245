// Elementary functions on 16 floats, and sine and cosine on 8 doubles. Straight-line code: no
// tables, no libm. Relative errors are about 1e-7 (exp) to 1e-6; a NaN stays a NaN.
#ifndef TENON_KERNELS_VMATH_H
#define TENON_KERNELS_VMATH_H

#include "isa.h"

namespace {

// e^x = 2^n · e^r with |r| <= ln 2 / 2; 0 far below, at most e^88.
TK_INLINE Vec exponential(Vec x) {
  constexpr float Least = TK_LANES == 16 ? -150.0f : -87.3f; // far enough for scalef to give 0
  Vec bounded = x > 88.0f ? 88.0f : x;
  bounded = bounded < Least ? Least : bounded;
  const float magic = 0x1.8p23f; // adding it rounds to an integer
  Vec shifted = bounded * 1.44269504f + magic;
  Vec n = shifted - magic;
  Vec r = bounded - n * 0x1.62e4p-1f;
  r = r - n * 0x1.7f7d1cp-20f;
  Vec p = r * 0x1.6d769ap-10f + 0x1.12711p-7f;
  p = p * r + 0x1.5554acp-5f;
  p = p * r + 0x1.555402p-3f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
#if TK_LANES == 16
  return __builtin_bit_cast(
      Vec, _mm512_scalef_ps(__builtin_bit_cast(__m512, p), __builtin_bit_cast(__m512, n)));
#else
  IVec exponent = (bitsOf(shifted) - (int32_t)bitsOf(magic) + 127) << 23;
  Vec value = p * floatOf(exponent);
  return x < -87.3f ? 0.0f : value;
#endif
}

// The same for x <= 0 and a result that bf16 will round 50 times as coarsely: 2^n · 2^r with |r| <=
// 1/2, to 7.5e-5.
TK_INLINE Vec exponentialForBf16(Vec x) {
#if TK_LANES == 16
  Vec bounded = x < -150.0f ? -150.0f : x;
  const float magic = 0x1.8p23f;
  Vec n = (bounded * 1.44269504f + magic) - magic;
  Vec r = bounded * 1.44269504f - n;
  Vec p = r * 0x1.c3f75ep-5f + 0x1.f0de1ap-3f;
  p = p * r + 0x1.62f31ap-1f;
  p = p * r + 0x1.fff692p-1f;
  return __builtin_bit_cast(
      Vec, _mm512_scalef_ps(__builtin_bit_cast(__m512, p), __builtin_bit_cast(__m512, n)));
#else
  return exponential(x);
#endif
}

// 1 / x of 1 <= |x| < 2^126, to its last bit or two.
TK_INLINE Vec reciprocal(Vec x) {
#if TK_LANES == 16
  Vec r = __builtin_bit_cast(Vec, _mm512_rcp14_ps(__builtin_bit_cast(__m512, x)));
  return r + r * (1.0f - x * r);
#else
  return 1.0f / x;
#endif
}

TK_INLINE Vec sigmoid(Vec x) { return reciprocal(1.0f + exponential(-x)); }

TK_INLINE Vec hyperbolicTangent(Vec x) {
  Vec square = x * x;
  Vec p = square * 0x1.664f48p-6f - 0x1.ba1ba2p-5f; // 62/2835, 17/315
  p = p * square + 0x1.111112p-3f;
  p = p * square - 0x1.555556p-2f;
  Vec small = x + x * (p * square);
  Vec large = 1.0f - 2.0f / (1.0f + exponential(2.0f * x));
  return square < 0.0625f ? small : large;
}

// The normal distribution function, by the complementary error function's rational Chebyshev fit
// (relative error 1.2e-7, Numerical Recipes 6.2): erfc(z) = t · exp(-z² + P(t)), t = 1 / (1 + z /
// 2), z >= 0.
TK_INLINE Vec normalCdf(Vec x) {
  Vec z = floatOf(bitsOf(x) & 0x7fffffff) * 0.707106781f;
  Vec t = 1.0f / (1.0f + 0.5f * z);
  Vec p = t * 0.17087277f - 0.82215223f;
  p = p * t + 1.48851587f;
  p = p * t - 1.13520398f;
  p = p * t + 0.27886807f;
  p = p * t - 0.18628806f;
  p = p * t + 0.09678418f;
  p = p * t + 0.37409196f;
  p = p * t + 1.00002368f;
  p = p * t - 1.26551223f;
  // x² / 2 is exact to more than one float: its rounding error would show as a relative error of
  // e^-x²/2.
  Vec square = x * x * 0.5f;
  Vec lost = x * 0.5f * x - square;
  Vec tail = 0.5f * t * (exponential(p - square) * (1.0f - lost));
  return x > 0.0f ? 1.0f - tail : tail;
}

TK_INLINE Vec activate(int32_t kind, Vec x) {
  switch (kind) {
  case TK_ACT_RELU:
    return x < 0.0f ? 0.0f : x;
  case TK_ACT_RELU2: {
    Vec r = x < 0.0f ? 0.0f : x;
    return r * r;
  }
  case TK_ACT_SILU:
    return x * sigmoid(x);
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

// ── angles ─────────────────────────────────────────────────────────────────────────────────────

typedef double DVec __attribute__((ext_vector_type(8)));
typedef int64_t LVec __attribute__((ext_vector_type(8)));

// Sine and cosine of an angle up to about 2^20, exact to double precision's last digits: the angle
// is brought to [-π/4, π/4] with π/2 in two parts, where the Taylor series ends below 1e-15.
TK_INLINE void sineCosine(DVec angle, DVec &sine, DVec &cosine) {
  const double magic = 0x1.8p52;
  DVec shifted = angle * 0x1.45f306dc9c883p-1 + magic; // 2/π
  DVec n = shifted - magic;
  LVec quadrant = __builtin_bit_cast(LVec, shifted);
  DVec r = angle - n * 0x1.921fb544p+0; // 34 bits of π/2: n · them is exact
  r = r - n * 0x1.0b4611a626331p-34;
  DVec q = r * r;
  DVec s = q * (1.0 / 6227020800.0) - 1.0 / 39916800.0;
  s = s * q + 1.0 / 362880.0;
  s = s * q - 1.0 / 5040.0;
  s = s * q + 1.0 / 120.0;
  s = s * q - 1.0 / 6.0;
  s = r + r * q * s;
  DVec c = q * (-1.0 / 87178291200.0) + 1.0 / 479001600.0;
  c = c * q - 1.0 / 3628800.0;
  c = c * q + 1.0 / 40320.0;
  c = c * q - 1.0 / 720.0;
  c = c * q + 1.0 / 24.0;
  c = c * q - 0.5;
  c = c * q + 1.0;
  LVec odd = -(quadrant & 1);
  LVec sBits = __builtin_bit_cast(LVec, s), cBits = __builtin_bit_cast(LVec, c);
  LVec sineBits = (sBits & ~odd) | (cBits & odd);
  LVec cosineBits = (cBits & ~odd) | (sBits & odd);
  sineBits ^= (quadrant & 2) << 62;
  cosineBits ^= ((quadrant + 1) & 2) << 62;
  sine = __builtin_bit_cast(DVec, sineBits);
  cosine = __builtin_bit_cast(DVec, cosineBits);
}

} // namespace

#endif // TENON_KERNELS_VMATH_H
