// Products by tile registers give the bits that products by vectors give: every quantised format,
// row counts about the sizes of tiles, sums of several runs of groups, codes at their limits.
// (ProductTest and ExpertsTest compare them with double precision.)
#include "Kernels.h"
#include "Packed.h"

using tenon::PackedFormat;

namespace {

const Level *find(const std::string &name) {
  for (const Level &level : availableLevels())
    if (level.name == name)
      return &level;
  return nullptr;
}

class TilesTest : public ::testing::TestWithParam<PackedFormat> {
protected:
  void SetUp() override {
    if (!find("amx"))
      GTEST_SKIP() << "this CPU lacks AVX512-BF16, which kernels with AMX use beside it";
  }
};

std::vector<float> linear(const Level &level, const tk_linear_shape &s,
                          const std::vector<uint8_t> &w, const std::vector<float> &x,
                          int32_t tokens, int threads) {
  std::vector<float> out(int64_t(tokens) * s.out_stride, -7);
  runKernel(level.tk_linear, &s, {x.data(), w.data(), out.data()}, Batch(tokens), threads,
            tk_linear_scratch(&s));
  return out;
}

TEST_P(TilesTest, SameBitsAsVectors) {
  for (int32_t cols : {32, 416}) {
    constexpr int32_t N = 40;
    std::vector<uint8_t> w =
        packMatrix(GetParam(), N, cols, randomFloats(int64_t(N) * cols, 1, 0.3f));
    std::vector<float> x = randomFloats(130 * int64_t(cols), 2);
    tk_linear_shape s = {};
    s.cols = s.x_stride = cols;
    s.out_cols = s.out_stride = N;
    s.format = int32_t(GetParam());
    for (int32_t tokens : {15, 16, 17, 47, 130})
      for (int threads : {1, 3})
        EXPECT_EQ(linear(*find("amx"), s, w, x, tokens, threads),
                  linear(*find("avx512bf16"), s, w, x, tokens, threads))
            << cols << " columns, " << tokens << " tokens, " << threads << " threads";
  }
}

// Weights are the least and the greatest codes, activations as well.
TEST_P(TilesTest, SameBitsAtTheLimits) {
  constexpr int32_t K = 64, N = 32, T = 32;
  const auto format = int32_t(GetParam());
  std::vector<uint8_t> w = packMatrix(GetParam(), N, K, randomFloats(N * K, 1));
  for (size_t i = 0; i < w.size(); ++i)
    if (int64_t(i) % tk_group_bytes(format) >= tk_scale_bytes(format))
      w[i] = i % 8 < 4 ? 0 : format == TK_U8M ? 0x7f : 0xff;
  std::vector<float> x(T * K);
  for (int i = 0; i < T * K; ++i)
    x[i] = i / K % 4 == 0 ? 1.0f : i / K % 4 == 1 ? -1.0f : i % 2 ? 1.0f : -1.0f;
  tk_linear_shape s = {};
  s.cols = s.x_stride = K;
  s.out_cols = s.out_stride = N;
  s.format = format;
  EXPECT_EQ(linear(*find("amx"), s, w, x, T, 1), linear(*find("avx512bf16"), s, w, x, T, 1));
}

TEST_P(TilesTest, SameBitsForExperts) {
  constexpr int32_t T = 90, K = 96, N = 40, Slots = 2, Experts = 3;
  std::vector<uint8_t> gate, up;
  for (unsigned e = 0; e < Experts; ++e)
    for (std::vector<uint8_t> *stack : {&gate, &up}) {
      std::vector<uint8_t> one =
          packMatrix(GetParam(), N, K, randomFloats(N * K, 2 * e + (stack == &up), 0.3f));
      stack->insert(stack->end(), one.begin(), one.end());
    }
  std::vector<float> x = randomFloats(T * K, 9), choice;
  for (int t = 0; t < T; ++t)
    for (int k = 0; k < Slots; ++k)
      choice.push_back(float((t * t + k) % Experts));
  tk_expert_linear_shape s = {};
  s.experts = Experts;
  s.slots = Slots;
  s.cols = s.x_stride = K;
  s.out_cols = N;
  s.format = int32_t(GetParam());
  s.shared = 1;
  s.choice = 1;
  s.choice_stride = Slots;
  s.out_stride = Slots * N;
  for (int gated : {0, 1}) {
    s.gated = gated;
    s.activation = gated ? TK_ACT_SILU : TK_ACT_NONE;
    auto run = [&](const Level &level) {
      std::vector<float> out(T * s.out_stride);
      std::vector<const void *> io = {x.data(), choice.data(), gate.data()};
      if (gated)
        io.push_back(up.data());
      io.push_back(out.data());
      runKernel(level.tk_expert_linear, &s, io, Batch(T), 3, tk_expert_linear_scratch(&s));
      return out;
    };
    EXPECT_EQ(run(*find("amx")), run(*find("avx512bf16")));
  }
}

INSTANTIATE_TEST_SUITE_P(, TilesTest,
                         ::testing::Values(PackedFormat::U4M, PackedFormat::U8M, PackedFormat::S8,
                                           PackedFormat::S8G16, PackedFormat::U4MG16),
                         [](const auto &info) { return getPackedFormatName(info.param).str(); });

} // namespace
