// Small random models of every family, saved by transformers, against transformers' results. Every
// folder of the oracle is a case; which computations there are, its golden tensors say.
//
//   every backend, f32       logits un-cached and through the cache, of a batch padded on either
//                            side, past the original context; hidden states; greedy ids
//   cpu, cuda: bf16, int8    logits
#include "Support.h"
#include "Table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>

using namespace conformance;

namespace {

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

// What greedy generation should give: every token the best after all before it, computed at once.
std::vector<int64_t> greedyAtOnce(const std::string &executable, std::vector<int64_t> ids,
                                  size_t count) {
  const size_t prompt = ids.size();
  while (ids.size() < prompt + count) {
    Tensors result = runLogits(executable, {{ids}});
    const std::vector<double> last =
        slice(result["logits"].values, int64_t(ids.size()) - 1, int64_t(ids.size()));
    ids.push_back(std::max_element(last.begin(), last.end()) - last.begin());
  }
  return {ids.begin() + int64_t(prompt), ids.end()};
}

class TinyModels : public ModelTest {
protected:
  void checkInFull(const std::string &backend) {
    row = GetParam() + " " + backend + " f32";
    const std::string executable =
        compile(folderOf(GetParam()), {"--target", backend, "--precision", "f32", "--emit-hidden"});
    ASSERT_NE(executable, "");

    const Batch one = {{golden["input_ids"].integers()}};
    Tensors result = runLogits(executable, one, {"--hidden"});
    check("logits", compare(result["logits"].values, golden["logits"].values).max);
    check("hidden", hiddenError(result, golden));
    check("cached", compare(runLogits(executable, one, {"--cached"})["logits"].values,
                            golden["logits_cached"].values)
                        .max);
    Batch batch = batchOf(golden);
    for (Batch::Padding padding : {Batch::Right, Batch::Left}) {
      batch.padding = padding;
      check("batch", compare(runLogits(executable, batch)["logits"].values,
                             placed(batch, golden["batch.logits"]))
                         .max);
    }
    if (golden.count("long.input_ids")) {
      const Batch longer = {{golden["long.input_ids"].integers()}};
      check("long",
            compare(runLogits(executable, longer)["logits"].values, golden["long.logits"].values)
                .max);
    }
    std::vector<int64_t> expected = golden["greedy_ids"].integers();
    // Where longrope computes a text anew, transformers 4.57 lets its tokens see those behind them.
    // So golden ids count up to there, and then what the whole text gives at once.
    if (golden.count("greedy_ids_plain_cache")) {
      const std::vector<int64_t> plain = golden["greedy_ids_plain_cache"].integers();
      const auto same = std::mismatch(expected.begin(), expected.end(), plain.begin()).first;
      const std::vector<int64_t> atOnce =
          greedyAtOnce(executable, golden["input_ids"].integers(), expected.size());
      EXPECT_TRUE(std::equal(expected.begin(), same, atOnce.begin()));
      expected = atOnce;
    }
    checkGreedy(executable, expected);
    if (backend == "cuda") { // where nobody asks for probabilities the device draws
      const Result plain = run(executable, {"--ids", join(golden["input_ids"].integers()), "-n",
                                            std::to_string(expected.size()), "--ignore-eos"});
      std::istringstream ids(plain.out);
      EXPECT_EQ(std::vector<int64_t>(std::istream_iterator<int64_t>(ids), {}), expected);
    }
  }

  void checkInBf16(const std::string &backend) {
    const std::string executable =
        compile(folderOf(GetParam()), {"--target", backend, "--precision", "bf16"});
    ASSERT_NE(executable, "");
    EXPECT_EQ(runJson(executable, {"info", "--json"}).value("kv_dtype", ""), "bf16");
    row = GetParam() + " " + backend + " bf16 (rms)";
    const Batch one = {{golden["input_ids"].integers()}};
    checkBf16("logits", runLogits(executable, one)["logits"].values, golden["logits"]);
    checkBf16("cached", runLogits(executable, one, {"--cached"})["logits"].values,
              golden["logits_cached"]);
  }

