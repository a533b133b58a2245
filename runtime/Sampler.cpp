#include "runtime/Sampler.h"

#include "runtime/Error.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

namespace tenon::rt {

static constexpr double minusInfinity = -std::numeric_limits<double>::infinity();

void checkSampling(const SamplingOptions &options) {
  auto finite = [](double value) { return std::isfinite(value); };
  if (!finite(options.temperature) || options.temperature < 0)
    refuse("temperature {} is not a number from 0 up", options.temperature);
  if (options.topK < 0)
    refuse("top-k {} is negative; 0 keeps all tokens", options.topK);
  if (!(options.topP >= 0 && options.topP <= 1))
    refuse("top-p {} is not between 0 and 1", options.topP);
  if (!(options.minP >= 0 && options.minP <= 1))
    refuse("min-p {} is not between 0 and 1", options.minP);
  if (!finite(options.repetitionPenalty) || options.repetitionPenalty <= 0)
    refuse("repetition penalty {} is not a number above 0; 1 changes nothing",
           options.repetitionPenalty);
  if (!finite(options.frequencyPenalty) || !finite(options.presencePenalty))
    refuse("frequency and presence penalties must be numbers");
  if (options.noRepeatNgram < 0)
    refuse("no-repeat n-gram size {} is negative; 0 turns it off", options.noRepeatNgram);
}

Sampler::Sampler(const SamplingOptions &options, int vocab)
    : options(options), vocab(vocab),
      random(options.seed ? *options.seed
                          : (uint64_t(std::random_device()()) << 32) ^ std::random_device()()) {}

bool Sampler::changesLogits() const {
  return options.repetitionPenalty != 1 || options.frequencyPenalty != 0 ||
         options.presencePenalty != 0 || options.noRepeatNgram > 0;
}

int32_t Sampler::sample(const float *logits, const std::vector<int32_t> &prompt,
                        const std::vector<int32_t> &output) {
  if (options.temperature == 0 && !changesLogits())
    return argmax(logits, vocab);
  distribution(logits, prompt, output);
  // 53 random bits, so that a seed means the same draw everywhere.
  double target = static_cast<double>(random() >> 11) * 0x1p-53;
  for (const Candidate &candidate : candidates) {
    target -= candidate.value;
    if (target < 0)
      return candidate.id;
  }
  // Rounding left a rest: the last one that can be drawn.
  for (size_t i = candidates.size(); i-- > 0;)
    if (candidates[i].value > 0)
      return candidates[i].id;
  return candidates.front().id;
}

template <typename Predicate> void Sampler::drop(Predicate unwanted) {
  candidates.erase(std::remove_if(candidates.begin(), candidates.end(), unwanted),
                   candidates.end());
}

const std::vector<Candidate> &Sampler::distribution(const float *logits,
                                                    const std::vector<int32_t> &prompt,
                                                    const std::vector<int32_t> &output) {
  candidates.resize(static_cast<size_t>(vocab));
  for (int32_t id = 0; id < vocab; ++id)
    candidates[id] = {id, logits[id]};
  penalise(prompt, output);
  banRepeatedNgrams(prompt, output);

  auto less = [](const Candidate &a, const Candidate &b) { return a.value < b.value; };
  Candidate best = *std::max_element(candidates.begin(), candidates.end(), less);
  if (options.temperature == 0 || !std::isfinite(best.value)) {
    candidates.assign(1, {best.id, 1.0});
    return candidates;
  }
  drop([](const Candidate &candidate) { return candidate.value == minusInfinity; });
  keepTopK();
  double sum = 0;
  for (Candidate &candidate : candidates)
    sum += candidate.value = std::exp((candidate.value - best.value) / options.temperature);
  for (Candidate &candidate : candidates)
    candidate.value /= sum;
  keepTopP();
  double floor = options.minP / sum; // the likeliest has exp(0) / sum
  drop([&](const Candidate &candidate) { return candidate.value < floor; });
  sum = 0;
  for (const Candidate &candidate : candidates)
    sum += candidate.value;
  for (Candidate &candidate : candidates)
    candidate.value /= sum;
  return candidates;
}

void Sampler::penalise(const std::vector<int32_t> &prompt, const std::vector<int32_t> &output) {
  if (options.repetitionPenalty == 1 && options.frequencyPenalty == 0 &&
      options.presencePenalty == 0)
    return;
  std::unordered_map<int32_t, int> counts; // in the output; 0 for tokens of the prompt alone
  for (int32_t id : prompt)
    counts.emplace(id, 0);
  for (int32_t id : output)
    ++counts[id];
  for (auto [id, count] : counts) {
    double &logit = candidates[id].value;
    logit = logit > 0 ? logit / options.repetitionPenalty : logit * options.repetitionPenalty;
    if (count > 0)
      logit -= options.frequencyPenalty * count + options.presencePenalty;
  }
}

void Sampler::banRepeatedNgrams(const std::vector<int32_t> &prompt,
                                const std::vector<int32_t> &output) {
  const size_t n = static_cast<size_t>(options.noRepeatNgram);
  if (n == 0 || prompt.size() + output.size() < n)
    return;
  std::vector<int32_t> all(prompt);
  all.insert(all.end(), output.begin(), output.end());
  auto suffix = all.end() - static_cast<ptrdiff_t>(n - 1);
  for (auto start = all.begin(); start + static_cast<ptrdiff_t>(n) <= all.end(); ++start)
    if (std::equal(suffix, all.end(), start))
      candidates[start[static_cast<ptrdiff_t>(n) - 1]].value = minusInfinity;
}

void Sampler::keepTopK() {
  const size_t k = static_cast<size_t>(options.topK);
  if (k == 0 || k >= candidates.size())
    return;
  std::vector<double> values;
  values.reserve(candidates.size());
  for (const Candidate &candidate : candidates)
    values.push_back(candidate.value);
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(k - 1), values.end(),
                   std::greater<>());
  double least = values[k - 1];
  drop([&](const Candidate &candidate) { return candidate.value < least; });
}

