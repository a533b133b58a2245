// Rotary embedding against golden angles (positions up to 131071) and rotations.
#include "Kernels.h"
#include "Oracle.h"
#include <cmath>

namespace {

class RopeTest : public KernelTest {
protected:
  std::map<std::string, GoldenTensor> golden = readOracle("attention/rope.safetensors");

  // x is [3 heads, 7 positions, 64]; kernels take [7, 3 · 64].
  std::vector<float> byToken(const std::vector<double> &values) {
    std::vector<float> result(values.size());
    for (int h = 0; h < 3; ++h)
      for (int p = 0; p < 7; ++p)
        for (int d = 0; d < 64; ++d)
          result[(p * 3 + h) * 64 + d] = float(values[(h * 7 + p) * 64 + d]);
    return result;
  }

  void check(const std::string &name) {
    SCOPED_TRACE(name);
    Batch batch(7);
    for (int i = 0; i < 7; ++i)
      batch.positions[i] = int32_t(golden["positions"].values[i]);
    const std::vector<double> &frequencies = golden[name + ".inv_freq"].values;
    int32_t half = int32_t(frequencies.size()), dim = 2 * half;
    const GoldenTensor &factor = golden[name + ".attention_factor"];
    tk_rope_angles_shape angleShape = {
        dim, dim + 3, factor.values.empty() ? 1.0f : float(factor.values[0]), 0, 0};
    std::vector<float> angles(7 * (dim + 3));
    runKernel(level().tk_rope_angles, &angleShape, {frequencies.data(), angles.data()}, batch, 2);
    for (int p = 0; p < 7; ++p)
      for (int i = 0; i < half; ++i) {
        ASSERT_NEAR(angles[p * (dim + 3) + i], golden[name + ".cos"].values[p * half + i], 2e-7);
        ASSERT_NEAR(angles[p * (dim + 3) + half + i], golden[name + ".sin"].values[p * half + i],
                    2e-7);
      }
    for (auto [style, result] :
         {std::pair{TK_ROPE_HALF, ".half"}, {TK_ROPE_INTERLEAVED, ".interleaved"}}) {
      std::vector<float> x = byToken(golden["x"].values), out(x.size());
      std::vector<float> wanted = byToken(golden[name + result].values);
      tk_rope_shape shape = {3, 64, dim, style, 192, dim + 3, 192, 0};
      runKernel(level().tk_rope, &shape, {x.data(), angles.data(), out.data()}, batch, 3);
      expectNear(out, {wanted.begin(), wanted.end()}, 1e-6);
      runKernel(level().tk_rope, &shape, {x.data(), angles.data(), x.data()}, batch);
      EXPECT_EQ(x, out) << "in place";
    }
  }
};

TEST_P(RopeTest, Golden) {
  for (const char *name : {"theta1e4", "theta5e5", "partial50", "partial25", "linear4", "llama3",
                           "yarn", "longrope", "dynamic"})
    check(name);
}

TEST_P(RopeTest, SmallHeads) {
  // 6 of 10 elements rotate: fewer than a vector.
  Batch batch({4}, {11});
  std::vector<double> frequencies = {1.0, 0.3, 0.01};
  std::vector<float> x = randomFloats(4 * 2 * 10, 3), angles(4 * 6), out(x.size());
  tk_rope_angles_shape angleShape = {6, 6, 1.0f, 0, 0};
  runKernel(level().tk_rope_angles, &angleShape, {frequencies.data(), angles.data()}, batch);
  for (bool interleaved : {false, true}) {
    tk_rope_shape shape = {2, 10, 6, interleaved, 20, 6, 20, 0};
    runKernel(level().tk_rope, &shape, {x.data(), angles.data(), out.data()}, batch);
    std::vector<double> want(x.begin(), x.end());
    for (int t = 0; t < 4; ++t)
      for (int h = 0; h < 2; ++h)
        for (int i = 0; i < 3; ++i) {
          int base = t * 20 + h * 10, a = base + (interleaved ? 2 * i : i);
          int b = base + (interleaved ? 2 * i + 1 : i + 3);
          double angle = (11 + t) * frequencies[i];
          want[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
          want[b] = x[b] * std::cos(angle) + x[a] * std::sin(angle);
        }
    expectNear(out, want, 1e-6);
  }
}

// Sequences of 2000, 2048, 8192 and 2049 tokens: the last two are beyond the original 2048.
TEST_P(RopeTest, ByLengthOfTheSequence) {
  const std::vector<double> &plain = golden["theta1e4.inv_freq"].values;
  const std::vector<double> &stretched = golden["dynamic.inv_freq"].values;
  int32_t pairs = int32_t(plain.size()), dim = 2 * pairs;
  Batch batch({3, 1, 2, 1}, {1997, 2047, 8190, 2048});
  std::vector<float> angles(7 * dim);
  auto check = [&](int token, auto frequencyOf) {
    for (int i = 0; i < pairs; ++i) {
      double angle = batch.positions[token] * frequencyOf(i);
      ASSERT_NEAR(angles[token * dim + i], std::cos(angle), 2e-7);
      ASSERT_NEAR(angles[token * dim + pairs + i], std::sin(angle), 2e-7);
    }
  };
  for (int threads : teams({1, 3})) {
    tk_rope_angles_shape shape = {dim, dim, 1, 2048, 2};
    runKernel(level().tk_rope_angles, &shape, {plain.data(), angles.data()}, batch, threads);
    for (int token : {0, 1, 2, 3})
      check(token, [&](int i) { return plain[i]; });
    for (int token : {4, 5}) // golden for factor 2 and 8192 tokens
      check(token, [&](int i) { return stretched[i]; });
    check(6, [&](int i) {
      return plain[i] * std::pow(2.0 * 2049 / 2048 - 1, -i / double(pairs - 1));
    });

    std::vector<double> rows = plain;
    rows.insert(rows.end(), stretched.begin(), stretched.end());
    shape.dynamic = 0;
    runKernel(level().tk_rope_angles, &shape, {rows.data(), angles.data()}, batch, threads);
    for (int token = 0; token < 7; ++token)
      check(token, [&](int i) { return token < 4 ? plain[i] : stretched[i]; });
  }
}

TENON_KERNEL_TEST_SUITE(RopeTest);

} // namespace
