// Chooses the next token from a row of logits. The steps, in this order:
//
//   repetition penalty   prompt and output, once for each distinct token: positive / p, negative *
//   p frequency, presence  output only: logit -= frequency * count + presence no-repeat n-gram
//   tokens that would complete an n-gram already there are out temperature          0: the best
//   token, the lowest id among equals top-k                the k best; ties with the k-th stay
//   top-p                the best until their mass reaches p; always one
//   min-p                those less likely than p times the likeliest are out
//   softmax, draw
#ifndef TENON_RUNTIME_SAMPLER_H
#define TENON_RUNTIME_SAMPLER_H

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

struct Candidate {
  int32_t id;
  double value; // a logit, later a probability
};

class Sampler {
public:
  Sampler(const SamplingOptions &options, int vocab);

  int32_t sample(const float *logits, const std::vector<int32_t> &prompt,
                 const std::vector<int32_t> &output);

  // The tokens that may be drawn with their probabilities, ids ascending unless top-p sorted them.
  // Valid until the next call.
  const std::vector<Candidate> &distribution(const float *logits,
                                             const std::vector<int32_t> &prompt,
                                             const std::vector<int32_t> &output);

private:
  bool changesLogits() const;
  void penalise(const std::vector<int32_t> &prompt, const std::vector<int32_t> &output);
  void banRepeatedNgrams(const std::vector<int32_t> &prompt, const std::vector<int32_t> &output);
  template <typename Predicate> void drop(Predicate unwanted);
  void keepTopK();
  void keepTopP(); // on probabilities

  const SamplingOptions options;
  const int vocab;
  std::mt19937_64 random;
  std::vector<Candidate> candidates;
};

// The lowest index of the largest value; NaN never wins. 0 when there is none.
int32_t argmax(const float *values, int count);
// log(sum(exp(values))), accurate to about 1e-6.
double logSumExp(const float *values, int count);
// Log-probability of `id` by the model itself, before penalties and temperature.
inline double logProbability(const float *logits, int vocab, int32_t id) {
  return double(logits[id]) - logSumExp(logits, vocab);
}

} // namespace tenon::rt

#endif // TENON_RUNTIME_SAMPLER_H
