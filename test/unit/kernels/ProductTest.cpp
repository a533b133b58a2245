// tk_linear, tk_gated_mlp and tk_embedding for every weight format: against double precision on the
// packed weights, with sizes that are no multiples of anything, and bit for bit under every cut of
// the work.
#include "CudaKernels.h"
#include "Kernels.h"
#include "Oracle.h"
#include "Packed.h"
#include <cmath>

using tenon::PackedFormat;

namespace {

bool isQuantised(PackedFormat format) { return tk_is_quantised(int32_t(format)); }

// The activations that quantised weights are multiplied with: int8 in groups of 32.
std::vector<double> roundActivations(PackedFormat format, int64_t cols,
                                     const std::vector<float> &x) {
  std::vector<double> result(x.begin(), x.end());
  if (!isQuantised(format))
    return result;
  for (size_t row = 0; row < x.size(); row += cols)
    for (int64_t c = 0; c < cols; c += 32) {
      int64_t end = std::min(cols, c + 32);
      float largest = 0;
      for (int64_t i = c; i < end; ++i)
        largest = std::max(largest, std::fabs(x[row + i]));
      for (int64_t i = c; i < end; ++i)
        result[row + i] =
            largest == 0 ? 0
                         : double(largest) / 127 * std::nearbyint(x[row + i] * (127.0f / largest));
    }
  return result;
}

// x · Wᵀ, [x rows, rows].
std::vector<double> product(PackedFormat format, int64_t rows, int64_t cols,
                            const std::vector<uint8_t> &w, const std::vector<float> &x) {
  std::vector<double> rounded = roundActivations(format, cols, x), matrix, result;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      matrix.push_back(packedElement(format, cols, w.data(), r, c));
  for (size_t t = 0; t < x.size() / cols; ++t)
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t c = 0; c < cols; ++c)
        sum += rounded[t * cols + c] * matrix[r * cols + c];
      result.push_back(sum);
    }
  return result;
}

class ProductTest : public KernelTest {
protected:
  // Those that the level's kernels read.
  std::vector<PackedFormat> formats = {PackedFormat::F32,
                                       formatOn(level(), PackedFormat::BF16),
                                       formatOn(level(), PackedFormat::F16),
                                       PackedFormat::U4M,
                                       PackedFormat::U8M,
                                       PackedFormat::S8,
                                       PackedFormat::S8G16,
                                       PackedFormat::U4MG16};

  std::vector<float> linear(const tk_linear_shape &s, std::vector<const void *> io,
                            const Batch &batch, int threads, bool matmul = false) {
    std::vector<float> out(int64_t(batch.tokens()) * s.out_stride, -7);
    io.push_back(out.data());
    runKernel(level().tk_linear, &s, io, batch, threads, tk_linear_scratch(&s), matmul);
    return out;
  }

  // With may_round: activations may be rounded to the weights' type, to f16 on CUDA only; one level
  // rounds what minima contribute to bf16.
  bool roundsMinima(PackedFormat format) const {
    return format == PackedFormat::U4M && std::string(level().name) == "avx512bf16";
  }
  double roundingTolerance(PackedFormat format) const {
    switch (format) {
    case PackedFormat::BF16:
    case PackedFormat::BF16Rows:
      return 1e-2;
    case PackedFormat::F16Rows:
      return 1e-3;
    default:
      return roundsMinima(format) ? 2e-3 : 1e-5;
    }
  }
};

TEST_P(ProductTest, LinearAllFormats) {
  struct Size {
    int32_t rows, cols;
  };
  for (PackedFormat format : formats)
    for (Size size : {Size{104, 104}, Size{8, 24}, Size{24, 8}, Size{1, 33}, Size{100, 320},
                      Size{40, 640}}) { // the last with more rows than stay near (dot.h)
      if (needsGroups(format) && size.cols % 32)
        continue;
      SCOPED_TRACE(getPackedFormatName(format).str() + " " + std::to_string(size.rows) + "x" +
                   std::to_string(size.cols));
      std::vector<uint8_t> w =
          packMatrix(format, size.rows, size.cols, randomFloats(size.rows * size.cols, 1, 0.3f));
      std::vector<float> x = randomFloats(150 * size.cols, 2);
      tk_linear_shape s = {};
      s.cols = s.x_stride = size.cols;
      s.out_cols = s.out_stride = size.rows;
      s.format = int32_t(format);
      for (int32_t mayRound : {0, 1}) {
        s.may_round = mayRound;
        std::vector<float> all = linear(s, {x.data(), w.data()}, Batch(150), 1);
        expectNear(all, product(format, size.rows, size.cols, w, x),
                   mayRound ? roundingTolerance(format) : 1e-5);
        // Any number of rows and threads: the same bits.
        for (int32_t tokens : {1, 2, 7, 31, 33, 65, 150})
          for (int threads : teams({1, 2, 3, 16})) {
            std::vector<float> some = linear(s, {x.data(), w.data()}, Batch(tokens), threads);
            EXPECT_EQ(some, std::vector<float>(all.begin(), all.begin() + tokens * size.rows))
                << tokens << " tokens, " << threads << " threads, may_round " << mayRound;
          }
        if (!isQuantised(format) || level().emulated)
          break;
      }
    }
}

