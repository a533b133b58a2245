// Small random models of many families, saved by transformers, against transformers'
// results.
//
//   model × backend, f32:  logits un-cached, through the cache, of a batch padded on either side;
//                          every layer's hidden state; greedy ids.   All within 2e-4.
#include "Support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

using namespace conformance;

namespace {

const double tolerance = 2e-4;

// The largest error of each computation.
struct Errors {
  double logits, cached, right, left, hidden;
};

class TinyModels : public testing::TestWithParam<std::tuple<std::string, std::string>> {
protected:
  static void TearDownTestSuite() {
    std::printf("%-20s %-10s %8s %8s %8s %8s %8s\n", "largest error", "backend", "logits", "cached",
                "right", "left", "hidden");
    for (const auto &[name, errors] : table())
      std::printf("%s %8.1e %8.1e %8.1e %8.1e %8.1e\n", name.c_str(), errors.logits, errors.cached,
                  errors.right, errors.left, errors.hidden);
    table().clear();
  }

  static std::vector<std::pair<std::string, Errors>> &table() {
    static std::vector<std::pair<std::string, Errors>> table;
    return table;
  }
};

std::string folderOf(const std::string &model) { return oracle + "tiny/" + model; }

Tensors goldenOf(const std::string &model) {
  return readTensors(folderOf(model) + "/golden.safetensors");
}

// The rows of a right-padded batch, cut to their lengths.
Batch batchOf(Tensors &golden) {
  Batch batch;
  const Tensor &ids = golden["batch.input_ids"], &mask = golden["batch.attention_mask"];
  const int64_t rows = ids.shape[0];
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> tokens = Tensor{{}, slice(ids.values, row, rows)}.integers();
    const std::vector<double> seen = slice(mask.values, row, rows);
    tokens.resize(std::count(seen.begin(), seen.end(), 1));
    batch.rows.push_back(tokens);
  }
  return batch;
}

// The golden logits [rows, columns, vocab], moved to where the batch has its tokens.
std::vector<double> placed(const Batch &batch, const Tensor &logits) {
  const int64_t columns = logits.shape[1], vocab = logits.shape[2];
  std::vector<double> values(logits.values.size(), 0);
  for (size_t row = 0; row < batch.rows.size(); ++row) {
    const auto from = logits.values.begin() + row * columns * vocab;
    std::copy(from, from + batch.rows[row].size() * vocab,
              values.begin() + (row * columns + batch.first(row)) * vocab);
  }
  return values;
}

// Of all hidden states, in units of max(1, rms of the layer's output).
double hiddenError(Tensors &result, Tensors &golden) {
  auto relative = [](const std::vector<double> &values, const std::vector<double> &golden) {
    return compare(values, golden).max / std::max(1.0, rms(golden));
  };
  if (result["hidden"].shape != golden["hidden"].shape)
    return INFINITY;
  double error = relative(result["hidden_final"].values, golden["hidden_final"].values);
  const int64_t layers = golden["hidden"].shape[0];
  for (int64_t i = 0; i < layers; ++i)
    error = std::max(error, relative(slice(result["hidden"].values, i, layers),
                                     slice(golden["hidden"].values, i, layers)));
  return error;
}

std::vector<int64_t> greedy(const std::string &executable, Tensors &golden) {
  const nlohmann::json json = runJson(
      executable, {"generate", "--ids", join(golden["input_ids"].integers()), "-n",
                   std::to_string(golden["greedy_ids"].values.size()), "--ignore-eos", "--json"});
  return json.value("ids", std::vector<int64_t>());
}

