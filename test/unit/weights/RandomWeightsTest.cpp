#include "ir/RandomWeights.h"
#include "Support.h"
#include <cmath>
#include <numeric>

namespace tenon {
namespace {

std::vector<float> decode(RandomWeights &weights, const TensorInfo &tensor, int64_t first,
                          int64_t count) {
  llvm::ArrayRef<uint8_t> rows = weights.getRows(tensor, first, count);
  int64_t columns = tensor.shape.back(), rowBytes = getRowBytes(tensor.storage, columns);
  EXPECT_EQ(int64_t(rows.size()), count * rowBytes);
  std::vector<float> values(count * columns);
  for (int64_t i = 0; i < count; ++i)
    decodeRow(tensor.storage, rows.data() + i * rowBytes, columns, values.data() + i * columns);
  return values;
}

class Random : public testing::TestWithParam<Storage> {};

TEST_P(Random, IsTame) {
  TensorInfo tensor{"blk.0.attn_q.weight", {200, 512}, GetParam()};
  RandomWeights weights(7, {tensor});
  std::vector<float> values = decode(weights, tensor, 0, 200);
  double mean = std::accumulate(values.begin(), values.end(), 0.0) / values.size(), squares = 0;
  for (float value : values) {
    ASSERT_LE(std::fabs(value), 1.02f * std::sqrt(3.0f / 512));
    squares += value * value;
  }
  double deviation = 1 / std::sqrt(512.0); // a block of few levels is a little wider
  EXPECT_NEAR(std::sqrt(squares / values.size()), deviation, 0.08 * deviation);
  EXPECT_NEAR(mean, 0.0, 0.12 * deviation); // q4_0 goes from -8 to 7
}

TEST_P(Random, RowsDependOnSeedNameAndRowAlone) {
  TensorInfo tensor{"a", {4, 8, 256}, GetParam()}, other{"b", {4, 8, 256}, GetParam()};
  RandomWeights weights(7, {tensor, other}), again(7, {tensor}), differently(8, {tensor});
  std::vector<float> all = decode(weights, tensor, 0, 32);
  EXPECT_EQ(decode(again, tensor, 0, 32), all);
  for (int64_t row : {31, 0, 5})
    EXPECT_EQ(decode(weights, tensor, row, 1),
              std::vector<float>(all.begin() + row * 256, all.begin() + (row + 1) * 256));
  EXPECT_NE(decode(differently, tensor, 0, 32), all);
  EXPECT_NE(decode(weights, other, 0, 32), all);
  EXPECT_NE(decode(weights, tensor, 0, 1), decode(weights, tensor, 1, 1));
}

INSTANTIATE_TEST_SUITE_P(Storage, Random,
                         testing::Values(Storage::F32, Storage::F16, Storage::BF16, Storage::Q4_0,
                                         Storage::Q4_1, Storage::Q5_0, Storage::Q5_1, Storage::Q8_0,
                                         Storage::Q2_K, Storage::Q3_K, Storage::Q4_K, Storage::Q5_K,
                                         Storage::Q6_K, Storage::IQ4_NL),
                         [](const auto &info) { return getStorageInfo(info.param).name.str(); });

TEST(RandomWeights, Vectors) {
  TensorInfo gain{"input_layernorm.weight", {67}, Storage::F32},
      bias{"q_proj.bias", {67}, Storage::BF16};
  RandomWeights weights(1, {gain, bias});
  for (float value : decode(weights, gain, 0, 1))
    EXPECT_NEAR(value, 1.0f, 0.051f);
  for (float value : decode(weights, bias, 0, 1))
    EXPECT_NEAR(value, 0.0f, 0.051f);
  EXPECT_EQ(weights.getName(), "random:1");
  EXPECT_EQ(weights.find("q_proj.bias"), &weights.getTensors()[1]);
  EXPECT_EQ(weights.find("q_proj"), nullptr);
}

// The same on every machine and in every version: measurements and goldens rely on it.
TEST(RandomWeights, FirstValues) {
  TensorInfo tensor{"w", {2, 3}, Storage::F32};
  RandomWeights weights(0, {tensor});
  EXPECT_THAT(decode(weights, tensor, 1, 1),
              testing::Pointwise(testing::FloatNear(1e-6f), {-0.0355835f, 0.349731f, -0.659821f}));
}

} // namespace
} // namespace tenon