TEST_P(ProductTest, LinearLongRows) {
  constexpr int32_t K = 25000, N = 17;
  for (PackedFormat stored : {PackedFormat::F32, PackedFormat::BF16, PackedFormat::U4M}) {
    PackedFormat format = formatOn(level(), stored);
    SCOPED_TRACE(getPackedFormatName(format).str());
    std::vector<uint8_t> w = packMatrix(format, N, K, randomFloats(N * K, 1, 0.3f));
    std::vector<float> x = randomFloats(2 * K, 2);
    tk_linear_shape s = {};
    s.cols = s.x_stride = K;
    s.out_cols = s.out_stride = N;
    s.format = int32_t(format);
    for (int32_t mayRound : {0, 1}) {
      s.may_round = mayRound && isQuantised(format);
      std::vector<float> both = linear(s, {x.data(), w.data()}, Batch(2), 2);
      expectNear(both, product(format, N, K, w, x), s.may_round ? roundingTolerance(format) : 1e-5);
      EXPECT_EQ(linear(s, {x.data(), w.data()}, Batch(1), 1),
                std::vector<float>(both.begin(), both.begin() + N));
    }
  }
}

TEST_P(ProductTest, LinearWithMatmul) {
  // More rows and columns than one call of the runtime's product takes.
  constexpr int32_t T = 245, K = 1031, N = 250;
  for (PackedFormat stored : {PackedFormat::F32, PackedFormat::BF16, PackedFormat::F16}) {
    PackedFormat format = formatOn(level(), stored);
    tk_linear_shape s = {};
    s.cols = s.x_stride = K;
    s.out_cols = s.out_stride = N;
    s.format = int32_t(format);
    s.may_round = 1;
    std::vector<uint8_t> w = packMatrix(format, N, K, randomFloats(N * K, 1));
    std::vector<float> x = randomFloats(T * K, 2);
    for (float &v : x) // exact in bf16
      v = std::nearbyint(v * 16) / 16;
    std::vector<double> want = product(format, N, K, w, x);
    expectNear(linear(s, {x.data(), w.data()}, Batch(T), 2, true), want, 1e-5);
    matmulAnswer = 1;
    expectNear(linear(s, {x.data(), w.data()}, Batch(T), 1, true), want, 1e-5);
    matmulAnswer = 0;
  }
}

