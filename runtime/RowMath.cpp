#include "runtime/RowMath.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace tenon::rt {

static constexpr float infinity = std::numeric_limits<float>::infinity();

// Each function exists for several instruction sets; the loader takes the best that the CPU has.
#if defined(__x86_64__)
#define TENON_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TENON_CLONES
#endif
#define TENON_INLINE static inline __attribute__((always_inline))

// 16 lanes at once, in the compiler's vector extension.
using Lanes = float __attribute__((vector_size(64)));
using IntLanes = int32_t __attribute__((vector_size(64)));
static constexpr int laneCount = 16;

TENON_INLINE void load(Lanes &lanes, const float *from) { std::memcpy(&lanes, from, sizeof lanes); }

TENON_CLONES static float maximumOf(const float *values, int count) {
  Lanes best = Lanes{} - infinity;
  int i = 0;
  for (; i + laneCount <= count; i += laneCount) {
    Lanes lanes;
    load(lanes, values + i);
    best = lanes > best ? lanes : best;
  }
  float result = -infinity;
  for (int lane = 0; lane < laneCount; ++lane)
    result = std::max(result, best[lane]);
  for (; i < count; ++i)
    result = values[i] > result ? values[i] : result;
  return result;
}

int32_t argmax(const float *values, int count) {
  const float *found = std::find(values, values + count, maximum(values, count));
  return found == values + count ? 0 : static_cast<int32_t>(found - values);
}

// exp(x) for x <= 0: 2^n * e^r with |r| <= ln(2) / 2, e^r by its Taylor polynomial.
TENON_INLINE void expOfNegative(Lanes &x) {
  const Lanes lowest = Lanes{} - 87.0f;
  x = x > lowest ? x : lowest;
  const float round = 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer
  Lanes shifted = x * 1.44269504f + round;
  Lanes n = shifted - round;
  Lanes r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f; // ln(2) in two parts
  Lanes p = r * (1.0f / 720) + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  IntLanes bits, scale;
  std::memcpy(&bits, &p, sizeof bits);
  std::memcpy(&scale, &shifted, sizeof scale);
  bits += scale << 23; // n sits in the low bits of `shifted`
  std::memcpy(&x, &bits, sizeof x);
}

// A running sum: short ones in float, one for each lane, long ones in double.
namespace {
struct Sum {
  double total;
  Lanes partial;
  int added;
};
} // namespace

TENON_INLINE void fold(Sum &sum) {
  for (int lane = 0; lane < laneCount; ++lane)
    sum.total += sum.partial[lane];
  sum.partial = Lanes{};
  sum.added = 0;
}

TENON_INLINE void add(Sum &sum, const Lanes &lanes) {
  sum.partial += lanes;
  if (++sum.added == 64)
    fold(sum);
}

TENON_CLONES static double expRelativeOf(float *values, int count, float best, float scale) {
  Sum sum = {0, {}, 0};
  int i = 0;
  for (; i + laneCount <= count; i += laneCount) {
    Lanes lanes;
    load(lanes, values + i);
    lanes = (lanes - best) * scale;
    const auto possible = lanes > Lanes{} - infinity;
    expOfNegative(lanes);
    lanes = possible ? lanes : Lanes{};
    std::memcpy(values + i, &lanes, sizeof lanes);
    add(sum, lanes);
  }
  fold(sum);
  for (; i < count; ++i) {
    float x = (values[i] - best) * scale;
    values[i] = std::isinf(x) ? 0 : std::exp(std::max(x, -87.0f));
    sum.total += values[i];
  }
  return sum.total;
}

TENON_CLONES static double logSumExpOf(const float *values, int count) {
  const float best = maximumOf(values, count);
  if (!std::isfinite(best))
    return best;
  Sum sum = {0, {}, 0};
  int i = 0;
  for (; i + laneCount <= count; i += laneCount) {
    Lanes lanes;
    load(lanes, values + i);
    lanes -= best;
    expOfNegative(lanes);
    add(sum, lanes);
  }
  fold(sum);
  for (; i < count; ++i)
    sum.total += std::exp(double(values[i]) - best);
  return best + std::log(sum.total);
}

float maximum(const float *values, int count) { return maximumOf(values, count); }

double expRelative(float *values, int count, float best, float scale) {
  return expRelativeOf(values, count, best, scale);
}

double logSumExp(const float *values, int count) { return logSumExpOf(values, count); }

} // namespace tenon::rt
