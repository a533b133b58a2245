// A tiny model in each type of GGUF, embeddings and all: run as stored, its logits are those of
// the same file compiled to f32: in the reference to f32's own error, on the CPU but for
// activations of 8 bits and, of some types, scales rounded to 16.
#include "Support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>

using namespace conformance;

namespace {

struct Type {
  const char *name;
  uint32_t number;
  size_t values, bytes;       // of a block
  std::vector<size_t> halves; // where a block has its scale, and its minimum
  double scale, min;          // that give values of mean near 0 and deviation near 1
};

const Type types[] = {
    {"q4_0", 2, 32, 18, {0}, 0.217, 0},
    {"q4_1", 3, 32, 20, {0, 2}, 0.217, -1.63},
    {"q5_0", 6, 32, 22, {0}, 0.108, 0},
    {"q5_1", 7, 32, 24, {0, 2}, 0.108, -1.68},
    {"q8_0", 8, 32, 34, {0}, 0.0135, 0},
    {"q2_k", 10, 256, 84, {80, 82}, 0.086, 0.13},
    {"q3_k", 11, 256, 110, {108}, 0.023, 0},
    {"q4_k", 12, 256, 144, {0, 2}, 0.0055, 0.041},
    {"q5_k", 13, 256, 176, {0, 2}, 0.0027, 0.042},
    {"q6_k", 14, 256, 210, {208}, 0.00073, 0},
    {"iq4_nl", 20, 32, 18, {0}, 0.0148, 0},
};

// Of numbers below 2^16.
uint16_t toHalf(double value) {
  int exponent;
  std::frexp(value, &exponent); // |value| is 2^(exponent - 1) or more
  exponent = std::max(exponent, -13);
  const int bits = static_cast<int>(std::lrint(std::ldexp(std::abs(value), 11 - exponent)));
  return static_cast<uint16_t>(((exponent + 13) << 10) + bits + (value < 0 ? 0x8000 : 0));
}

class GgufWriter {
public:
  GgufWriter(const Type &type, uint32_t seed) : type(type), random(seed) {
    addString("general.architecture", "llama");
    for (auto [key, value] : {std::pair{"block_count", 2u},
                              {"context_length", 64u},
                              {"embedding_length", width},
                              {"feed_forward_length", 2 * width},
                              {"attention.head_count", 4u},
                              {"attention.head_count_kv", 2u}})
      addKey(std::string("llama.") + key, 4, number(value));
    addKey("llama.attention.layer_norm_rms_epsilon", 6, number(1e-5f));
    addMatrix("token_embd.weight", vocab, width);
    addNorm("output_norm.weight");
    for (const char *layer : {"blk.0.", "blk.1."}) {
      addNorm(std::string(layer) + "attn_norm.weight");
      addNorm(std::string(layer) + "ffn_norm.weight");
      for (auto [name, rows, columns] : {std::tuple{"attn_q", width, width},
                                         {"attn_k", width / 2, width},
                                         {"attn_v", width / 2, width},
                                         {"attn_output", width, width},
                                         {"ffn_gate", 2 * width, width},
                                         {"ffn_up", 2 * width, width},
                                         {"ffn_down", width, 2 * width}})
        addMatrix(std::string(layer) + name + ".weight", rows, columns);
    }
  }

  void write(const std::string &path) const {
    std::string file =
        "GGUF" + number(3u) + number(tensorCount) + number(keyCount) + keys + tensors;
    file.resize((file.size() + 31) / 32 * 32);
    std::ofstream(path, std::ios::binary) << file << data;
  }

