#include "runtime/Sampler.h"

#include "runtime/Error.h"
#include "runtime/RowMath.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

namespace tenon::rt {

static constexpr float minusInfinity = -std::numeric_limits<float>::infinity();

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

// Finite, however cold it is.
float Sampler::inverseTemperature() const {
  return static_cast<float>(std::min(1 / options.temperature, 1e30));
}

// In [0, 1), of 53 random bits, so that a seed means the same draw everywhere.
double Sampler::nextRandom() { return static_cast<double>(random() >> 11) * 0x1p-53; }

// A device leaves out what is less likely than 10^-12, which changes no draw that anyone could see.
std::optional<tenon_draw> Sampler::next() {
  if (changesLogits())
    return std::nullopt;
  if (options.temperature == 0)
    return tenon_draw{vocab, 0, 0, 0, 1, 0};
  return tenon_draw{
      vocab,        options.topK, inverseTemperature(), static_cast<float>(options.minP),
      options.topP, nextRandom()};
}

int32_t Sampler::sample(const float *logits, const std::vector<int32_t> &prompt,
                        const std::vector<int32_t> &output) {
  if (options.temperature == 0 && !changesLogits())
    return argmax(logits, vocab);
  const double mass = choose(logits, prompt, output);
  double target = nextRandom() * mass;
  for (const Candidate &candidate : candidates) {
    target -= candidate.weight;
    if (target < 0)
      return candidate.id;
  }
  return candidates.back().id; // rounding left a rest
}

std::vector<double> Sampler::distribution(const float *logits, const std::vector<int32_t> &prompt,
                                          const std::vector<int32_t> &output) {
  const double mass = choose(logits, prompt, output);
  std::vector<double> probabilities(static_cast<size_t>(vocab));
  for (const Candidate &candidate : candidates)
    probabilities[candidate.id] = candidate.weight / mass;
  return probabilities;
}

// Weights are relative to the likeliest token, which has 1. Each filter keeps a prefix of the
// tokens ordered by weight, so all of them together are one threshold and, for top-p, one sort of
// what is above it.
double Sampler::choose(const float *logits, const std::vector<int32_t> &prompt,
                       const std::vector<int32_t> &output) {
  weights.assign(logits, logits + vocab);
  penalise(prompt, output);
  banRepeatedNgrams(prompt, output);
  candidates.clear();
  const float best = maximum(weights.data(), vocab);
  if (options.temperature == 0 || !std::isfinite(best)) {
    candidates.push_back({argmax(weights.data(), vocab), 1});
    return 1;
  }

  // Impossible tokens and those below the k-th get the weight 0.
  const float least = leastOfTopK();
  for (float &logit : weights)
    logit = logit >= least ? logit : minusInfinity;
  double mass = expRelative(weights.data(), vocab, best, inverseTemperature());

  // Tokens that are each less likely than (1 - p) / vocab have less than 1 - p together: top-p
  // never reaches them.
  double floor = options.minP;
  if (options.topP < 1)
    floor = std::min(1.0, std::max(floor, (1 - options.topP) / vocab * mass));
  candidates.resize(static_cast<size_t>(vocab));
  size_t kept = 0;
  for (int32_t id = 0; id < vocab; ++id) { // without a branch: nothing can be predicted here
    candidates[kept] = {id, weights[id]};
    kept += weights[id] > 0 && weights[id] >= floor;
  }
  candidates.resize(kept);
  if (options.topP < 1)
    keepTopP(mass);

  if (floor > 0) {
    mass = 0;
    for (const Candidate &candidate : candidates)
      mass += candidate.weight;
  }
  return mass;
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
    double logit = weights[id];
    logit = logit > 0 ? logit / options.repetitionPenalty : logit * options.repetitionPenalty;
    if (count > 0)
      logit -= options.frequencyPenalty * count + options.presencePenalty;
    weights[id] = static_cast<float>(logit);
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
      weights[start[static_cast<ptrdiff_t>(n) - 1]] = minusInfinity;
}

float Sampler::leastOfTopK() {
  const size_t k = static_cast<size_t>(options.topK);
  if (k == 0 || k >= weights.size())
    return std::numeric_limits<float>::lowest();
  // A heap of the k best so far, the least on top.
  std::vector<float> heap(weights.begin(), weights.begin() + static_cast<ptrdiff_t>(k));
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  for (size_t id = k; id < weights.size(); ++id)
    if (weights[id] > heap.front()) {
      std::pop_heap(heap.begin(), heap.end(), std::greater<>());
      heap.back() = weights[id];
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
  return std::max(heap.front(), std::numeric_limits<float>::lowest());
}

void Sampler::keepTopP(double mass) {
  std::sort(candidates.begin(), candidates.end(), [](const Candidate &a, const Candidate &b) {
    return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
  });
  size_t kept = 0;
  for (double sum = 0; kept < candidates.size() && (kept == 0 || sum < options.topP * mass); ++kept)
    sum += candidates[kept].weight;
  candidates.resize(kept);
}

} // namespace tenon::rt
