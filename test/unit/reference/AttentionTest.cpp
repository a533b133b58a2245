// Attention and the cache on ragged batches, against loops in double precision.
#include "Jit.h"
#include <cmath>
#include <functional>
#include <gtest/gtest.h>

using namespace tenon::test;

namespace {

constexpr int heads = 6, kvHeads = 2, dim = 8;
constexpr double scale = 0.3;

// The element, of keys (0) or values (1), at a position of a sequence.
using Element =
    std::function<double(int half, int32_t sequence, int32_t position, int head, int d)>;

std::vector<double> attend(Rows &q, const Batch &batch, const Element &element) {
  std::vector<double> out;
  for (int64_t t = 0; t < q.count; ++t)
    for (int h = 0; h < heads; ++h) {
      int32_t s = batch.sequenceOf[t], keys = batch.positions[t] + 1;
      int kv = h / (heads / kvHeads);
      std::vector<double> weights;
      double sum = 0;
      for (int32_t j = 0; j < keys; ++j) {
        double score = 0;
        for (int d = 0; d < dim; ++d)
          score += q.at(t, h * dim + d) * element(0, s, j, kv, d);
        weights.push_back(std::exp(scale * score));
        sum += weights.back();
      }
      for (int d = 0; d < dim; ++d) {
        double mixed = 0;
        for (int32_t j = 0; j < keys; ++j)
          mixed += weights[j] * element(1, s, j, kv, d);
        out.push_back(mixed / sum);
      }
    }
  return out;
}

std::string replaceAll(std::string text, const std::string &what, const std::string &by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

class CacheTest : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(, CacheTest, testing::Values("f32", "bf16", "f16", "i8"),
                         [](auto &info) { return info.param; });

TEST(Attention, Tokens) {
  Jit k(
      R"(sched.kernel @k kind "" (%b: !llm.batch, %q: tensor<?x48xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>) -> tensor<?x48xf32> {
    %y = llm.attention %q, %k, %v, %b heads 6 kv_heads 2 scale 3.000000e-01 keys tokens : tensor<?x48xf32>, tensor<?x16xf32>
    sched.yield %y : tensor<?x48xf32>
  })");
  Batch batch({5, 1, 19, 2});
  Rows q(27, 48, 1), key(27, 16, 2), value(27, 16, 3), y(27, 48);
  k.run(batch, {q, key, value, y});
  y.expectNear(attend(q, batch, [&](int half, int32_t s, int32_t j, int h, int d) {
    return (half ? value : key).at(batch.starts[s] + j, h * dim + d);
  }));
}

// Reading the context and attending to it is paged attention.
TEST_P(CacheTest, ContextAndPaged) {
  Batch batch({5, 1, 1, 19}, {20, 0, 33, 3});
  Cache cache(GetParam(), batch, kvHeads, dim);
  Jit k(replaceAll(
      R"(sched.kernel @k kind "" (%b: !llm.batch, %q: tensor<?x48xf32>, %c: CACHE) -> (tensor<?x48xf32>, tensor<?x48xf32>) {
    %k, %v = llm.kv_read %c, %b layer 1 : CACHE
    %x = llm.attention %q, %k, %v, %b heads 6 kv_heads 2 scale 3.000000e-01 keys context : tensor<?x48xf32>, tensor<?x16xf32>
    %y = llm.paged_attention %q, %c, %b layer 1 heads 6 scale 3.000000e-01 : tensor<?x48xf32>, CACHE
    sched.yield %x, %y : tensor<?x48xf32>, tensor<?x48xf32>
  })",
      "CACHE", cache.type()));
  Rows q(26, 48, 1), x(26, 48), y(26, 48);
  std::vector<char> before = cache.bytes;
  k.run(batch, {q, cache, x, y});
  auto want = attend(q, batch, [&](auto... at) { return cache.at(at...); });
  x.expectNear(want);
  y.expectNear(want);
  EXPECT_EQ(cache.bytes, before);
}

