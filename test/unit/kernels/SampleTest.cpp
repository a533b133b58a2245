// tk_sample against runtime/Sampler.h's definition in double precision: every draw must lie in the
// piece of [0, 1) that belongs to its token.
#include "CudaKernels.h"
#include "Kernels.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace {

constexpr float Infinity = std::numeric_limits<float>::infinity();

std::vector<int32_t> sample(const std::vector<float> &logits, int32_t vocab,
                            const std::vector<tenon_draw> &draws) {
  std::vector<int32_t> rows(draws.size()), out(draws.size(), -7);
  std::iota(rows.begin(), rows.end(), 0);
  tk_sample_shape s = {vocab};
  runKernel(emulatedSample(), &s, {logits.data(), draws.data(), out.data()},
            Batch({int32_t(rows.size())}, {}, rows));
  return out;
}

int32_t sampleOne(const std::vector<float> &logits, const tenon_draw &draw) {
  return sample(logits, int32_t(logits.size()), {draw})[0];
}

// Who may be drawn, in the order of drawing.
struct Token {
  int32_t id;
  double weight;
};
std::vector<Token> drawable(const float *logits, const tenon_draw &draw) {
  std::vector<float> sorted(logits, logits + draw.ids);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  float least = draw.top_k > 0 ? sorted[std::min(draw.top_k, draw.ids) - 1] : -Infinity;
  std::vector<Token> tokens;
  double mass = 0;
  for (int32_t id = 0; id < draw.ids; ++id)
    if (logits[id] >= least) {
      tokens.push_back({id, std::exp((double(logits[id]) - sorted[0]) * draw.inverse_temperature)});
      mass += tokens.back().weight;
    }
  tokens.erase(std::remove_if(tokens.begin(), tokens.end(),
                              [&](const Token &t) { return t.weight < draw.min_p; }),
               tokens.end());
  if (draw.top_p >= 1)
    return tokens;
  std::sort(tokens.begin(), tokens.end(), [](const Token &a, const Token &b) {
    return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
  });
  size_t kept = 0;
  for (double sum = 0; kept < tokens.size() && (kept == 0 || sum < draw.top_p * mass); ++kept)
    sum += tokens[kept].weight;
  tokens.resize(kept);
  return tokens;
}

void expectDrawn(int32_t id, const float *logits, const tenon_draw &draw) {
  double mass = 0, before = 0;
  std::vector<Token> tokens = drawable(logits, draw);
  for (const Token &token : tokens)
    mass += token.weight;
  for (const Token &token : tokens) {
    if (token.id == id) {
      EXPECT_GE(draw.random * mass, before - 1e-6 * mass) << id;
      EXPECT_LE(draw.random * mass, before + token.weight + 1e-6 * mass) << id;
      return;
    }
    before += token.weight;
  }
  ADD_FAILURE() << id << " is none of those that may be drawn";
}

TEST(Sample, BestIsTheFirstOfEquals) {
  const tenon_draw best = {300, 0, 0, 0, 1, 0};
  std::vector<float> logits = randomFloats(300, 1);
  logits[250] = logits[77] = logits[78] = 50;
  EXPECT_EQ(sampleOne(logits, best), 77);
  logits[3] = NAN;
  EXPECT_EQ(sampleOne(logits, best), 77);
  logits[299] = Infinity;
  EXPECT_EQ(sampleOne(logits, best), 299);
  EXPECT_EQ(sampleOne(std::vector<float>(300, NAN), best), 0);
  EXPECT_EQ(sampleOne(std::vector<float>(300, -Infinity), {300, 0, 1, 0, 0.5, 0.5}), 0);
}

TEST(Sample, IdsBeyondTheTokenizersAreNotDrawn) {
  std::vector<float> logits = randomFloats(100, 2);
  logits[99] = 50;
  EXPECT_NE(sampleOne(logits, {99, 0, 0, 0, 1, 0}), 99);
  for (double topP : {0.9, 1.0})
    EXPECT_LT(sampleOne(logits, {99, 0, 1, 0, topP, 0.999999}), 99);
}

TEST(Sample, DrawsAsTheDefinitionSays) {
  for (int32_t vocab : {7, 300, 5000}) {
    std::vector<tenon_draw> draws;
    std::mt19937_64 random(3);
    for (float temperature : {1.0f, 0.2f, 3.0f})
      for (int32_t topK : {0, 1, 5, 400})
        for (double topP : {1.0, 0.95, 0.3, 0.0})
          for (float minP : {0.0f, 0.05f})
            draws.push_back(
                {vocab, topK, 1 / temperature, minP, topP, double(random() >> 11) * 0x1p-53});
    draws.push_back({vocab, 0, 1, 0, 1, 0});
    draws.push_back({vocab, 0, 1, 0, 0.9, 1 - 0x1p-53});
    std::vector<float> logits = randomFloats(int64_t(draws.size()) * vocab, 4, 3);
    for (float &v : logits) // many equals
      v = std::nearbyint(v * 8) / 8;
    std::vector<int32_t> ids = sample(logits, vocab, draws);
    for (size_t r = 0; r < draws.size(); ++r) {
      SCOPED_TRACE(std::to_string(vocab) + " tokens, row " + std::to_string(r));
      expectDrawn(ids[r], logits.data() + r * vocab, draws[r]);
    }
  }
}

TEST(Sample, FarAndImpossibleTokens) {
  // One token in a thousand is possible, and all others are far away or impossible.
  std::vector<float> logits(1000, -1000);
  for (int i = 0; i < 1000; i += 3)
    logits[i] = -Infinity;
  logits[500] = 3;
  for (double topP : {1.0, 0.9})
    for (double random : {0.0, 0.5, 0.999999})
      EXPECT_EQ(sampleOne(logits, {1000, 40, 1, 0, topP, random}), 500);
}

} // namespace
