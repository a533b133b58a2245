// Operations on rows, against loops in double precision.
#include "Jit.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace tenon::test;

namespace {

std::vector<double> product(Rows &x, const std::vector<float> &weight) {
  std::vector<double> out;
  for (int64_t t = 0; t < x.count; ++t)
    for (size_t n = 0; n < weight.size() / x.columns; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < x.columns; ++k)
        sum += double(x.at(t, k)) * weight[n * x.columns + k];
      out.push_back(sum);
    }
  return out;
}

std::vector<double> normed(Rows &x, const std::vector<float> &weight, double eps) {
  std::vector<double> out;
  for (int64_t t = 0; t < x.count; ++t) {
    double squares = 0;
    for (int64_t c = 0; c < x.columns; ++c)
      squares += double(x.at(t, c)) * x.at(t, c);
    for (int64_t c = 0; c < x.columns; ++c)
      out.push_back(x.at(t, c) / std::sqrt(squares / double(x.columns) + eps) * weight[c]);
  }
  return out;
}

TEST(Rows, Linear) {
  Jit k(
      R"(sched.kernel @k kind "" (%b: !llm.batch, %x: tensor<?x40xf32>, %w: !llm.weight<33x40xf32>) -> tensor<?x33xf32> {
    %y = llm.linear %x, %w : tensor<?x40xf32>, !llm.weight<33x40xf32>
    sched.yield %y : tensor<?x33xf32>
  })");
  std::vector<float> weight = randomFloats(33 * 40, 1);
  for (int32_t tokens : {0, 1, 5}) {
    Rows x(tokens, 40, 2), y(tokens, 33);
    k.run(Batch(tokens), {x, weight, y});
    y.expectNear(product(x, weight));
  }
}

TEST(Rows, LinearWithBias) {
  Jit k(
      R"(sched.kernel @k kind "" (%b: !llm.batch, %x: tensor<?x40xf32>, %w: !llm.weight<6x40xf32>, %bias: !llm.weight<6xf32>) -> tensor<?x6xf32> {
    %y = llm.linear %x, %w, %bias : tensor<?x40xf32>, !llm.weight<6x40xf32>, !llm.weight<6xf32>
    sched.yield %y : tensor<?x6xf32>
  })");
  std::vector<float> weight = randomFloats(6 * 40, 1), bias = randomFloats(6, 3);
  Rows x(3, 40, 2), y(3, 6);
  k.run(Batch(3), {x, weight, bias, y});
  std::vector<double> want = product(x, weight);
  for (size_t i = 0; i < want.size(); ++i)
    want[i] += bias[i % 6];
  y.expectNear(want);
}

TEST(Rows, Embedding) {
  Jit k(R"(sched.kernel @k kind "" (%b: !llm.batch, %w: !llm.weight<7x24xf32>) -> tensor<?x24xf32> {
    %y = llm.embedding %b, %w : !llm.weight<7x24xf32>
    sched.yield %y : tensor<?x24xf32>
  })");
  std::vector<float> table = randomFloats(7 * 24, 1);
  Batch batch({4, 1, 6});
  Rows y(11, 24);
  k.run(batch, {table, y});
  std::vector<double> want;
  for (int32_t id : batch.ids)
    want.insert(want.end(), &table[id * 24], &table[id * 24] + 24);
  y.expectNear(want, 0);
}

// Everything after the gather has one row for each scored row.
TEST(Rows, GatherScored) {
  Jit k(
      R"(sched.kernel @k kind "" (%b: !llm.batch, %x: tensor<?x24xf32>, %w: !llm.weight<24xf32>) -> tensor<?x24xf32> {
    %g = llm.gather_rows %x, %b : tensor<?x24xf32>
    %y = llm.rms_norm %g, %w eps 1.000000e-05 : tensor<?x24xf32>, !llm.weight<24xf32>
    sched.yield %y : tensor<?x24xf32>
  })",
      /*scored=*/{2});
  std::vector<float> weight = randomFloats(24, 1);
  Batch batch({3, 4}, {}, {2, 5, 6});
  Rows x(7, 24, 2), gathered(3, 24), y(3, 24);
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 24; ++c)
      gathered.at(r, c) = x.at(batch.scoredRows[r], c);
  k.run(batch, {x, weight, y});
  y.expectNear(normed(gathered, weight, 1e-5));
}

TEST(Rows, ScoredOperands) {
  Jit k(
      R"(sched.kernel @k kind "" (%b: !llm.batch, %x: tensor<?x24xf32>, %y: tensor<?x24xf32>) -> tensor<?x24xf32> {
    %z = llm.add %x, %y : tensor<?x24xf32>
    sched.yield %z : tensor<?x24xf32>
  })",
      /*scored=*/{0, 1, 2});
  Rows x(2, 24, 1), y(2, 24, 2), z(2, 24);
  k.run(Batch({5, 3}, {}, {4, 7}), {x, y, z});
  std::vector<double> want;
  for (int i = 0; i < 48; ++i)
    want.push_back(double(x.at(i / 24, i % 24)) + y.at(i / 24, i % 24));
  z.expectNear(want);
}