// The tokens' own places are written, rounded to nearest even, and nothing else.
TEST_P(CacheTest, Append) {
  Batch batch({5, 1, 19}, {14, 0, 33});
  Cache cache(GetParam(), batch, kvHeads, dim);
  Jit k(replaceAll(
      R"(sched.kernel @k kind "" (%b: !llm.batch, %c: CACHE, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>) {
    %c1 = llm.kv_append %c, %k, %v, %b layer 1 : CACHE, tensor<?x16xf32>
    sched.yield
  })",
      "CACHE", cache.type()));
  Rows key(25, 16, 1), value(25, 16, 2);
  float ties[] = {1.00390625f, 1.01171875f, -1.00390625f, 1e-9f,
                  3e38f,       -INFINITY,   1.0004883f,   0.0f};
  for (int i = 0; i < 8; ++i)
    key.at(7, i) = ties[i];
  std::vector<char> before = cache.bytes;
  k.run(batch, {cache, key, value});

  for (int t = 0; t < 25; ++t)
    for (int half : {0, 1})
      for (int i = 0; i < 16; ++i) {
        double got = cache.at(half, batch.sequenceOf[t], batch.positions[t], i / dim, i % dim);
        double wanted = cache.stored(half ? value : key, t, i / dim, i % dim);
        if (std::isfinite(wanted))
          ASSERT_EQ(got, wanted);
        else // an infinity in int8 spoils its group, one way or another
          ASSERT_FALSE(std::isfinite(got));
      }
  int64_t changed = 0, elementBytes = GetParam() == std::string("f32") ? 4 : 2;
  for (size_t i = 0; i < before.size(); i += elementBytes)
    changed += !std::equal(&before[i], &before[i] + elementBytes, &cache.bytes[i]);
  // An int8 head of 8 takes 4 pairs of elements, or 8 halves of pairs, and a scale.
  EXPECT_LE(changed, 25 * 2 * (16 + kvHeads));
}

TEST(Cache, AppendKeepsNaN) {
  for (const char *element : {"bf16", "i8"}) {
    Batch batch(1);
    Cache cache(element, batch, kvHeads, dim);
    Jit k(replaceAll(
        R"(sched.kernel @k kind "" (%b: !llm.batch, %c: CACHE, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>) {
    %c1 = llm.kv_append %c, %k, %v, %b layer 0 : CACHE, tensor<?x16xf32>
    sched.yield
  })",
        "CACHE", cache.type()));
    Rows key(1, 16, 1), value(1, 16, 2);
    key.at(0, 3) = NAN;
    value.at(0, 9) = INFINITY;
    k.run(batch, {cache, key, value});
    EXPECT_TRUE(std::isnan(cache.at(0, 0, 0, 0, 3)));
    EXPECT_FALSE(std::isfinite(cache.at(1, 0, 0, 1, 1)));
    EXPECT_TRUE(std::isfinite(cache.at(1, 0, 0, 0, 1)));
  }
}

// Heads of 40: two scales each, of which the second is that of 8 elements. Zeros, and what is too
// small for a scale, are zeros.
TEST(Cache, QuantisedGroups) {
  Batch batch({3}, {30});
  Cache cache("i8", batch, 1, 40);
  Jit k(replaceAll(
      R"(sched.kernel @k kind "" (%b: !llm.batch, %c: CACHE, %k: tensor<?x40xf32>, %v: tensor<?x40xf32>) {
    %c1 = llm.kv_append %c, %k, %v, %b layer 0 : CACHE, tensor<?x40xf32>
    sched.yield
  })",
      "CACHE", cache.type()));
  Rows key(3, 40, 1), value(3, 40, 2);
  for (int d = 0; d < 40; ++d) {
    key.at(0, d) *= d < 32 ? 1000 : 1;
    key.at(1, d) = 0;
    value.at(2, d) = d < 32 ? 1e-38f : value.at(2, d);
  }
  k.run(batch, {cache, key, value});
  for (int t = 0; t < 3; ++t)
    for (int half : {0, 1})
      for (int d = 0; d < 40; ++d)
        EXPECT_EQ(cache.at(half, 0, 30 + t, 0, d),
                  half && t == 2 && d < 32 ? 0 : cache.stored(half ? value : key, t, 0, d));
}

// One kernel that appends and then attends sees what it appended.
TEST_P(CacheTest, AppendThenAttend) {
  Batch batch({5, 1, 19}, {14, 0, 33});
  Cache cache(GetParam(), batch, kvHeads, dim);
  Jit k(replaceAll(
      R"(sched.kernel @k kind "" (%b: !llm.batch, %q: tensor<?x48xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %c: CACHE) -> tensor<?x48xf32> {
    %y = llm.fused @append_attend -> tensor<?x48xf32> {
      %c1 = llm.kv_append %c, %k, %v, %b layer 1 : CACHE, tensor<?x16xf32>
      %a = llm.paged_attention %q, %c1, %b layer 1 heads 6 scale 3.000000e-01 : tensor<?x48xf32>, CACHE
      llm.yield %a : tensor<?x48xf32>
    }
    sched.yield %y : tensor<?x48xf32>
  })",
      "CACHE", cache.type()));
  Rows q(25, 48, 1), key(25, 16, 2), value(25, 16, 3), y(25, 48);
  Cache before = cache;
  k.run(batch, {q, key, value, cache, y});
  y.expectNear(attend(q, batch, [&](int half, int32_t s, int32_t j, int h, int d) {
    int32_t cached = batch.lengths[s] - (batch.starts[s + 1] - batch.starts[s]);
    if (j < cached)
      return before.at(half, s, j, h, d);
    return cache.stored(half ? value : key, batch.starts[s] + j - cached, h, d);
  }));
}

} // namespace