TEST_P(TinyModels, MatchTransformers) {
  const auto [model, backend] = GetParam();
  Tensors golden = goldenOf(model);
  const std::string executable =
      compile(folderOf(model), {"--target", backend, "--precision", "f32", "--emit-hidden"});
  ASSERT_NE(executable, "");

  const Batch one = {{golden["input_ids"].integers()}};
  Tensors result = runLogits(executable, one, {"--hidden"});
  Errors errors;
  errors.logits = compare(result["logits"].values, golden["logits"].values).max;
  errors.hidden = hiddenError(result, golden);
  errors.cached = compare(runLogits(executable, one, {"--cached"})["logits"].values,
                          golden["logits_cached"].values)
                      .max;
  Batch batch = batchOf(golden);
  EXPECT_EQ(placed(batch, golden["batch.logits"]), golden["batch.logits"].values);
  errors.right =
      compare(runLogits(executable, batch)["logits"].values, golden["batch.logits"].values).max;
  batch.padding = Batch::Left;
  errors.left =
      compare(runLogits(executable, batch)["logits"].values, placed(batch, golden["batch.logits"]))
          .max;

  EXPECT_LE(errors.logits, tolerance);
  EXPECT_LE(errors.cached, tolerance);
  EXPECT_LE(errors.right, tolerance);
  EXPECT_LE(errors.left, tolerance);
  EXPECT_LE(errors.hidden, tolerance);
  EXPECT_EQ(greedy(executable, golden), golden["greedy_ids"].integers());

  char name[64];
  std::snprintf(name, sizeof name, "%-20s %-10s", model.c_str(), backend.c_str());
  table().push_back({name, errors});
}

std::string nameOf(const testing::TestParamInfo<TinyModels::ParamType> &info) {
  std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Llama, TinyModels,
    testing::Combine(testing::Values("llama", "llama-tied", "llama-mha", "llama-mqa", "llama-bias",
                                     "llama-headdim", "llama-bf16", "llama-fp16-sharded",
                                     "llama-linear", "llama3-rope-scaling", "llama-yarn"),
                     testing::Values("reference", "cpu")),
    nameOf);

INSTANTIATE_TEST_SUITE_P(Qwen, TinyModels,
                         testing::Combine(testing::Values("qwen2", "qwen2-tied", "qwen3"),
                                          testing::Values("reference", "cpu")),
                         nameOf);

INSTANTIATE_TEST_SUITE_P(Mistral, TinyModels,
                         testing::Combine(testing::Values("mistral", "mistral-nowindow"),
                                          testing::Values("reference", "cpu")),
                         nameOf);

INSTANTIATE_TEST_SUITE_P(Gemma, TinyModels,
                         testing::Combine(testing::Values("gemma", "gemma2", "gemma3"),
                                          testing::Values("reference", "cpu")),
                         nameOf);

INSTANTIATE_TEST_SUITE_P(Others, TinyModels,
                         testing::Combine(testing::Values("smollm3", "granite", "phi3", "olmo2"),
                                          testing::Values("reference", "cpu")),
                         nameOf);

INSTANTIATE_TEST_SUITE_P(Experts, TinyModels,
                         testing::Combine(testing::Values("mixtral", "qwen2_moe", "qwen3_moe",
                                                          "gpt_oss", "deepseek_v2",
                                                          "deepseek_v2-lite", "deepseek_v3"),
                                          testing::Values("reference", "cpu")),
                         nameOf);

INSTANTIATE_TEST_SUITE_P(LayerNorm, TinyModels,
                         testing::Combine(testing::Values("gpt2", "opt", "gpt_neox",
                                                          "gpt_neox-seqres", "phi", "gptj",
                                                          "stablelm"),
                                          testing::Values("reference", "cpu")),
                         nameOf);

// Norms after the blocks, and an embedding narrower than the rest: hidden states differ in width,
// so they cannot be had.
TEST(TinyModel, ProjectedEmbedding) {
  const std::string folder = folderOf("opt-postln-proj");
  Tensors golden = goldenOf("opt-postln-proj");
  expectRefused(run(compiler, {"compile", folder, "--emit-hidden", "-o", scratch("x")}), 1,
                "'hidden_final' has 48 columns and 'hidden' 64");
  for (const char *backend : {"reference", "cpu"}) {
    const std::string executable = compile(folder, {"--target", backend, "--precision", "f32"});
    ASSERT_NE(executable, "");
    const Batch one = {{golden["input_ids"].integers()}};
    EXPECT_LE(compare(runLogits(executable, one)["logits"].values, golden["logits"].values).max,
              tolerance);
    EXPECT_LE(compare(runLogits(executable, one, {"--cached"})["logits"].values,
                      golden["logits_cached"].values)
                  .max,
              tolerance);
    Batch batch = batchOf(golden);
    for (Batch::Padding padding : {Batch::Right, Batch::Left}) {
      batch.padding = padding;
      EXPECT_LE(compare(runLogits(executable, batch)["logits"].values,
                        placed(batch, golden["batch.logits"]))
                    .max,
                tolerance);
    }
    EXPECT_EQ(greedy(executable, golden), golden["greedy_ids"].integers());
  }
}