TEST_P(ProductTest, LinearPrologueAndEpilogue) {
  // Layer norm with bias, bias, activation, residual, written over the residual; views into wider
  // rows.
  for (PackedFormat format : formats) {
    SCOPED_TRACE(getPackedFormatName(format).str());
    constexpr int32_t T = 40, K = 96, N = 72;
    std::vector<float> x = randomFloats(T * 128, 1), gamma = randomFloats(K, 2),
                       beta = randomFloats(K, 3);
    std::vector<float> bias = randomFloats(N, 4), residual = randomFloats(T * 80, 5);
    std::vector<uint8_t> w = packMatrix(format, N, K, randomFloats(N * K, 6, 0.2f));
    std::vector<float> normed(T * K);
    tk_norm_shape norm = {TK_ROWS_TOKENS, 1, K, 128, 0, 0, K, TK_NORM_LAYER, 1e-5f, 1};
    Batch batch(T);
    runKernel(level().tk_norm, &norm, {x.data() + 4, gamma.data(), beta.data(), normed.data()},
              batch);
    std::vector<double> want = product(format, N, K, w, normed);
    for (int t = 0; t < T; ++t)
      for (int n = 0; n < N; ++n) {
        double v = want[t * N + n] + bias[n];
        want[t * N + n] = v / (1 + std::exp(-v)) + residual[t * 80 + 3 + n];
      }
    tk_linear_shape s = {TK_ROWS_TOKENS, K, N, int32_t(format), 128, 80, TK_NORM_LAYER,
                         1e-5f,          1, 1, TK_ACT_SILU,     1,   80, 1};
    for (bool matmul : {false, true})
      for (int threads : teams({1, 2, 4})) {
        std::vector<float> out = residual, got;
        runKernel(level().tk_linear, &s,
                  {x.data() + 4, w.data(), gamma.data(), beta.data(), bias.data(), out.data() + 3,
                   out.data() + 3},
                  batch, threads, tk_linear_scratch(&s), matmul);
        for (int t = 0; t < T; ++t) {
          got.insert(got.end(), out.begin() + t * 80 + 3, out.begin() + t * 80 + 3 + N);
          EXPECT_EQ(out[t * 80 + 2], residual[t * 80 + 2]);
          EXPECT_EQ(out[t * 80 + 75], residual[t * 80 + 75]);
        }
        expectNear(got, want, matmul || roundsMinima(format) ? roundingTolerance(format) : 2e-5);
      }
  }
}

TEST_P(ProductTest, ZeroAndNotANumberRows) {
  for (PackedFormat format : formats) {
    std::vector<uint8_t> w = packMatrix(format, 16, 32, randomFloats(512, 1));
    std::vector<float> x(3 * 32, 0.0f);
    x[40] = NAN;
    tk_linear_shape s = {};
    s.cols = s.x_stride = 32;
    s.out_cols = s.out_stride = 16;
    s.format = int32_t(format);
    std::vector<float> out = linear(s, {x.data(), w.data()}, Batch(3), 1);
    EXPECT_EQ(out[0], 0);
    EXPECT_TRUE(std::isnan(out[16])) << getPackedFormatName(format).str();
    EXPECT_EQ(out[32], 0);
  }
}

TEST_P(ProductTest, GatedMlpAllFormats) {
  struct Size {
    int32_t features, cols;
  };
  for (PackedFormat format : formats)
    for (Size size : {Size{272, 96}, Size{24, 64}, Size{8, 32}, Size{104, 104}, Size{10, 32}}) {
      if (needsGroups(format) && size.cols % 32)
        continue;
      SCOPED_TRACE(getPackedFormatName(format).str() + " " + std::to_string(size.features));
      constexpr int32_t T = 70;
      int32_t F = size.features, K = size.cols;
      std::vector<uint8_t> w = packMatrix(format, 2 * F, K, randomFloats(2 * F * K, 1, 0.2f));
      std::vector<float> x = randomFloats(T * K, 2), bias = randomFloats(2 * F, 3), all;
      std::vector<float> gamma(K, 0.0f), normed(T * K);
      tk_norm_shape norm = {TK_ROWS_TOKENS, 1, K, K, 0, 0, K, TK_NORM_RMS_PLUS_ONE, 1e-5f, 0};
      runKernel(level().tk_norm, &norm, {x.data(), gamma.data(), normed.data()}, Batch(T));
      std::vector<double> both = product(format, 2 * F, K, w, normed), want(T * F);
      for (int t = 0; t < T; ++t)
        for (int f = 0; f < F; ++f) {
          double g = both[t * 2 * F + f] + bias[f], u = both[t * 2 * F + F + f] + bias[F + f];
          want[t * F + f] = 0.5 * g * std::erfc(-g * std::sqrt(0.5)) * u;
        }
      tk_gated_mlp_shape s = {TK_ROWS_TOKENS, K, F, int32_t(format), K, F, TK_NORM_RMS_PLUS_ONE,
                              1e-5f,          0, 1, TK_ACT_GELU_ERF, 0};
      for (int32_t tokens : {T, 1, 5, 33})
        for (int threads : teams({1, 2, 5})) {
          std::vector<float> out(tokens * F);
          runKernel(level().tk_gated_mlp, &s,
                    {x.data(), w.data(), gamma.data(), bias.data(), out.data()}, Batch(tokens),
                    threads, tk_gated_mlp_scratch(&s));
          if (all.empty()) {
            all = out;
            expectNear(out, want, 2e-5);
          }
          EXPECT_EQ(out, std::vector<float>(all.begin(), all.begin() + tokens * F));
        }
      s.may_round = 1;
      std::vector<float> out(T * F);
      for (int threads : teams({1, 3})) {
        runKernel(level().tk_gated_mlp, &s,
                  {x.data(), w.data(), gamma.data(), bias.data(), out.data()}, Batch(T), threads,
                  tk_gated_mlp_scratch(&s), true);
        expectNear(out, want, 2 * roundingTolerance(format));
      }
    }
}