  static constexpr uint32_t width = 256, vocab = 90;

private:
  template <typename T> static std::string number(T value) {
    return {reinterpret_cast<const char *>(&value), sizeof value};
  }
  static std::string string(const std::string &text) {
    return number(uint64_t(text.size())) + text;
  }
  void addKey(const std::string &key, uint32_t kind, const std::string &value) {
    ++keyCount;
    keys += string(key) + number(kind) + value;
  }
  void addString(const std::string &key, const std::string &value) {
    addKey(key, 8, string(value));
  }
  void addTensor(const std::string &name, const std::vector<uint64_t> &sizes, uint32_t kind,
                 const std::string &bytes) {
    ++tensorCount;
    tensors += string(name) + number(uint32_t(sizes.size()));
    for (uint64_t size : sizes)
      tensors += number(size);
    tensors += number(kind) + number(uint64_t(data.size()));
    data += bytes;
    data.resize((data.size() + 31) / 32 * 32);
  }
  void addNorm(const std::string &name) {
    std::string bytes;
    for (uint32_t i = 0; i < width; ++i)
      bytes += number(0.7f + static_cast<float>(random() % 1000) * 0.0006f);
    addTensor(name, {width}, 0, bytes);
  }
  // Blocks of any bits, whose scales give values of the usual size.
  void addMatrix(const std::string &name, uint64_t rows, uint64_t columns) {
    const double size = 1 / std::sqrt(static_cast<double>(columns));
    std::string bytes(rows * columns / type.values * type.bytes, 0);
    for (char &byte : bytes)
      byte = static_cast<char>(random());
    for (size_t block = 0; block < bytes.size(); block += type.bytes)
      for (size_t i = 0; i < type.halves.size(); ++i) {
        const double spread = 0.5 + static_cast<double>(random() % 1000) / 1000;
        const uint16_t half = toHalf((i ? type.min : type.scale) * size * spread);
        std::memcpy(&bytes[block + type.halves[i]], &half, sizeof half);
      }
    addTensor(name, {columns, rows}, type.number, bytes);
  }

  const Type &type;
  std::mt19937 random;
  std::string keys, tensors, data;
  uint64_t keyCount = 0, tensorCount = 0;
};

class GgufTypes : public testing::TestWithParam<Type> {};

double deviation(const std::vector<double> &values) {
  double mean = 0;
  for (double value : values)
    mean += value / static_cast<double>(values.size());
  std::vector<double> centred = values;
  for (double &value : centred)
    value -= mean;
  return rms(centred);
}

TEST_P(GgufTypes, StoredIsTheDequantisedModel) {
  const std::string file = scratch(std::string(GetParam().name) + ".gguf");
  GgufWriter(GetParam(), 7).write(file);
  Batch batch;
  for (int length : {40, 9, 1})
    for (batch.rows.emplace_back(); static_cast<int>(batch.rows.back().size()) < length;)
      batch.rows.back().push_back(length * 7 % 5 + batch.rows.back().size() * 31 % 85);
  auto logits = [&](const Arguments &options, const Arguments &how = {}) {
    const std::string executable = compile(file, options);
    return executable.empty() ? std::vector<double>()
                              : runLogits(executable, batch, how)["logits"].values;
  };

  const std::vector<double> golden = logits({"--precision", "f32", "--target", "reference"});
  ASSERT_FALSE(golden.empty());
  const double size = deviation(golden);
  EXPECT_GT(size, 0.1);
  EXPECT_LE(compare(logits({"--precision", "f32"}), golden).max, 2e-4 * std::max(1.0, size));
  const Difference reference =
      compare(logits({"--target", "reference", "--kv-dtype", "f32"}), golden);
  const Difference cpu = compare(logits({"--kv-dtype", "f32"}), golden);
  const Difference cached = compare(logits({"--kv-dtype", "f32"}, {"--cached"}), golden);
  std::printf("%-7s logits %6.3f; rms error: reference %.1e, cpu %.1e, cached %.1e\n",
              GetParam().name, size, reference.rms, cpu.rms, cached.rms);
  EXPECT_LE(reference.max, 2e-4 * std::max(1.0, size));
  EXPECT_LE(cpu.rms, 0.05 * size);
  EXPECT_LE(cached.rms, 0.05 * size);
}

INSTANTIATE_TEST_SUITE_P(Types, GgufTypes, testing::ValuesIn(types),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