  // Weights in groups of 8 bits, and 8-bit activations: the error stays small beside the logits,
  // and where one token leads clearly it still does. Of models with experts only the median row is
  // looked at: elsewhere another expert may have been chosen.
  void checkInInt8(const std::string &backend) {
    const std::string executable =
        compile(folderOf(GetParam()), {"--target", backend, "--precision", "int8"});
    ASSERT_NE(executable, "");
    row = GetParam() + " " + backend + " int8 (rms / std)";
    const Tensor &expected = golden["logits"];
    const std::vector<double> logits =
        runLogits(executable, {{golden["input_ids"].integers()}})["logits"].values;
    ASSERT_EQ(logits.size(), expected.values.size());
    const int64_t rows = expected.shape[0];
    const bool chooses = choosesExperts(GetParam());
    int clear = 0, same = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const std::vector<double> wanted = slice(expected.values, i, rows),
                                given = slice(logits, i, rows);
      const auto best = std::max_element(wanted.begin(), wanted.end());
      std::vector<double> sorted = wanted;
      std::nth_element(sorted.begin(), sorted.begin() + 1, sorted.end(), std::greater<>());
      if (*best - sorted[1] <= 0.3)
        continue;
      ++clear;
      same += std::max_element(given.begin(), given.end()) - given.begin() == best - wanted.begin();
    }
    const double error = chooses ? medianRowError(logits, expected.values, rows)
                                 : compare(logits, expected.values).rms;
    // Tensor cores round queries and probabilities, too.
    const double bound = (backend == "cuda" ? 1.2 : 1) * getInt8Bound();
    check("logits", error / deviation(expected.values), bound);
    EXPECT_GE(same, (chooses ? 0.75 : 0.95) * clear);
  }
};

TEST_P(TinyModels, OnTheReference) { checkInFull("reference"); }
TEST_P(TinyModels, OnTheCpu) { checkInFull("cpu"); }
TEST_P(TinyModels, OnCuda) { checkInFull("cuda"); }
TEST_P(TinyModels, InBf16) { checkInBf16("cpu"); }
TEST_P(TinyModels, InBf16OnCuda) { checkInBf16("cuda"); }
TEST_P(TinyModels, InInt8) { checkInInt8("cpu"); }
TEST_P(TinyModels, InInt8OnCuda) { checkInInt8("cuda"); }

// A folder written out as a model file is the same model.
TEST_P(TinyModels, ThroughAModelFile) {
  const std::string file = scratch(GetParam() + ".yaml");
  const Result imported = run(compiler, {"import", folderOf(GetParam()), "-o", file});
  ASSERT_EQ(imported.code, 0) << imported.err;
  const std::string executable = compile(file, {"--target", "reference", "--precision", "f32"});
  ASSERT_NE(executable, "");
  row = GetParam() + " reference f32";
  check("import",
        compare(runLogits(executable, {{golden["input_ids"].integers()}})["logits"].values,
                golden["logits"].values)
            .max);
}

INSTANTIATE_TEST_SUITE_P(Oracle, TinyModels, testing::ValuesIn(listModels("decoder")), nameOf);

// Texts longer than the original context, token by token across its end. Where a sequence is
// computed anew as it crosses, what follows is what it would be at once.
TEST(TinyModel, BeyondTheOriginalContext) {
  for (const char *model : {"llama3-rope-scaling", "llama-yarn", "phi3-longrope"}) {
    SCOPED_TRACE(model);
    Tensors golden = goldenOf(model);
    for (const char *backend : {"reference", "cpu"}) {
      const std::string executable =
          compile(folderOf(model), {"--target", backend, "--precision", "f32"});
      ASSERT_NE(executable, "");
      const Batch one = {{golden["long.input_ids"].integers()}};
      const std::vector<double> &wanted = golden["long.logits"].values;
      const int64_t tokens = golden["long.input_ids"].shape[1];
      std::vector<double> cached = runLogits(executable, one, {"--cached"})["logits"].values;
      const int64_t vocab = int64_t(cached.size()) / tokens;
      const int64_t first = model == std::string("phi3-longrope") ? 32 : 0;
      EXPECT_LE(compare({cached.begin() + first * vocab, cached.end()},
                        {wanted.begin() + first * vocab, wanted.end()})
                    .max,
                tolerance);
    }
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
    const std::vector<int64_t> expected = golden["greedy_ids"].integers();
    EXPECT_EQ(generate(executable, golden["input_ids"].integers(), expected.size()), expected)
        << cpu;
  }
}

} // namespace