TEST_P(ProductTest, GoldenMlp) {
  auto golden = readOracle("attention/act.safetensors");
  std::vector<float> gateUp = golden["mlp.gate"].floats(), up = golden["mlp.up"].floats();
  gateUp.insert(gateUp.end(), up.begin(), up.end());
  std::vector<uint8_t> w = packMatrix(PackedFormat::F32, 80, 24, gateUp);
  std::vector<uint8_t> down = packMatrix(PackedFormat::F32, 24, 40, golden["mlp.down"].floats());
  std::vector<uint8_t> wide = packMatrix(PackedFormat::F32, 40, 24, up);
  std::vector<float> x = golden["mlp.x"].floats(), b1 = golden["mlp.bias1"].floats();
  std::vector<float> b2 = golden["mlp.bias2"].floats(), hidden(5 * 40);
  for (auto [name, kind] : {std::pair{"swiglu", TK_ACT_SILU},
                            {"geglu_erf", TK_ACT_GELU_ERF},
                            {"geglu_tanh", TK_ACT_GELU_TANH},
                            {"reglu", TK_ACT_RELU}}) {
    SCOPED_TRACE(name);
    tk_gated_mlp_shape gated = {TK_ROWS_TOKENS, 24, 40, TK_F32, 24,   40,
                                TK_NORM_NONE,   0,  0,  0,      kind, 0};
    runKernel(level().tk_gated_mlp, &gated, {x.data(), w.data(), hidden.data()}, Batch(5), 2,
              tk_gated_mlp_scratch(&gated));
    tk_linear_shape s = {};
    s.cols = s.x_stride = 40;
    s.out_cols = s.out_stride = 24;
    expectNear(linear(s, {hidden.data(), down.data()}, Batch(5), 2),
               golden[std::string("mlp.") + name].values, 1e-5);
  }
  for (auto [name, kind] : {std::pair{"silu", TK_ACT_SILU},
                            {"gelu_erf", TK_ACT_GELU_ERF},
                            {"gelu_tanh", TK_ACT_GELU_TANH},
                            {"relu", TK_ACT_RELU}}) {
    SCOPED_TRACE(name);
    tk_linear_shape s = {};
    s.cols = s.x_stride = 24;
    s.out_cols = s.out_stride = 40;
    s.bias = 1;
    s.activation = kind;
    hidden = linear(s, {x.data(), wide.data(), b1.data()}, Batch(5), 2);
    s.cols = s.x_stride = 40;
    s.out_cols = s.out_stride = 24;
    s.activation = TK_ACT_NONE;
    expectNear(linear(s, {hidden.data(), down.data(), b2.data()}, Batch(5), 2),
               golden[std::string("mlp.plain_") + name].values, 1e-5);
  }
}

TEST_P(ProductTest, EmbeddingAllFormats) {
  for (PackedFormat format : formats)
    for (int32_t cols : {96, 104, 7}) {
      if (needsGroups(format) && cols % 32)
        continue;
      SCOPED_TRACE(getPackedFormatName(format).str());
      std::vector<uint8_t> table = packMatrix(format, 101, cols, randomFloats(101 * cols, 1));
      Batch batch(23);
      tk_embedding_shape s = {101, cols, int32_t(format), cols + 1, 1.5f, 0, 0};
      for (int threads : teams({1, 4})) {
        std::vector<float> out(23 * (cols + 1));
        runKernel(level().tk_embedding, &s, {table.data(), out.data()}, batch, threads);
        for (int t = 0; t < 23; ++t)
          for (int c = 0; c < cols; ++c)
            ASSERT_FLOAT_EQ(out[t * (cols + 1) + c],
                            1.5f * packedElement(format, cols, table.data(), batch.ids[t], c));
      }
    }
}

