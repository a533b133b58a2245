// From the product of a query and a key to a term of the softmax; products of 16-bit elements.
#ifndef TENON_CODEGEN_CUDA_KERNELS_SCORE_H
#define TENON_CODEGEN_CUDA_KERNELS_SCORE_H

#include "cache.h"
#include "reduce.h"

namespace tk {

TK_DEVICE float negativeInfinity() { return bitsToFloat(0xff800000u); }

// A score with what comes behind its scale. `bias` is the row of the query's head.
TK_DEVICE float capAndBias(const tk_attention_shape &s, float score, const float *bias, int32_t key,
                           int32_t query) {
  if (s.softcap != 0)
    score = s.softcap * hyperbolicTangent(score / s.softcap);
  if (!s.bias)
    return score;
  int32_t entry = key + s.bias_origin - (s.bias == TK_BIAS_DISTANCE ? query : 0);
  return score + bias[entry < 0 ? 0 : entry < s.bias_length ? entry : s.bias_length - 1];
}

// The softmax's denominator: a sink is one more score.
TK_DEVICE float addSink(const float *sinks, int64_t head, float max, float sum) {
  return sinks ? sum + exponential(sinks[head] - max) : sum;
}
TK_DEVICE float divided(float sum, float total) { return total == 0 ? 0 : sum / total; }

TK_DEVICE void multiplyShort(int32_t dtype, float (&c)[4], const uint32_t (&a)[4],
                             const uint32_t (&b)[2]) {
  if (dtype == TENON_F16)
    mmaHalf(c, a, b);
  else
    mmaBf16(c, a, b);
}

// The lower, or upper, halves of two words.
TK_DEVICE uint32_t lowHalves(uint32_t a, uint32_t b) { return (a & 0xffff) | b << 16; }
TK_DEVICE uint32_t highHalves(uint32_t a, uint32_t b) { return a >> 16 | (b & 0xffff0000u); }

} // namespace tk

#endif // TENON_CODEGEN_CUDA_KERNELS_SCORE_H
