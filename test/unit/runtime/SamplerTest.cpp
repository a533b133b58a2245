// Every sampling step against the oracle, then drawing itself.
#include "runtime/Sampler.h"

#include "runtime/Error.h"
#include "runtime/RowMath.h"
#include "runtime/Safetensors.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

using namespace tenon::rt;

namespace {
template <typename T> std::vector<T> values(const SafetensorsFile &file, const std::string &name) {
  const Tensor *tensor = file.find(name);
  EXPECT_TRUE(tensor) << name;
  std::vector<T> result(tensor ? tensor->elements : 0);
  if (tensor)
    std::memcpy(result.data(), tensor->data, result.size() * sizeof(T));
  return result;
}

SamplingOptions optionsOf(const nlohmann::json &params) {
  SamplingOptions options;
  options.temperature = 1;
  for (const auto &[key, value] : params.items()) {
    if (key == "temperature")
      options.temperature = value;
    else if (key == "top_k")
      options.topK = value;
    else if (key == "top_p")
      options.topP = value;
    else if (key == "min_p")
      options.minP = value;
    else if (key == "repetition_penalty")
      options.repetitionPenalty = value;
    else if (key == "frequency_penalty")
      options.frequencyPenalty = value;
    else if (key == "presence_penalty")
      options.presencePenalty = value;
    else if (key == "no_repeat_ngram_size")
      options.noRepeatNgram = value;
    else
      ADD_FAILURE() << "unknown parameter " << key;
  }
  return options;
}
} // namespace

TEST(Sampler, DistributionsMatchTheOracle) {
  const std::string folder = TENON_ORACLE_DIR "/sampling/";
  SafetensorsFile golden(folder + "sampling.safetensors");
  std::ifstream stream(folder + "cases.json");
  nlohmann::json cases = nlohmann::json::parse(stream)["cases"];
  ASSERT_GT(cases.size(), 50u);
  for (const auto &test : cases) {
    const std::string name = test["name"];
    SCOPED_TRACE(name);
    std::vector<float> logits = values<float>(golden, name + ".logits");
    std::vector<double> probs = values<double>(golden, name + ".probs");
    Sampler sampler(optionsOf(test["params"]), static_cast<int>(logits.size()));
    std::vector<double> ours =
        sampler.distribution(logits.data(), test["prompt_ids"], test["output_ids"]);
    EXPECT_EQ(ours.size() - std::count(ours.begin(), ours.end(), 0.0), test["kept"]);
    for (size_t id = 0; id < probs.size(); ++id)
      EXPECT_NEAR(ours[id], probs[id], 1e-5) << "id " << id;
  }
}

TEST(Sampler, TopPTakesTheLowestIdsAmongEquals) {
  const std::vector<float> logits(4, 1.0f); // a quarter each
  SamplingOptions options;
  options.temperature = 1;
  for (auto [p, kept] : {std::pair(0.25, 1u), {0.26, 2u}, {0.75, 3u}, {1.0, 4u}}) {
    options.topP = p;
    Sampler sampler(options, 4);
    std::vector<double> expected(4);
    std::fill_n(expected.begin(), kept, 1.0 / kept);
    EXPECT_EQ(sampler.distribution(logits.data(), {}, {}), expected) << p;
  }
}

TEST(Sampler, GreedyTakesTheLowestIndexOfTheMaximum) {
  for (int size : {1, 5, 16, 17, 40, 1000}) {
    std::vector<float> logits(size, -1.0f);
    Sampler sampler({}, size);
    EXPECT_EQ(sampler.sample(logits.data(), {}, {}), 0);
    logits[size / 2] = logits[size - 1] = 3;
    EXPECT_EQ(sampler.sample(logits.data(), {}, {}), size / 2) << size;
  }
}

TEST(Sampler, GreedySurvivesNanAndInfinity) {
  std::vector<float> logits(40, NAN);
  EXPECT_EQ(argmax(logits.data(), 40), 0);
  logits[33] = -5;
  EXPECT_EQ(argmax(logits.data(), 40), 33);
  std::vector<float> low(40, -INFINITY);
  EXPECT_EQ(argmax(low.data(), 40), 0);
}

TEST(Sampler, DrawsFollowTheDistribution) {
  const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f), -INFINITY};
  SamplingOptions options;
  options.temperature = 1;
  options.seed = 7;
  Sampler sampler(options, 4);
  int counts[4] = {};
  const int draws = 80000;
  for (int i = 0; i < draws; ++i)
    ++counts[sampler.sample(logits.data(), {}, {})];
  EXPECT_NEAR(counts[0], draws / 8, 400);
  EXPECT_NEAR(counts[1], draws / 4, 500);
  EXPECT_NEAR(counts[2], draws * 5 / 8, 600);
  EXPECT_EQ(counts[3], 0);
}

TEST(Sampler, SameSeedSameDraws) {
  std::vector<float> logits(100, 0);
  SamplingOptions options;
  options.temperature = 1;
  auto draw = [&](std::optional<uint64_t> seed) {
    options.seed = seed;
    Sampler sampler(options, 100);
    std::vector<int32_t> ids;
    for (int i = 0; i < 20; ++i)
      ids.push_back(sampler.sample(logits.data(), {}, {}));
    return ids;
  };
  EXPECT_EQ(draw(3), draw(3));
  EXPECT_NE(draw(3), draw(4));
  EXPECT_NE(draw(std::nullopt), draw(std::nullopt));
}

TEST(Sampler, LogProbabilityIsAccurate) {
  for (int size : {1, 15, 16, 100, 49152}) {
    std::vector<float> logits(size);
    uint32_t state = 5;
    for (float &logit : logits) {
      state = state * 1664525 + 1013904223;
      logit = static_cast<float>(state >> 8) * 0x1p-24f * 30 - 10;
    }
    double best = -INFINITY, sum = 0;
    for (float logit : logits)
      best = std::max(best, double(logit));
    for (float logit : logits)
      sum += std::exp(double(logit) - best);
    EXPECT_NEAR(logSumExp(logits.data(), size), best + std::log(sum), 2e-6) << size;
  }
  const float extreme[] = {1e30f, -1e30f, 0};
  EXPECT_EQ(logProbability(extreme, 3, 0), 0);
}

TEST(Sampler, MeaninglessOptionsAreRefused) {
  auto refused = [](auto change) {
    SamplingOptions options;
    change(options);
    EXPECT_THROW(checkSampling(options), Error);
  };
  refused([](SamplingOptions &o) { o.temperature = -1; });
  refused([](SamplingOptions &o) { o.temperature = NAN; });
  refused([](SamplingOptions &o) { o.topK = -1; });
  refused([](SamplingOptions &o) { o.topP = 1.5; });
  refused([](SamplingOptions &o) { o.topP = NAN; });
  refused([](SamplingOptions &o) { o.minP = -0.1; });
  refused([](SamplingOptions &o) { o.repetitionPenalty = 0; });
  refused([](SamplingOptions &o) { o.presencePenalty = INFINITY; });
  refused([](SamplingOptions &o) { o.noRepeatNgram = -2; });
}
