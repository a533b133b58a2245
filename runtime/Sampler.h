// Chooses the next token from a row of logits. The steps, in this order:
//
//   repetition penalty    once for each token of prompt and output: positive / p, negative * p
//   frequency, presence   output only: logit -= frequency * count + presence
//   no-repeat n-gram      tokens that would complete an n-gram already there are out
//   temperature           0: the best token, the lowest id among equals
//   top-k                 the k best; ties with the k-th stay
//   top-p                 the best until their mass reaches p; always one
//   min-p                 those less likely than p times the likeliest are out
//   softmax, draw
//
// From temperature on a device can do it (tk_sample).
#ifndef TENON_RUNTIME_SAMPLER_H
#define TENON_RUNTIME_SAMPLER_H

#include "runtime/kernel_abi.h"

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace tenon::rt {

struct SamplingOptions {
  double temperature = 0;
  int topK = 0; // 0: all
  double topP = 1;
  double minP = 0;
  double repetitionPenalty = 1;
  double frequencyPenalty = 0;
  double presencePenalty = 0;
  int noRepeatNgram = 0;        // 0: off
  std::optional<uint64_t> seed; // none: another draw each time
};

// Refuses values that have no meaning (temperature -1, top-p 2), naming the option.
void checkSampling(const SamplingOptions &options);

class Sampler {
public:
  Sampler(const SamplingOptions &options, int vocab);

  int32_t sample(const float *logits, const std::vector<int32_t> &prompt,
                 const std::vector<int32_t> &output);

  // The next sample as a device draws it; nothing where what was said before changes the logits.
  std::optional<tenon_draw> next();

  // The probabilities it would draw by, [vocab].
  std::vector<double> distribution(const float *logits, const std::vector<int32_t> &prompt,
                                   const std::vector<int32_t> &output);

private:
  struct Candidate {
    int32_t id;
    float weight;
  };

  // Fills `candidates` with what may be drawn; returns the sum of their weights.
  double choose(const float *logits, const std::vector<int32_t> &prompt,
                const std::vector<int32_t> &output);
  bool changesLogits() const;
  float inverseTemperature() const;
  double nextRandom();
  void penalise(const std::vector<int32_t> &prompt, const std::vector<int32_t> &output);
  void banRepeatedNgrams(const std::vector<int32_t> &prompt, const std::vector<int32_t> &output);
  float leastOfTopK();
  void keepTopP(double mass);

  const SamplingOptions options;
  const int vocab;
  std::mt19937_64 random;
  std::vector<float> weights; // [vocab] logits at first
  std::vector<Candidate> candidates;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_SAMPLER_H
