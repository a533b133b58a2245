// Small random encoders and encoder-decoders, saved by transformers, against transformers' results.
//
//   encoder × backend, f32:           logits, of a batch padded on either side, hidden states, loss
//   encoder-decoder × backend, f32:   the same, through the cache, and greedy ids
#include "Support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

using namespace conformance;

namespace {

const double tolerance = 2e-4;

using Case = std::tuple<std::string, std::string>; // model, backend

std::string folderOf(const std::string &model) { return oracle + "tiny/" + model; }

std::string compileF32(const Case &model) {
  return compile(folderOf(std::get<0>(model)),
                 {"--target", std::get<1>(model), "--precision", "f32", "--emit-hidden"});
}

Tensors goldenOf(const Case &model) {
  return readTensors(folderOf(std::get<0>(model)) + "/golden.safetensors");
}

// The tensors of these names that there are; "batch." before them is left out.
Tensors pick(const Tensors &golden, const std::string &prefix,
             const std::vector<std::string> &names) {
  Tensors picked;
  for (const std::string &name : names)
    if (auto found = golden.find(prefix + name); found != golden.end())
      picked[name] = found->second;
  return picked;
}

const std::vector<std::string> inputNames = {"input_ids", "attention_mask", "token_type_ids",
                                             "decoder_input_ids"};

// Right padding to left padding: rows of these tensors are turned by as much as the mask has zeros.
void turn(Tensors &tensors, const Tensor &mask, const std::vector<std::string> &names) {
  const int64_t rows = mask.shape[0], columns = mask.shape[1];
  for (const std::string &name : names) {
    if (!tensors.count(name))
      continue;
    std::vector<double> &values = tensors[name].values;
    const int64_t width = static_cast<int64_t>(values.size()) / rows;
    for (int64_t row = 0; row < rows; ++row) {
      const auto seen = mask.values.begin() + row * columns;
      const int64_t length = std::count(seen, seen + columns, 1) * (width / columns);
      const auto begin = values.begin() + row * width;
      std::rotate(begin, begin + length, begin + width);
    }
  }
}

double errorOf(const Tensor &result, const Tensor &golden) {
  return compare(result.values, golden.values).max;
}

// Of hidden states, in units of max(1, rms of the layer's output).
double hiddenError(Tensors &result, Tensors &golden, const std::string &prefix) {
  const Tensor &states = golden[prefix + "hidden"];
  if (result[prefix + "hidden"].shape != states.shape)
    return INFINITY;
  double error = errorOf(result[prefix + "hidden_final"], golden[prefix + "hidden_final"]) /
                 std::max(1.0, rms(golden[prefix + "hidden_final"].values));
  for (int64_t i = 0; i < states.shape[0]; ++i) {
    const std::vector<double> layer = slice(states.values, i, states.shape[0]);
    error = std::max(
        error, compare(slice(result[prefix + "hidden"].values, i, states.shape[0]), layer).max /
                   std::max(1.0, rms(layer)));
  }
  return error;
}

// "loss 6.285533, ..."
double lossOf(const std::string &executable, const Tensors &golden) {
  Tensors inputs = pick(golden, "", inputNames);
  inputs["labels"] = golden.at("labels");
  const std::string input = scratch("labelled.safetensors");
  writeTensors(input, inputs);
  const Result result =
      run(executable, {"logits", "--input", input, "--output", scratch("out.safetensors")});
  double loss = NAN;
  EXPECT_EQ(std::sscanf(result.out.c_str(), "loss %lf", &loss), 1) << result.out << result.err;
  return loss;
}

double expectedLoss(const Case &model) {
  return readJson(folderOf(std::get<0>(model)) + "/golden.json")["loss"].get<double>();
}

std::string nameOf(const testing::TestParamInfo<Case> &info) {
  std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class Encoders : public testing::TestWithParam<Case> {};

TEST_P(Encoders, MatchTransformers) {
  Tensors golden = goldenOf(GetParam());
  const std::string executable = compileF32(GetParam());
  ASSERT_NE(executable, "");
  Tensors result = runInputs(executable, pick(golden, "", inputNames), {"--hidden"});
  EXPECT_LE(errorOf(result["logits"], golden["logits"]), tolerance);
  EXPECT_LE(hiddenError(result, golden, ""), tolerance);

  Tensors batch = pick(golden, "batch.", inputNames), wanted = pick(golden, "batch.", {"logits"});
  EXPECT_LE(errorOf(runInputs(executable, batch)["logits"], wanted["logits"]), tolerance);
  const Tensor mask = batch["attention_mask"];
  turn(batch, mask, inputNames);
  turn(wanted, mask, {"logits"});
  EXPECT_LE(errorOf(runInputs(executable, batch)["logits"], wanted["logits"]), tolerance);
  EXPECT_NEAR(lossOf(executable, golden), expectedLoss(GetParam()), 1e-4);

  const std::string input = scratch("in.safetensors"), output = scratch("out.safetensors");
  expectRefused(run(executable, {"logits", "--input", input, "--output", output, "--cached"}), 1,
                "is an encoder, which sees whole texts and has no cache");
  expectRefused(run(executable, {"generate", "--ids", "1,2"}), 1,
                "is an encoder, which does not continue texts");
}

INSTANTIATE_TEST_SUITE_P(Bert, Encoders,
                         testing::Combine(testing::Values("bert", "roberta"),
                                          testing::Values("reference", "cpu")),
                         nameOf);

class EncoderDecoders : public testing::TestWithParam<Case> {};

TEST_P(EncoderDecoders, MatchTransformers) {
  Tensors golden = goldenOf(GetParam());
  const std::string executable = compileF32(GetParam());
  ASSERT_NE(executable, "");
  const Tensors one = pick(golden, "", inputNames);
  Tensors result = runInputs(executable, one, {"--hidden"});
  EXPECT_LE(errorOf(result["logits"], golden["logits"]), tolerance);
  EXPECT_LE(hiddenError(result, golden, "enc_"), tolerance);
  EXPECT_LE(hiddenError(result, golden, "dec_"), tolerance);
  EXPECT_LE(errorOf(runInputs(executable, one, {"--cached"})["logits"], golden["logits_cached"]),
            tolerance);

  // The mask is the encoder's.
  Tensors batch = pick(golden, "batch.", inputNames);
  const Tensor &wanted = golden["batch.logits"];
  EXPECT_LE(errorOf(runInputs(executable, batch)["logits"], wanted), tolerance);
  EXPECT_LE(errorOf(runInputs(executable, batch, {"--cached"})["logits"], wanted), tolerance);
  const Tensor mask = batch["attention_mask"];
  turn(batch, mask, {"input_ids", "attention_mask"});
  EXPECT_LE(errorOf(runInputs(executable, batch)["logits"], wanted), tolerance);
  EXPECT_NEAR(lossOf(executable, golden), expectedLoss(GetParam()), 1e-4);

  const nlohmann::json generated = runJson(
      executable, {"generate", "--ids", join(golden["input_ids"].integers()), "-n",
                   std::to_string(golden["greedy_ids"].values.size()), "--ignore-eos", "--json"});
  EXPECT_EQ(generated.value("ids", std::vector<int64_t>()), golden["greedy_ids"].integers());
}

INSTANTIATE_TEST_SUITE_P(Seq2Seq, EncoderDecoders,
                         testing::Combine(testing::Values("bart", "marian", "t5", "t5-v1_1"),
                                          testing::Values("reference", "cpu")),
                         nameOf);

// Weights, activations and cache in bf16: as far from f32 as transformers' own bf16 run.
TEST(Encoder, InBf16) {
  for (const char *model : {"bert", "roberta", "bart", "marian", "t5", "t5-v1_1"}) {
    const Tensors golden = goldenOf({model, ""});
    const double expected =
        readJson(folderOf(model) + "/golden.json")["bf16_rms_diff"].get<double>();
    const std::string executable = compile(folderOf(model), {"--precision", "bf16"});
    ASSERT_NE(executable, "");
    const Difference error =
        compare(runInputs(executable, pick(golden, "", inputNames))["logits"].values,
                golden.at("logits").values);
    std::printf("%-8s bf16: rms %.4f max %.4f (transformers: rms %.4f)\n", model, error.rms,
                error.max, expected);
    EXPECT_LE(error.rms, 2 * expected) << model;
    EXPECT_LE(error.max, 6 * expected) << model;
    EXPECT_GT(error.rms, 1e-4) << model << " was computed in f32";
  }
}

} // namespace
