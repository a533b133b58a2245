// What lowerKernels refuses, and the contract of the functions it makes.
#include "Jit.h"
#include <cmath>
#include <gmock/gmock.h>

using namespace tenon::test;

namespace {

std::string refusal(const std::string &source) {
  llvm::Expected<Jit> jit = Jit::compile(source);
  return jit ? "" : llvm::toString(jit.takeError());
}

TEST(Lowering, RefusesPackedWeights) {
  EXPECT_EQ(
      refusal(
          R"(sched.kernel @norm kind "" (%b: !llm.batch, %x: tensor<?x64xf32>, %w: !llm.weight<32x64xf32, x16k1>) -> tensor<?x32xf32> {
    %y = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<32x64xf32, x16k1>
    sched.yield %y : tensor<?x32xf32>
  })"),
      "kernel @norm: no reference lowering for packed or quantised weights, got "
      "!llm.weight<32x64xf32, x16k1>");
}

TEST(Lowering, RefusesQuantisedWeights) {
  EXPECT_THAT(
      refusal(
          R"(sched.kernel @k kind "" (%b: !llm.batch, %x: tensor<?x64xf32>, %w: !llm.weight<32x64xq4_1>) -> tensor<?x32xf32> {
    %y = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<32x64xq4_1>
    sched.yield %y : tensor<?x32xf32>
  })"),
      testing::HasSubstr("q4_1"));
}

TEST(Lowering, RefusesUnknownMeaning) {
  EXPECT_THAT(
      refusal(
          R"(sched.kernel @k kind "" (%b: !llm.batch, %x: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %w = llm.weight "norm.weight" : !llm.weight<64xf32>
    %y = llm.rms_norm %x, %w eps 1.000000e-05 : tensor<?x64xf32>, !llm.weight<64xf32>
    sched.yield %y : tensor<?x64xf32>
  })"),
      testing::AllOf(testing::HasSubstr("kernel @k"),
                     testing::HasSubstr("'llm.weight' op has no reference decomposition")));
}

TEST(Lowering, RefusesCacheResults) {
  EXPECT_THAT(
      refusal(
          R"(sched.kernel @k kind "" (%b: !llm.batch, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) -> !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]> {
    sched.yield %c : !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
  })"),
      testing::HasSubstr("cannot give a result of type"));
}

const char *const add =
    R"(sched.kernel @k kind "" (%b: !llm.batch, %x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %z = llm.add %x, %y : tensor<?x8xf32>
  sched.yield %z : tensor<?x8xf32>
}
)";

TEST(Lowering, OtherThreadsDoNothing) {
  Jit k(add);
  Rows x(2, 8, 1), y(2, 8, 2), z(2, 8);
  k.run(Batch(2), {x, y, z}, /*thread=*/1);
  for (float value : z.data)
    EXPECT_TRUE(std::isnan(value));
}

TEST(Lowering, SeveralKernels) {
  Jit k(std::string(add) +
        R"(sched.kernel @other kind "" (%b: !llm.batch, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
    %z = llm.activation gelu %x : tensor<?x8xf32>
    sched.yield %z : tensor<?x8xf32>
  })");
  EXPECT_TRUE(k.lookup("k"));
  EXPECT_TRUE(k.lookup("other"));
}

TEST(Lowering, NoKernels) { EXPECT_EQ(refusal(""), ""); }

} // namespace
