// SmolLM2-135M-Instruct, a real model with 4-bit weights, against transformers on the same weights
// in f32.
//
// Greedy ids can only be compared up to the first close decision: where the two best tokens are
// nearer than the numeric error, either may come out.
#include "Support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace conformance;

namespace {

const std::string golden = oracle + "smollm2/";

class SmolLm2 : public testing::Test {
protected:
  void SetUp() override {
    weights = modelsFolder() + "/SmolLM2-135M-Instruct.Q4_1.gguf";
    if (!std::filesystem::exists(weights))
      GTEST_SKIP() << weights << " is absent; scripts/install-deps.sh fetches it";
  }

  static std::string modelsFolder() {
    if (const char *folder = std::getenv("TENON_CACHE"))
      return std::string(folder) + "/models";
    if (const char *folder = std::getenv("XDG_CACHE_HOME"))
      return std::string(folder) + "/tenon/models";
    const char *home = std::getenv("HOME");
    return std::string(home ? home : "") + "/.cache/tenon/models";
  }

  std::string weights;
};

const Arguments f32 = {"--precision", "f32"};
const Arguments reference = {"--target", "reference", "--precision", "f32"};
const Arguments stored = {};

nlohmann::json generate(const std::string &executable, const std::vector<int64_t> &prompt, int n,
                        Arguments options = {}) {
  const Arguments fixed = {"generate",        "--ids",        join(prompt), "-n",
                           std::to_string(n), "--ignore-eos", "--json"};
  options.insert(options.begin(), fixed.begin(), fixed.end());
  return runJson(executable, options);
}

std::vector<int64_t> idsOf(const nlohmann::json &json) {
  return json.value("ids", std::vector<int64_t>());
}

// Every prompt's greedy ids up to the first step whose margin is below `margin`.
void expectGreedy(const std::string &executable, double margin, int64_t least) {
  ASSERT_NE(executable, "");
  int64_t compared = 0;
  const nlohmann::json cases = readJson(golden + "greedy.json")["cases"];
  for (const nlohmann::json &entry : cases) {
    const std::vector<double> margins = entry["margins"];
    const size_t steps =
        std::find_if(margins.begin(), margins.end(), [&](double value) { return value < margin; }) -
        margins.begin();
    std::vector<int64_t> expected = entry["output_ids"], ids;
    ASSERT_EQ(expected.size(), margins.size());
    ids = idsOf(generate(executable, entry["prompt_ids"], static_cast<int>(expected.size())));
    ASSERT_EQ(ids.size(), expected.size());
    expected.resize(steps);
    ids.resize(steps);
    EXPECT_EQ(ids, expected) << "prompt " << entry["i"] << ": " << entry["prompt"];
    compared += static_cast<int64_t>(steps);
  }
  std::printf("%ld tokens compared\n", static_cast<long>(compared));
  EXPECT_GE(compared, least);
}

TEST_F(SmolLm2, GreedyF32) { expectGreedy(compile(smolLm2, f32), 0.05, 300); }
TEST_F(SmolLm2, GreedyReference) { expectGreedy(compile(smolLm2, reference), 0.05, 300); }
TEST_F(SmolLm2, GreedyStored) { expectGreedy(compile(smolLm2, stored), 0.5, 15); }

// The same decisions, each after the golden tokens before it, so that a close one does not end the
// comparison.
void expectDecisions(const std::string &executable, double margin, int64_t least) {
  ASSERT_NE(executable, "");
  const nlohmann::json cases = readJson(golden + "greedy.json")["cases"];
  int64_t decisions = 0, wrong = 0;
  for (const nlohmann::json &entry : cases) {
    std::vector<int64_t> ids = entry["prompt_ids"];
    const std::vector<int64_t> output = entry["output_ids"];
    const std::vector<double> margins = entry["margins"];
    const size_t prompt = ids.size();
    ids.insert(ids.end(), output.begin(), output.end());
    const Tensor logits = runLogits(executable, {{ids}})["logits"];
    ASSERT_FALSE(logits.values.empty());
    for (size_t i = 0; i < output.size(); ++i) {
      if (margins[i] < margin)
        continue;
      const std::vector<double> row = slice(logits.values, prompt + i - 1, ids.size());
      wrong += std::max_element(row.begin(), row.end()) - row.begin() != output[i];
      ++decisions;
    }
  }
  std::printf("%ld decisions, %ld wrong\n", static_cast<long>(decisions), static_cast<long>(wrong));
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(decisions, least);
}

TEST_F(SmolLm2, DecisionsF32) { expectDecisions(compile(smolLm2, f32), 0.01, 600); }
TEST_F(SmolLm2, DecisionsStored) { expectDecisions(compile(smolLm2, stored), 0.5, 300); }

// In one context and in chunks of 512 tokens, against f32.
void expectPerplexity(const std::string &executable, double tolerance,
                      const Arguments &options = {}) {
  ASSERT_NE(executable, "");
  const nlohmann::json expected = readJson(golden + "perplexity.json");
  auto compare = [&](Arguments arguments, const char *ppl, const char *scored) {
    arguments.insert(arguments.begin(), {"perplexity", golden + "perplexity_text.txt", "--json"});
    arguments.insert(arguments.end(), options.begin(), options.end());
    const nlohmann::json result = runJson(executable, arguments);
    const double want = expected[ppl].get<double>(), got = result.value("ppl", 0.0);
    std::printf("%-9s %.6f, golden %.6f: %+.4f %%\n", ppl, got, want, (got / want - 1) * 100);
    EXPECT_NEAR(got / want, 1, tolerance);
    EXPECT_EQ(result["tokens"], expected["tokens"]);
    EXPECT_EQ(result["scored"], expected[scored]);
  };
  compare({}, "ppl", "scored");
  compare({"--chunk", "512"}, "chunk_ppl", "chunk_scored");
}

// What a cache of 8 bits costs beside one of bf16.
TEST_F(SmolLm2, PerplexityWithInt8Cache) {
  const std::string bf16 = compile(smolLm2, stored),
                    int8 = compile(smolLm2, {"--kv-dtype", "int8"});
  ASSERT_NE(bf16, "");
  ASSERT_NE(int8, "");
  const Arguments perplexity = {"perplexity", golden + "perplexity_text.txt", "--json"};
  const double before = runJson(bf16, perplexity).value("ppl", 0.0),
               after = runJson(int8, perplexity).value("ppl", 0.0);
  std::printf("bf16 %.6f, int8 %.6f: %+.4f %%\n", before, after, (after / before - 1) * 100);
  EXPECT_NEAR(after / before, 1, 5e-3);
}

TEST_F(SmolLm2, PerplexityF32) { expectPerplexity(compile(smolLm2, f32), 1e-4); }
// What activations in 8 bits cost: at most 0.5 %, in prefill and in decoding.
TEST_F(SmolLm2, PerplexityStored) { expectPerplexity(compile(smolLm2, stored), 5e-3); }
TEST_F(SmolLm2, PerplexityStoredDecoding) {
  expectPerplexity(compile(smolLm2, stored), 5e-3, {"--cached"});
}

// The prompts of logits.safetensors as one batch.
Batch promptsOf(Tensors &tensors, std::vector<std::string> &names) {
  Batch batch;
  for (const auto &[name, tensor] : tensors)
    if (const size_t dot = name.find(".input_ids"); dot != std::string::npos) {
      names.push_back(name.substr(0, dot));
      batch.rows.push_back(tensor.integers());
    }
  return batch;
}

// The 64 best logits of every position, and what all 49152 add up to.
TEST_F(SmolLm2, LogitsF32) {
  Tensors expected = readTensors(golden + "logits.safetensors");
  std::vector<std::string> names;
  const Batch batch = promptsOf(expected, names);
  const std::string executable = compile(smolLm2, f32);
  ASSERT_NE(executable, "");
  for (const Arguments &options : {Arguments{}, Arguments{"--cached"}}) {
    const Tensor logits = runLogits(executable, batch, options)["logits"];
    ASSERT_EQ(logits.shape.size(), 3u);
    const int64_t vocab = logits.shape[2];
    double error = 0, sumError = 0;
    for (size_t row = 0; row < names.size(); ++row) {
      const Tensor &ids = expected[names[row] + ".top_ids"];
      const int64_t length = ids.shape[0], kept = ids.shape[1];
      ASSERT_EQ(length, static_cast<int64_t>(batch.rows[row].size()));
      for (int64_t i = 0; i < length; ++i) {
        const auto begin = logits.values.begin() + (row * batch.columns() + i) * vocab;
        std::vector<double> top(kept);
        double sum = 0;
        for (int64_t k = 0; k < kept; ++k)
          top[k] = begin[static_cast<int64_t>(ids.values[i * kept + k])];
        for (int64_t k = 0; k < vocab; ++k)
          sum += std::exp(begin[k]);
        error = std::max(
            error, compare(top, slice(expected[names[row] + ".top_logits"].values, i, length)).max);
        sumError = std::max(
            sumError, std::abs(std::log(sum) - expected[names[row] + ".logsumexp"].values[i]));
      }
    }
    std::printf("largest error %.1e, of log-sum-exp %.1e\n", error, sumError);
    EXPECT_LE(error, 2e-3);
    EXPECT_LE(sumError, 2e-3);
  }
}

// Splitting work among threads must not change a single bit of what is decoded.
TEST_F(SmolLm2, ThreadsDoNotChangeDecoding) {
  const std::string executable = compile(smolLm2, stored);
  ASSERT_NE(executable, "");
  const nlohmann::json greedy = readJson(golden + "greedy.json")["cases"][1];
  const std::vector<int64_t> prompt = greedy["prompt_ids"];
  const nlohmann::json one = generate(executable, prompt, 48, {"--threads", "1"}),
                       two = generate(executable, prompt, 48, {"--threads", "2"});
  EXPECT_EQ(one["ids"], two["ids"]);
  EXPECT_EQ(one["logprobs"], two["logprobs"]);
  const Batch batch = {{prompt}};
  EXPECT_EQ(runLogits(executable, batch, {"--cached", "--threads", "1"})["logits"].values,
            runLogits(executable, batch, {"--cached", "--threads", "2"})["logits"].values);
}

// Nor does what else is in the batch.
TEST_F(SmolLm2, NeighboursDoNotChangeDecoding) {
  const nlohmann::json cases = readJson(golden + "greedy.json")["cases"];
  Batch batch;
  for (int i : {0, 1, 3})
    batch.rows.push_back(cases[i]["prompt_ids"]);
  for (const Arguments &options : {stored, f32}) {
    const std::string executable = compile(smolLm2, options);
    ASSERT_NE(executable, "");
    const Tensor together = runLogits(executable, batch, {"--cached"})["logits"];
    ASSERT_EQ(together.shape.size(), 3u);
    for (size_t row = 0; row < batch.rows.size(); ++row) {
      const Tensor alone = runLogits(executable, {{batch.rows[row]}}, {"--cached"})["logits"];
      std::vector<double> values = slice(together.values, row, batch.rows.size());
      values.resize(alone.values.size());
      const Difference difference = compare(values, alone.values);
      EXPECT_EQ(difference.max, 0) << "row " << row << (options.empty() ? ", stored" : ", f32");
    }
  }
}

// All texts, from either form of the tokenizer.
TEST_F(SmolLm2, TokenizesAsTransformers) {
  const nlohmann::json cases = readJson(golden + "tokenization.json")["cases"];
  nlohmann::json texts = nlohmann::json::array();
  for (const nlohmann::json &entry : cases)
    texts.push_back(entry["text"]);
  ASSERT_EQ(texts.size(), 164u);
  const std::string file = scratch("texts.json");
  std::ofstream(file) << texts;
  for (const std::string &tokenizer : {weights, golden + "tokenizer.json"}) {
    const nlohmann::json results =
        runJson(compiler, {"tokenize", "--tokenizer", tokenizer, "--batch-json", file, "--json"});
    ASSERT_EQ(results.size(), cases.size()) << tokenizer;
    for (size_t i = 0; i < cases.size(); ++i) {
      EXPECT_EQ(results[i]["ids"], cases[i]["ids"]) << tokenizer << " " << cases[i]["text"];
      EXPECT_EQ(results[i]["decoded"], cases[i]["decoded"]) << tokenizer << " " << cases[i]["text"];
    }
  }
}

// The executable carries the same tokenizer.
TEST_F(SmolLm2, ExecutableTokenizes) {
  const std::string executable = compile(smolLm2, stored);
  ASSERT_NE(executable, "");
  const nlohmann::json cases = readJson(golden + "tokenization.json")["cases"];
  for (size_t i = 1; i < cases.size(); i += 16) {
    const std::string text = cases[i]["text"];
    if (text.find('\0') != std::string::npos)
      continue; // no argument can hold it
    const std::vector<int64_t> ids = cases[i]["ids"];
    EXPECT_EQ(idsOf(runJson(executable, {"tokenize", "--json", "--", text})), ids) << text;
    const Result decoded = run(executable, {"detokenize", join(ids)});
    EXPECT_EQ(decoded.code, 0) << decoded.err;
    EXPECT_EQ(decoded.out, cases[i]["decoded"].get<std::string>() + "\n");
  }
}

// A text prompt: tokenized, continued, and back to text.
TEST_F(SmolLm2, ContinuesText) {
  const std::string executable = compile(smolLm2, f32);
  ASSERT_NE(executable, "");
  const nlohmann::json cases = readJson(golden + "greedy.json")["cases"];
  for (const nlohmann::json &entry : cases) {
    if (!entry["first_step_with_margin_below_0_05"].is_null())
      continue;
    const nlohmann::json result =
        runJson(executable, {"generate", "-n", "64", "--ignore-eos", "--json", "--",
                             entry["text"].get<std::string>()});
    EXPECT_EQ(result["prompt_ids"], entry["prompt_ids"]);
    EXPECT_EQ(result["text"], entry["text_out"]);
    const nlohmann::json ended = runJson(
        executable, {"generate", "-n", "64", "--json", "--", entry["text"].get<std::string>()});
    EXPECT_EQ(ended["finish_reason"], entry["eos_at"].is_null() ? "length" : "stop");
    return;
  }
  FAIL() << "no prompt without a close decision";
}

// `tenon run` on the weights themselves: the same model, compiled into the cache at first and found
// there next.
TEST_F(SmolLm2, RunsAGgufFile) {
  const std::vector<int64_t> prompt = readJson(golden + "greedy.json")["cases"][0]["prompt_ids"];
  const nlohmann::json expected = generate(compile(smolLm2, stored), prompt, 16);
  const char *before = std::getenv("TENON_CACHE");
  const std::string restored = before ? before : "";
  setenv("TENON_CACHE", scratch("cache").c_str(), 1);
  const Arguments arguments = {"run", weights, "--ids",        join(prompt),
                               "-n",  "16",    "--ignore-eos", "--json"};
  const Result first = run(compiler, arguments), second = run(compiler, arguments);
  before ? setenv("TENON_CACHE", restored.c_str(), 1) : unsetenv("TENON_CACHE");
  for (const Result &result : {first, second}) {
    ASSERT_EQ(result.code, 0) << result.err;
    const nlohmann::json json = nlohmann::json::parse(result.out, nullptr, false);
    ASSERT_TRUE(json.is_object()) << result.out;
    EXPECT_EQ(json["ids"], expected["ids"]);
    EXPECT_EQ(json["logprobs"], expected["logprobs"]);
  }
  EXPECT_NE(first.err, "");
  EXPECT_EQ(second.err, "");
}

} // namespace
