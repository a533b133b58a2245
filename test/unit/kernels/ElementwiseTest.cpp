// Activations against golden values, and the other kernels that go element by element.
#include "Kernels.h"
#include "Oracle.h"
#include <cmath>

namespace {

using ElementwiseTest = KernelTest;

TEST_P(ElementwiseTest, Activations) {
  auto golden = readOracle("attention/act.safetensors");
  std::vector<float> x = golden["x"].floats(), out(x.size());
  int32_t n = int32_t(x.size());
  for (auto [name, kind] : {std::pair{"relu", TK_ACT_RELU},
                            {"relu2", TK_ACT_RELU2},
                            {"silu", TK_ACT_SILU},
                            {"gelu_erf", TK_ACT_GELU_ERF},
                            {"gelu_tanh", TK_ACT_GELU_TANH},
                            {"quick_gelu", TK_ACT_QUICK_GELU},
                            {"sigmoid", TK_ACT_SIGMOID},
                            {"tanh", TK_ACT_TANH}}) {
    SCOPED_TRACE(name);
    tk_unary_shape shape = {TK_ROWS_TOKENS, n, n, n, kind, 0};
    runKernel(level().tk_activation, &shape, {x.data(), out.data()}, Batch(1), 2);
    const std::vector<double> &want = golden[name].values;
    // Each element by its own magnitude, down to where double precision's 1 + tanh ends.
    for (int32_t i = 0; i < n; ++i)
      EXPECT_NEAR(out[i], want[i], 1e-5 * std::fabs(want[i]) + 1e-14) << "at x = " << x[i];
  }
}

TEST_P(ElementwiseTest, NotANumberStays) {
  std::vector<float> x = {NAN, 1, -INFINITY, INFINITY}, out(4);
  for (int kind = TK_ACT_RELU; kind <= TK_ACT_TANH; ++kind) {
    tk_unary_shape shape = {TK_ROWS_TOKENS, 4, 4, 4, kind, 0};
    runKernel(level().tk_activation, &shape, {x.data(), out.data()}, Batch(1));
    EXPECT_TRUE(std::isnan(out[0])) << "activation " << kind;
  }
}

TEST_P(ElementwiseTest, Maps) {
  // 5 rows of 19 elements in rows of 32.
  std::vector<float> a = randomFloats(5 * 32, 1, 3), b = randomFloats(5 * 32, 2);
  auto check = [&](tenon_kernel *kernel, const void *shape, std::vector<const void *> io,
                   auto want) {
    for (int threads : teams({1, 2, 7})) {
      std::vector<float> out(5 * 32, 9.0f), expected(5 * 32, 9.0f);
      io.back() = out.data();
      runKernel(kernel, shape, io, Batch(5), threads);
      for (int r = 0; r < 5; ++r)
        for (int c = 0; c < 19; ++c)
          expected[r * 32 + c] = float(want(double(a[r * 32 + c]), double(b[r * 32 + c])));
      for (size_t i = 0; i < out.size(); ++i)
        EXPECT_FLOAT_EQ(out[i], expected[i]);
    }
  };
  tk_binary_shape binary = {TK_ROWS_TOKENS, 19, 32, 32, 32};
  check(level().tk_add, &binary, {a.data(), b.data(), nullptr},
        [](double x, double y) { return x + y; });
  check(level().tk_mul, &binary, {a.data(), b.data(), nullptr},
        [](double x, double y) { return x * y; });
  tk_unary_shape unary = {TK_ROWS_TOKENS, 19, 32, 32, 0, 2.5f};
  check(level().tk_scale, &unary, {a.data(), nullptr}, [](double x, double) { return 2.5 * x; });
  check(level().tk_copy, &unary, {a.data(), nullptr}, [](double x, double) { return x; });
  check(level().tk_softcap, &unary, {a.data(), nullptr},
        [](double x, double) { return 2.5 * std::tanh(x / 2.5); });
}

TEST_P(ElementwiseTest, GatherRows) {
  std::vector<float> x = randomFloats(9 * 20, 1), out(4 * 20);
  tk_unary_shape shape = {TK_ROWS_SCORED, 20, 20, 20, 0, 0};
  std::vector<int32_t> rows = {0, 3, 7, 8};
  for (int threads : teams({1, 2, 5})) {
    out.assign(out.size(), 0);
    runKernel(level().tk_gather_rows, &shape, {x.data(), out.data()}, Batch({9}, {0}, rows),
              threads);
    for (int r = 0; r < 4; ++r)
      for (int c = 0; c < 20; ++c)
        EXPECT_EQ(out[r * 20 + c], x[rows[r] * 20 + c]);
  }
}

TENON_KERNEL_TEST_SUITE(ElementwiseTest);

} // namespace
