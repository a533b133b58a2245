// tk_norm and tk_add_norm against the golden rows (normal, tiny, large, shifted and zero ones).
#include "Kernels.h"
#include "Oracle.h"

namespace {

class NormTest : public KernelTest {
protected:
  std::map<std::string, GoldenTensor> golden = readOracle("attention/norm.safetensors");

  // Every row has its own magnitude, so rows are compared one by one.
  static void expectRows(const std::vector<float> &got, const GoldenTensor &want, int64_t cols) {
    for (size_t at = 0; at < got.size(); at += cols)
      expectNear({got.begin() + at, got.begin() + at + cols},
                 {want.values.begin() + at, want.values.begin() + at + cols}, 1e-5);
  }

  void check(const std::string &name, tk_norm_kind kind, float eps, bool bias) {
    std::vector<float> x = golden["x"].floats(), w = golden["weight"].floats();
    std::vector<float> b = golden["bias"].floats(), out(x.size());
    if (name.find("plain") != std::string::npos)
      w.assign(w.size(), 1.0f);
    tk_norm_shape shape = {TK_ROWS_TOKENS, 1, 96, 96, 0, 0, 96, kind, eps, bias};
    std::vector<const void *> io = {x.data(), w.data()};
    if (bias)
      io.push_back(b.data());
    io.push_back(out.data());
    for (int threads : teams({1, 3, 8})) {
      out.assign(out.size(), -1);
      runKernel(level().tk_norm, &shape, io, Batch(7), threads);
      expectRows(out, golden[name], 96);
    }
  }
};

TEST_P(NormTest, Golden) {
  for (auto [suffix, eps] : {std::pair{"eps1e-2", 1e-2f}, {"eps1e-5", 1e-5f}, {"eps1e-6", 1e-6f}}) {
    SCOPED_TRACE(suffix);
    check(std::string("rms.") + suffix, TK_NORM_RMS, eps, false);
    check(std::string("rms_plus1.") + suffix, TK_NORM_RMS_PLUS_ONE, eps, false);
    check(std::string("ln.") + suffix, TK_NORM_LAYER, eps, true);
    check(std::string("ln_nobias.") + suffix, TK_NORM_LAYER, eps, false);
    check(std::string("ln_plain.") + suffix, TK_NORM_LAYER, eps, false);
  }
}

TEST_P(NormTest, AddInPlace) {
  std::vector<float> x = golden["x"].floats(), y = golden["residual"].floats(), out(x.size());
  std::vector<float> w = golden["weight"].floats();
  tk_norm_shape shape = {TK_ROWS_TOKENS, 1, 96, 96, 96, 96, 96, TK_NORM_RMS, 1e-5f, 0};
  runKernel(level().tk_add_norm, &shape, {x.data(), y.data(), w.data(), x.data(), out.data()},
            Batch(7), 2);
  expectRows(x, golden["add_rms.sum"], 96);
  expectRows(out, golden["add_rms.out.eps1e-5"], 96);
}

TEST_P(NormTest, Heads) {
  // [2, 3, 4, 16] as 6 rows of 4 heads, in the middle of wider rows.
  std::vector<float> x = golden["head_rms.x"].floats(), w = golden["head_rms.weight"].floats();
  std::vector<float> wide(6 * 100, 7.0f), out(6 * 64);
  for (int r = 0; r < 6; ++r)
    std::copy_n(x.begin() + r * 64, 64, wide.begin() + r * 100 + 20);
  tk_norm_shape shape = {TK_ROWS_TOKENS, 4, 16, 100, 0, 0, 64, TK_NORM_RMS, 1e-6f, 0};
  runKernel(level().tk_norm, &shape, {wide.data() + 20, w.data(), out.data()}, Batch(6), 2);
  expectRows(out, golden["head_rms.out.eps1e-6"], 16);
}

TEST_P(NormTest, OddWidthScoredRows) {
  for (int64_t cols : {1, 15, 17, 104, 131}) {
    std::vector<float> x = randomFloats(3 * cols, 1), w = randomFloats(cols, 2), out(3 * cols);
    std::vector<double> want(3 * cols);
    for (int r = 0; r < 3; ++r) {
      double mean = 0, variance = 0;
      for (int64_t c = 0; c < cols; ++c)
        mean += x[r * cols + c] / double(cols);
      for (int64_t c = 0; c < cols; ++c)
        variance += (x[r * cols + c] - mean) * (x[r * cols + c] - mean) / double(cols);
      for (int64_t c = 0; c < cols; ++c)
        want[r * cols + c] = (x[r * cols + c] - mean) / std::sqrt(variance + 1e-2) * w[c];
    }
    int32_t n = int32_t(cols);
    tk_norm_shape shape = {TK_ROWS_SCORED, 1, n, n, 0, 0, n, TK_NORM_LAYER, 1e-2f, 0};
    runKernel(level().tk_norm, &shape, {x.data(), w.data(), out.data()}, Batch({5}, {0}, {0, 2, 4}),
              2);
    expectNear(out, want, 1e-5);
  }
}

TENON_KERNEL_TEST_SUITE(NormTest);

} // namespace
