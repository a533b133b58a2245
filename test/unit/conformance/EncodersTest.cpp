// Small random encoders and encoder-decoders, saved by transformers, against transformers' results.
//
//   encoder × backend, f32:           logits, of a batch padded on either side, hidden states, loss
//   encoder-decoder × backend, f32:   the same, through the cache, and greedy ids
#include "Support.h"
#include "Table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace conformance;

namespace {

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

class EncoderTest : public ModelTest {
protected:
  // f32, with all hidden states.
  std::string compileFor(const std::string &backend) {
    row = GetParam() + " " + backend + " f32";
    return compile(folderOf(GetParam()),
                   {"--target", backend, "--precision", "f32", "--emit-hidden"});
  }

  void checkLoss(const std::string &executable) {
    const double expected = readJson(folderOf(GetParam()) + "/golden.json")["loss"];
    EXPECT_NEAR(lossOf(executable, golden), expected, 1e-4);
  }

  void checkInBf16(const std::string &backend) {
    const std::string executable =
        compile(folderOf(GetParam()), {"--target", backend, "--precision", "bf16"});
    ASSERT_NE(executable, "");
    row = GetParam() + " " + backend + " bf16 (rms)";
    checkBf16("logits", runInputs(executable, pick(golden, "", inputNames))["logits"].values,
              golden.at("logits"));
  }

  void checkInInt8(const std::string &backend) {
    const std::string executable =
        compile(folderOf(GetParam()), {"--target", backend, "--precision", "int8"});
    ASSERT_NE(executable, "");
    row = GetParam() + " " + backend + " int8 (rms / std)";
    const std::vector<double> &expected = golden.at("logits").values;
    const Difference error =
        compare(runInputs(executable, pick(golden, "", inputNames))["logits"].values, expected);
    check("logits", error.rms / deviation(expected), getInt8Bound());
  }
};

class Encoders : public EncoderTest {
protected:
  void checkInFull(const std::string &backend) {
    const std::string executable = compileFor(backend);
    ASSERT_NE(executable, "");
    Tensors result = runInputs(executable, pick(golden, "", inputNames), {"--hidden"});
    check("logits", errorOf(result["logits"], golden["logits"]));
    check("hidden", hiddenError(result, golden));

    Tensors batch = pick(golden, "batch.", inputNames), wanted = pick(golden, "batch.", {"logits"});
    check("batch", errorOf(runInputs(executable, batch)["logits"], wanted["logits"]));
    const Tensor mask = batch["attention_mask"];
    turn(batch, mask, inputNames);
    turn(wanted, mask, {"logits"});
    check("batch", errorOf(runInputs(executable, batch)["logits"], wanted["logits"]));
    checkLoss(executable);

    const std::string input = scratch("in.safetensors"), output = scratch("out.safetensors");
    expectRefused(run(executable, {"logits", "--input", input, "--output", output, "--cached"}), 1,
                  "is an encoder, which sees whole texts and has no cache");
    expectRefused(run(executable, {"generate", "--ids", "1,2"}), 1,
                  "is an encoder, which does not continue texts");
  }
};

TEST_P(Encoders, OnTheReference) { checkInFull("reference"); }
TEST_P(Encoders, OnTheCpu) { checkInFull("cpu"); }
TEST_P(Encoders, OnCuda) { checkInFull("cuda"); }
TEST_P(Encoders, InBf16) { checkInBf16("cpu"); }
TEST_P(Encoders, InBf16OnCuda) { checkInBf16("cuda"); }
TEST_P(Encoders, InInt8) { checkInInt8("cpu"); }
TEST_P(Encoders, InInt8OnCuda) { checkInInt8("cuda"); }
INSTANTIATE_TEST_SUITE_P(Oracle, Encoders, testing::ValuesIn(listModels("encoder")), nameOf);

class EncoderDecoders : public EncoderTest {
protected:
  void checkInFull(const std::string &backend) {
    const std::string executable = compileFor(backend);
    ASSERT_NE(executable, "");
    const Tensors one = pick(golden, "", inputNames);
    Tensors result = runInputs(executable, one, {"--hidden"});
    check("logits", errorOf(result["logits"], golden["logits"]));
    check("hidden", hiddenError(result, golden, "enc_"));
    check("hidden", hiddenError(result, golden, "dec_"));
    check("cached",
          errorOf(runInputs(executable, one, {"--cached"})["logits"], golden["logits_cached"]));

    // The mask is the encoder's.
    Tensors batch = pick(golden, "batch.", inputNames);
    const Tensor &wanted = golden["batch.logits"];
    check("batch", errorOf(runInputs(executable, batch)["logits"], wanted));
    check("batch", errorOf(runInputs(executable, batch, {"--cached"})["logits"], wanted));
    const Tensor mask = batch["attention_mask"];
    turn(batch, mask, {"input_ids", "attention_mask"});
    check("batch", errorOf(runInputs(executable, batch)["logits"], wanted));
    checkLoss(executable);
    checkGreedy(executable, golden["greedy_ids"].integers());
  }
};

TEST_P(EncoderDecoders, OnTheReference) { checkInFull("reference"); }
TEST_P(EncoderDecoders, OnTheCpu) { checkInFull("cpu"); }
TEST_P(EncoderDecoders, OnCuda) { checkInFull("cuda"); }
TEST_P(EncoderDecoders, InBf16) { checkInBf16("cpu"); }
TEST_P(EncoderDecoders, InBf16OnCuda) { checkInBf16("cuda"); }
TEST_P(EncoderDecoders, InInt8) { checkInInt8("cpu"); }
TEST_P(EncoderDecoders, InInt8OnCuda) { checkInInt8("cuda"); }
INSTANTIATE_TEST_SUITE_P(Oracle, EncoderDecoders, testing::ValuesIn(listModels("encdec")), nameOf);

} // namespace