// Weights, activations and cache in bf16: as far from f32 as transformers' own bf16 run.
TEST(TinyModel, InBf16) {
  Tensors golden = goldenOf("llama-bf16");
  const double expected =
      readJson(folderOf("llama-bf16") + "/golden.json")["bf16_rms_diff"].get<double>();
  const std::string executable = compile(folderOf("llama-bf16"), {});
  ASSERT_NE(executable, "");
  EXPECT_EQ(runJson(executable, {"info", "--json"}).value("kv_dtype", ""), "bf16");
  const Batch one = {{golden["input_ids"].integers()}};
  for (const Arguments &options : {Arguments{}, Arguments{"--cached"}}) {
    const Difference error =
        compare(runLogits(executable, one, options)["logits"].values, golden["logits"].values);
    std::printf("bf16: rms %.4f max %.4f (transformers: rms %.4f)\n", error.rms, error.max,
                expected);
    EXPECT_LE(error.rms, 2 * expected);
    EXPECT_LE(error.max, 6 * expected);
    EXPECT_GT(error.rms, 1e-4) << "this was computed in f32";
  }
}

// The same of models that choose experts: a choice that is close may fall otherwise.
TEST(TinyModel, ExpertsInBf16) {
  for (const char *model : {"mixtral", "qwen2_moe", "qwen3_moe", "gpt_oss", "deepseek_v2",
                            "deepseek_v2-lite", "deepseek_v3"}) {
    Tensors golden = goldenOf(model);
    const nlohmann::json json = readJson(folderOf(model) + "/golden.json");
    const double expected = json["bf16_rms_diff"], largest = json["bf16_maxdiff"];
    const std::string executable = compile(folderOf(model), {"--precision", "bf16"});
    ASSERT_NE(executable, "");
    for (const Arguments &options : {Arguments{}, Arguments{"--cached"}}) {
      const Difference error = compare(
          runLogits(executable, {{golden["input_ids"].integers()}}, options)["logits"].values,
          golden["logits"].values);
      std::printf("%s in bf16: rms %.4f max %.4f (transformers: rms %.4f)\n", model, error.rms,
                  error.max, expected);
      EXPECT_LE(error.rms, 2 * expected) << model;
      EXPECT_LE(error.max, std::max(6 * expected, 1.5 * largest)) << model;
    }
  }
}

// A folder written out as a model file is the same model.
TEST(TinyModel, ThroughAModelFile) {
  for (const char *model :
       {"llama-bias", "llama-fp16-sharded", "qwen3", "smollm3", "gemma3", "gpt2", "gpt_neox"}) {
    Tensors golden = goldenOf(model);
    const std::string file = scratch(std::string(model) + ".yaml");
    const Result imported = run(compiler, {"import", folderOf(model), "-o", file});
    ASSERT_EQ(imported.code, 0) << imported.err;
    const std::string executable = compile(file, {"--precision", "f32"});
    ASSERT_NE(executable, "");
    const Difference error =
        compare(runLogits(executable, {{golden["input_ids"].integers()}})["logits"].values,
                golden["logits"].values);
    EXPECT_LE(error.max, tolerance) << model;
  }
}

// Code for older processors computes the same.
TEST(TinyModel, OnOlderProcessors) {
  Tensors golden = goldenOf("llama");
  for (const char *cpu : {"x86-64-v3", "x86-64-v2"}) {
    const std::string executable =
        compile(folderOf("llama"), {"--mcpu", cpu, "--precision", "f32"});
    ASSERT_NE(executable, "") << cpu;
    EXPECT_EQ(runJson(executable, {"info", "--json"}).value("variant", ""), cpu);
    const Batch one = {{golden["input_ids"].integers()}};
    EXPECT_LE(compare(runLogits(executable, one)["logits"].values, golden["logits"].values).max,
              tolerance)
        << cpu;
    EXPECT_LE(compare(runLogits(executable, one, {"--cached"})["logits"].values,
                      golden["logits_cached"].values)
                  .max,
              tolerance)
        << cpu;
    EXPECT_EQ(greedy(executable, golden), golden["greedy_ids"].integers()) << cpu;
  }
}

} // namespace
