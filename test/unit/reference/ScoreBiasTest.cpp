// The tables that the compiler computes, score biases and sinusoids, against golden slopes and
// numbers worked out by hand.
#include "../kernels/Oracle.h"
#include "codegen/WeightWriter.h"
#include "ir/LLM.h"
#include "ir/RandomWeights.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>

using namespace tenon;
using namespace tenon::llm;

namespace {

class ScoreBias : public testing::Test {
protected:
  // The last weight operation of a function's body.
  mlir::Operation *build(const std::string &body) {
    module = mlir::parseSourceString<mlir::ModuleOp>("func.func @f() {\n" + body + "\nreturn\n}",
                                                     &context);
    mlir::Operation *last = nullptr;
    if (module)
      module->walk([&](WeightOpInterface op) { last = op; });
    return last;
  }

  void SetUp() override { context.loadDialect<LLMDialect, mlir::func::FuncDialect>(); }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_F(ScoreBias, GoldenSlopes) {
  auto golden = readOracle("attention/attention.safetensors");
  for (int heads : {6, 8}) {
    auto op = llvm::cast<AlibiOp>(
        build("%b = llm.alibi heads " + std::to_string(heads) + " length 9 origin 8"));
    for (int head = 0; head < heads; ++head) {
      double slope = golden["alibi" + std::to_string(heads) + ".slopes"].values[head];
      auto row = op.evaluate(head);
      ASSERT_EQ(row.size(), 9u);
      for (int n = 0; n < 9; ++n)
        EXPECT_FLOAT_EQ(row[n], float(slope * (n - 8)));
    }
  }
}

// A largest exponent of 4 halves all of them: 2^-0.5, 2^-1, ...
TEST_F(ScoreBias, LargestAndScale) {
  auto op = llvm::cast<AlibiOp>(build("%b = llm.alibi heads 8 length 2 largest 4.0 scale 0.25"));
  EXPECT_FLOAT_EQ(op.evaluate(0)[1], 0.25 * 0.70710678f);
  EXPECT_FLOAT_EQ(op.evaluate(7)[1], 0.25 * 0.0625f);
}

// 2^-0.5 is 0.70703125 in bfloat16; times 257, which is 256 there, is 181 exactly.
TEST_F(ScoreBias, RoundedToBfloat16) {
  auto op = llvm::cast<AlibiOp>(build("%b = llm.alibi heads 16 length 300 scale 0.5 bfloat16"));
  EXPECT_EQ(op.evaluate(0)[1], 0.5f * 0.70703125f);
  EXPECT_EQ(op.evaluate(0)[257], 90.5f);
}

// Buckets of 32 over 128 positions, as T5 has them.
TEST_F(ScoreBias, Buckets) {
  auto encoder = llvm::cast<RelativeBiasOp>(
      build("%w = llm.weight \"b\" : <32x8xf32>\n"
            "%b = llm.relative_bias %w max_distance 128 bidirectional : !llm.weight<32x8xf32>"));
  const std::pair<int, int> both[] = {{0, 0},    {-1, 1},   {-7, 7},   {-8, 8},    {-11, 8},
                                      {-12, 9},  {-15, 9},  {-16, 10}, {-22, 10},  {-23, 11},
                                      {-31, 11}, {-32, 12}, {-64, 14}, {-127, 15}, {-500, 15}};
  for (auto [distance, bucket] : both) {
    EXPECT_EQ(encoder.getBucket(distance), bucket) << distance;
    if (distance) {
      EXPECT_EQ(encoder.getBucket(-distance), bucket + 16) << -distance;
    }
  }
  auto decoder = llvm::cast<RelativeBiasOp>(
      build("%w = llm.weight \"b\" : <32x8xf32>\n"
            "%b = llm.relative_bias %w max_distance 128 : !llm.weight<32x8xf32>"));
  const std::pair<int, int> causal[] = {{5, 0},    {0, 0},    {-15, 15},  {-16, 16},
                                        {-32, 21}, {-64, 26}, {-127, 31}, {-128, 31}};
  for (auto [distance, bucket] : causal)
    EXPECT_EQ(decoder.getBucket(distance), bucket) << distance;
}

// The table's entry of a head and a distance is the matrix's of its bucket and the head.
TEST_F(ScoreBias, RelativeTable) {
  auto op = llvm::cast<RelativeBiasOp>(
      build("%w = llm.weight \"b\" : <8x3xf32>\n"
            "%b = llm.relative_bias %w max_distance 16 bidirectional : !llm.weight<8x3xf32>"));
  RandomWeights source(7, {{"b", {8, 3}, Storage::F32}});
  llvm::ArrayRef<uint8_t> bytes = source.getRows(*source.find("b"), 0, 8);
  std::vector<float> matrix(24), table(2 * 33);
  std::memcpy(matrix.data(), bytes.data(), bytes.size());
  WeightRows rows;
  ASSERT_FALSE(bool(readWeightRows(op.getResult(), source, 1, 2, rows)));
  ASSERT_EQ(rows.bytes.size(), table.size() * 4);
  std::memcpy(table.data(), rows.bytes.data(), rows.bytes.size());
  for (int head : {1, 2})
    for (int distance = -16; distance <= 16; ++distance)
      EXPECT_EQ(table[(head - 1) * 33 + distance + 16], matrix[op.getBucket(distance) * 3 + head]);
}

// Row p has sin(p f) and cos(p f), f = 10000^(-2 i / 5): side by side, or in two halves, of which
// the sines are one more when the width is odd.
TEST_F(ScoreBias, Sinusoids) {
  auto value = [](int row, int i) {
    double angle = row * std::pow(10000.0, -2.0 * (i / 2) / 5);
    return float(i % 2 ? std::cos(angle) : std::sin(angle));
  };
  auto side = llvm::cast<SinusoidalOp>(build("%t = llm.sinusoidal interleaved : <9x5xf32>"));
  llvm::SmallVector<float> rows = side.evaluate(/*first=*/3, /*count=*/2);
  ASSERT_EQ(rows.size(), 10u);
  for (int i = 0; i < 5; ++i)
    EXPECT_FLOAT_EQ(rows[5 + i], value(4, i));

  auto halves = llvm::cast<SinusoidalOp>(build("%t = llm.sinusoidal halves : <9x5xf32>"));
  rows = halves.evaluate(4, 1);
  const int order[] = {0, 2, 4, 1, 3};
  for (int i = 0; i < 5; ++i)
    EXPECT_FLOAT_EQ(rows[i], value(4, order[i]));
}

} // namespace
