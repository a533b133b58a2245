// Products through oneDNN against a plain loop, where a oneDNN is to be found.
#include "runtime/Matmul.h"

#include "runtime/ThreadTeam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

using namespace tenon::rt;

namespace {
uint16_t bfloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<uint16_t>(bits >> 16); // the test's values are exact
}

// Small integers, so that every sum is exact in every type.
float small(int64_t i) { return static_cast<float>(i * 7919 % 5) - 2; }

bool present() {
  static const bool loaded = [] {
    setOneDnnCandidates({"/nonexistent/libdnnl.so", TENON_TEST_DNNL_LIBRARY, "libdnnl.so.3"});
    return loadOneDnn();
  }();
  return loaded;
}

template <typename T>
void check(tenon_dtype dtype, T (*convert)(float), int64_t m, int64_t n, int64_t k) {
  const int64_t lda = k + 3, ldb = n + 5, ldc = n + 2;
  std::vector<T> a(m * lda), b(k * ldb);
  std::vector<float> c(m * ldc, 99);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = convert(small(static_cast<int64_t>(i)));
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = convert(small(static_cast<int64_t>(i) + 3));
  ASSERT_EQ(matmul(dtype, m, n, k, a.data(), lda, b.data(), ldb, c.data(), ldc), 0);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < ldc; ++j) {
      float sum = j < n ? 0 : 99; // between the rows nothing is written
      for (int64_t x = 0; j < n && x < k; ++x)
        sum += small(i * lda + x) * small(x * ldb + j + 3);
      ASSERT_EQ(c[i * ldc + j], sum) << m << "x" << n << "x" << k << " at " << i << ", " << j;
    }
}
} // namespace

TEST(Matmul, MatchesAPlainLoop) {
  if (!present())
    GTEST_SKIP() << describeOneDnn();
  for (int64_t m : {1, 16, 63, 64, 65, 130, 600}) {
    check<float>(TENON_F32, [](float x) { return x; }, m, 24, 40);
    check<uint16_t>(TENON_BF16, bfloat, m, 24, 40);
  }
  EXPECT_EQ(matmul(TENON_F32, 0, 1, 1, nullptr, 1, nullptr, 1, nullptr, 1), 0);
  EXPECT_NE(matmul(TENON_I8, 1, 1, 1, nullptr, 1, nullptr, 1, nullptr, 1), 0);
}

TEST(Matmul, ThreadsMultiplyTheirOwnSlices) {
  if (!present())
    GTEST_SKIP() << describeOneDnn();
  const int64_t m = 70, n = 64, k = 32;
  std::vector<float> a(m * k), b(k * n), c(m * n);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = small(static_cast<int64_t>(i));
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = small(static_cast<int64_t>(i));
  ThreadTeam team(4);
  for (int repeat = 0; repeat < 10; ++repeat)
    team.run([&](int thread) {
      matmul(TENON_F32, m, n / 4, k, a.data(), k, b.data() + thread * n / 4, n,
             c.data() + thread * n / 4, n);
    });
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t x = 0; x < k; ++x)
        sum += a[i * k + x] * b[x * n + j];
      ASSERT_EQ(c[i * n + j], sum);
    }
}

TEST(Matmul, SaysWhereItComesFrom) {
  EXPECT_EQ(describeOneDnn().rfind(present() ? "oneDNN 3." : "none", 0), 0u) << describeOneDnn();
}