TEST(Rows, SliceMulRepeat) {
  Jit k(R"(sched.kernel @k kind "" (%b: !llm.batch, %x: tensor<?x30xf32>) -> tensor<?x24xf32> {
    %l = llm.slice %x columns 0 to 12 : tensor<?x30xf32>
    %r = llm.slice %x columns 15 to 27 : tensor<?x30xf32>
    %m = llm.mul %l, %r : tensor<?x12xf32>
    %y = llm.repeat_kv %m heads 3 times 2 : tensor<?x12xf32>
    sched.yield %y : tensor<?x24xf32>
  })");
  Rows x(4, 30, 1), y(4, 24);
  k.run(Batch(4), {x, y});
  std::vector<double> want;
  for (int t = 0; t < 4; ++t)
    for (int head = 0; head < 6; ++head)
      for (int d = 0; d < 4; ++d)
        want.push_back(double(x.at(t, head / 2 * 4 + d)) * x.at(t, 15 + head / 2 * 4 + d));
  y.expectNear(want);
}

// Angles of long sequences lose nothing: they are computed in double precision.
TEST(Rows, RopeAngles) {
  Jit k(R"(sched.kernel @k kind "" (%b: !llm.batch, %f: !llm.weight<8xf64>) -> tensor<?x16xf32> {
    %y = llm.rope_angles %b, %f factor 1.250000e+00 : !llm.weight<8xf64>
    sched.yield %y : tensor<?x16xf32>
  })");
  std::vector<double> frequencies(8), want;
  for (int i = 0; i < 8; ++i)
    frequencies[i] = std::pow(1e4, -i / 8.0);
  Batch batch({3, 1}, {0, 131071});
  Rows y(4, 16);
  k.run(batch, {frequencies, y});
  for (int32_t position : batch.positions) {
    for (double f : frequencies)
      want.push_back(1.25 * std::cos(position * f));
    for (double f : frequencies)
      want.push_back(1.25 * std::sin(position * f));
  }
  y.expectNear(want, 1e-7);
}

// A fused body means what its operations mean; values from outside and several results included.
TEST(Rows, Fused) {
  Jit k(
      R"(sched.kernel @k kind "" (%b: !llm.batch, %x: tensor<?x24xf32>, %r: tensor<?x24xf32>, %n: !llm.weight<24xf32>, %w: !llm.weight<10x24xf32>) -> (tensor<?x24xf32>, tensor<?x10xf32>) {
    %h, %y = llm.fused @outer -> tensor<?x24xf32>, tensor<?x10xf32> {
      %s = llm.add %x, %r : tensor<?x24xf32>
      %p = llm.fused @inner -> tensor<?x10xf32> {
        %m = llm.rms_norm %s, %n eps 1.000000e-05 : tensor<?x24xf32>, !llm.weight<24xf32>
        %l = llm.linear %m, %w : tensor<?x24xf32>, !llm.weight<10x24xf32>
        llm.yield %l : tensor<?x10xf32>
      }
      llm.yield %s, %p : tensor<?x24xf32>, tensor<?x10xf32>
    }
    sched.yield %h, %y : tensor<?x24xf32>, tensor<?x10xf32>
  })");
  std::vector<float> norm = randomFloats(24, 1), weight = randomFloats(240, 2);
  Rows x(5, 24, 3), r(5, 24, 4), h(5, 24), y(5, 10);
  k.run(Batch({2, 3}), {x, r, norm, weight, h, y});
  std::vector<double> sum;
  for (int i = 0; i < 5 * 24; ++i)
    sum.push_back(double(x.at(i / 24, i % 24)) + r.at(i / 24, i % 24));
  h.expectNear(sum);
  Rows exact(5, 24, sum), mid(5, 24, normed(exact, norm, 1e-5));
  y.expectNear(product(mid, weight));
}

// A result may be an operand or appear twice.
TEST(Rows, ResultsThatAreOperands) {
  Jit k(
      R"(sched.kernel @k kind "" (%b: !llm.batch, %x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
    %y = llm.activation relu %x : tensor<?x8xf32>
    sched.yield %y, %x, %y : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
  })");
  Rows x(3, 8, 1), a(3, 8), b(3, 8), c(3, 8);
  k.run(Batch(3), {x, a, b, c});
  std::vector<double> same, relu;
  for (int i = 0; i < 24; ++i) {
    same.push_back(x.at(i / 8, i % 8));
    relu.push_back(std::max(0.0, same.back()));
  }
  a.expectNear(relu, 0);
  b.expectNear(same, 0);
  c.expectNear(relu, 0);
}

} // namespace
