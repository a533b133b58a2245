// The int8 KV cache under small random models of every kind of attention: how far logits are from
// golden ones beside a bf16 cache, and that the cpu's kernels store and read what the reference
// does.
#include "Support.h"
#include "Table.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace conformance;

namespace {

class Int8Cache : public ModelTest {
protected:
  // Weights and activations in f32, so that the cache is all that is rounded.
  std::string compileWith(const std::string &target, const std::string &type) {
    return compile(folderOf(GetParam()),
                   {"--target", target, "--precision", "f32", "--kv-dtype", type});
  }

  std::vector<double> logitsOf(const std::string &executable, const Arguments &options) {
    Tensors inputs;
    for (const char *name : {"input_ids", "attention_mask", "decoder_input_ids"})
      if (auto found = golden.find(name); found != golden.end())
        inputs[name] = found->second;
    return runInputs(executable, inputs, options)["logits"].values;
  }

  static std::string columnOf(const Arguments &options) {
    return options.empty() ? "logits" : "cached";
  }
  const Tensor &wantedOf(const Arguments &options) {
    return golden[options.empty() ? "logits" : "logits_cached"];
  }
  int64_t rowsOf(const Arguments &options) {
    const Tensor &wanted = wantedOf(options);
    return int64_t(wanted.values.size()) / wanted.shape.back();
  }
  double errorOf(const std::vector<double> &given, const Arguments &options) {
    return medianRowError(given, wantedOf(options).values, rowsOf(options));
  }
  void checkError(const std::string &what, double error, double bf16Error,
                  const Arguments &options) {
    row = GetParam() + " " + what;
    check(columnOf(options), error / bf16Error, 6);
    EXPECT_GT(error, 1e-5) << "this was cached in f32";
  }
};

TEST_P(Int8Cache, IsNearlyAsGoodAsBf16) {
  const std::string int8 = compileWith("cpu", "int8"), bf16 = compileWith("cpu", "bf16"),
                    reference = compileWith("reference", "int8");
  ASSERT_NE(int8, "");
  ASSERT_NE(bf16, "");
  ASSERT_NE(reference, "");
  EXPECT_EQ(runJson(int8, {"info", "--json"}).value("kv_dtype", ""), "int8");
  EXPECT_LT(runJson(int8, {"info", "--json"}).value("kv_bytes_per_token", 0),
            runJson(bf16, {"info", "--json"}).value("kv_bytes_per_token", 0));
  for (const Arguments &options : {Arguments{}, Arguments{"--cached"}}) {
    const std::vector<double> given = logitsOf(int8, options);
    const double bf16Error = errorOf(logitsOf(bf16, options), options);
    checkError("int8 cache (error / bf16's)", errorOf(given, options), bf16Error, options);
    // In decode the kernels round nothing else; in prefill some round queries and weights to bf16.
    row = GetParam() + " int8 cache, cpu - reference";
    check(columnOf(options),
          medianRowError(given, logitsOf(reference, options), rowsOf(options)) / bf16Error,
          options.empty() ? 2 : 0.05);
  }
}

// On CUDA values times their scales are rounded to bf16, and so are keys in prefill.
TEST_P(Int8Cache, OnCuda) {
  const std::string cuda = compileWith("cuda", "int8"), bf16 = compileWith("cpu", "bf16");
  ASSERT_NE(cuda, "");
  ASSERT_NE(bf16, "");
  for (const Arguments &options : {Arguments{}, Arguments{"--cached"}})
    checkError("int8 cache on cuda (error / bf16's)", errorOf(logitsOf(cuda, options), options),
               errorOf(logitsOf(bf16, options), options), options);
}

// Grouped and single key heads, windows, latent rows, score bias, memory.
INSTANTIATE_TEST_SUITE_P(Oracle, Int8Cache,
                         testing::Values("llama", "llama-mha", "llama-mqa", "mistral", "gemma3",
                                         "deepseek_v2", "falcon-alibi", "gpt2", "bart", "t5"),
                         nameOf);

// Beams share blocks of the cache and copy those that they write to: each has the score that its
// text has by itself. Without bf16 instructions prefill and decode round alike.
TEST(Int8Caches, BeamsCopyBlocks) {
  Tensors golden = goldenOf("llama");
  const std::string executable = compile(
      folderOf("llama"), {"--precision", "f32", "--kv-dtype", "int8", "--mcpu", "x86-64-v3"});
  ASSERT_NE(executable, "");
  const std::vector<int64_t> prompt = golden["input_ids"].integers();
  const nlohmann::json json =
      runJson(executable, {"generate", "--ids", join(prompt), "-n", "12", "--beams", "4",
                           "--length-penalty", "0", "--json"});
  ASSERT_EQ(json["beams"].size(), 4u);
  for (const nlohmann::json &beam : json["beams"]) {
    std::vector<int64_t> ids = prompt;
    for (int64_t id : beam["ids"])
      ids.push_back(id);
    const Tensor logits = runLogits(executable, {{ids}}, {"--cached"})["logits"];
    const int64_t tokens = int64_t(ids.size());
    double score = 0;
    for (int64_t i = int64_t(prompt.size()); i < tokens; ++i) {
      const std::vector<double> row = slice(logits.values, i - 1, tokens);
      double sum = 0;
      for (double value : row)
        sum += std::exp(value);
      score += row[ids[i]] - std::log(sum);
    }
    EXPECT_NEAR(score, beam["score"].get<double>(), 1e-3);
  }
}

} // namespace