void Sampler::keepTopP() {
  if (options.topP >= 1)
    return;
  // A heap yields the best one by one: usually few are needed of many.
  auto worse = [](const Candidate &a, const Candidate &b) {
    return a.value != b.value ? a.value < b.value : a.id > b.id;
  };
  std::make_heap(candidates.begin(), candidates.end(), worse);
  std::vector<Candidate> kept;
  double mass = 0;
  do {
    std::pop_heap(candidates.begin(), candidates.end(), worse);
    kept.push_back(candidates.back());
    candidates.pop_back();
    mass += kept.back().value;
  } while (mass < options.topP && !candidates.empty());
  candidates.swap(kept);
}

// 16 lanes at once, in the compiler's vector extension: SSE2 on the baseline, wider where it is
// built so.
using Lanes = float __attribute__((vector_size(64)));
using IntLanes = int32_t __attribute__((vector_size(64)));
static constexpr int laneCount = 16;

static void load(Lanes &lanes, const float *from) { std::memcpy(&lanes, from, sizeof lanes); }

static float maximum(const float *values, int count) {
  const float lowest = -std::numeric_limits<float>::infinity();
  Lanes best = Lanes{} + lowest;
  int i = 0;
  for (; i + laneCount <= count; i += laneCount) {
    Lanes lanes;
    load(lanes, values + i);
    best = lanes > best ? lanes : best;
  }
  float result = lowest;
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
static Lanes &expOfNegative(Lanes &x) {
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
  return x;
}

double logSumExp(const float *values, int count) {
  const float best = maximum(values, count);
  if (!std::isfinite(best))
    return best;
  double sum = 0;
  int i = 0;
  while (i + laneCount <= count) {
    Lanes partial = {}; // short sums in float, long ones in double
    for (int block = 0; block < 64 && i + laneCount <= count; ++block, i += laneCount) {
      Lanes lanes;
      load(lanes, values + i);
      lanes -= best;
      partial += expOfNegative(lanes);
    }
    for (int lane = 0; lane < laneCount; ++lane)
      sum += partial[lane];
  }
  for (; i < count; ++i)
    sum += std::exp(double(values[i]) - best);
  return best + std::log(sum);
}

} // namespace tenon::rt