TENON_KERNEL_TEST_SUITE(ProductTest);

// What the device's library multiplies on CUDA: rounded rows before, epilogues behind.
TEST(ProductsByLibrary, Linear) {
  constexpr int32_t T = 70, K = 203, N = 45;
  std::vector<float> x = randomFloats(T * K, 1, 30), bias = randomFloats(N, 3),
                     residual = randomFloats(T * N, 4), gamma = randomFloats(K, 5), normed(T * K);
  for (float &v : gamma)
    v += 2;
  for (int32_t k = 0; k < K; ++k)
    x[k] *= 3e4f; // beyond the range of f16
  tk_norm_shape norm = {TK_ROWS_TOKENS, 1, K, K, 0, 0, K, TK_NORM_RMS, 1e-5f, 0};
  runKernel(emulatedCudaLevel().tk_norm, &norm, {x.data(), gamma.data(), normed.data()}, Batch(T));
  for (PackedFormat format : {PackedFormat::BF16Rows, PackedFormat::F16Rows})
    for (int options = 0; options < 16; ++options) {
      SCOPED_TRACE(getPackedFormatName(format).str() + " " + std::to_string(options));
      std::vector<uint8_t> w = packMatrix(format, N, K, randomFloats(N * K, 2, 0.3f));
      tk_linear_shape s = {};
      s.cols = s.x_stride = K;
      s.out_cols = N;
      s.out_stride = N + 3;
      s.format = int32_t(format);
      s.may_round = 1;
      s.norm = options & 1 ? TK_NORM_RMS : TK_NORM_NONE;
      s.eps = 1e-5f;
      s.bias = options >> 1 & 1;
      s.residual = options >> 2 & 1;
      s.residual_stride = N;
      s.activation = options & 8 ? TK_ACT_RELU : TK_ACT_NONE;
      std::vector<const void *> io = {x.data(), w.data()};
      if (s.norm != TK_NORM_NONE)
        io.push_back(gamma.data());
      if (s.bias)
        io.push_back(bias.data());
      if (s.residual)
        io.push_back(residual.data());
      std::vector<float> out(T * s.out_stride, -7);
      io.push_back(out.data());
      runKernel(emulatedLinearByLibrary(), &s, io, Batch(T));
      std::vector<double> want = product(format, N, K, w, s.norm ? normed : x);
      for (int t = 0; t < T; ++t) {
        std::vector<double> row(want.begin() + t * N, want.begin() + (t + 1) * N);
        for (int n = 0; n < N; ++n) {
          row[n] += s.bias ? bias[n] : 0;
          row[n] = s.activation == TK_ACT_RELU ? std::max(row[n], 0.0) : row[n];
          row[n] += s.residual ? residual[t * N + n] : 0;
        }
        auto got = out.begin() + t * s.out_stride;
        expectNear({got, got + N}, row, format == PackedFormat::BF16Rows ? 1e-2 : 2e-3);
        for (int n = N; n < s.out_stride; ++n)
          EXPECT_EQ(got[n], -7);
      }
    }
}

TEST(ProductsByLibrary, GatedMlp) {
  constexpr int32_t T = 66, K = 72, F = 50;
  std::vector<float> x = randomFloats(T * K, 1), bias = randomFloats(2 * F, 3);
  for (PackedFormat format : {PackedFormat::BF16Rows, PackedFormat::F16Rows}) {
    std::vector<uint8_t> w = packMatrix(format, 2 * F, K, randomFloats(2 * F * K, 2, 0.2f));
    tk_gated_mlp_shape s = {TK_ROWS_TOKENS, K, F, int32_t(format), K, F, TK_NORM_NONE,
                            1e-5f,          0, 1, TK_ACT_RELU,     1};
    std::vector<float> out(T * F);
    runKernel(emulatedGatedMlpByLibrary(), &s, {x.data(), w.data(), bias.data(), out.data()},
              Batch(T));
    std::vector<double> both = product(format, 2 * F, K, w, x), want(T * F);
    for (int t = 0; t < T; ++t)
      for (int f = 0; f < F; ++f)
        want[t * F + f] =
            std::max(both[t * 2 * F + f] + bias[f], 0.0) * (both[t * 2 * F + F + f] + bias[F + f]);
    expectNear(out, want, format == PackedFormat::BF16Rows ? 2e-2 : 2e-3);
  }
}

} // namespace
