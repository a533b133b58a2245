// Arithmetic over one row of logits, fast enough to be nothing beside a decode step.
#ifndef TENON_RUNTIME_ROWMATH_H
#define TENON_RUNTIME_ROWMATH_H

#include <cstdint>

namespace tenon::rt {

// The largest value; NaN never wins. Minus infinity when there is none.
float maximum(const float *values, int count);
// The lowest index of the largest value; 0 when there is none.
int32_t argmax(const float *values, int count);
// values[i] = exp((values[i] - best) * scale), for `best` their maximum; returns the sum. Relative
// error about 1e-6 and never less than 1e-38.
double expRelative(float *values, int count, float best, float scale);
// log(sum(exp(values))), accurate to about 1e-6.
double logSumExp(const float *values, int count);
// Log-probability of `id` by the model itself, before penalties and temperature.
inline double logProbability(const float *logits, int vocab, int32_t id) {
  return double(logits[id]) - logSumExp(logits, vocab);
}

} // namespace tenon::rt

#endif // TENON_RUNTIME_ROWMATH_H
