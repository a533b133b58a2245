// The engine that runs functions in this process, and what is observed of a module.
#include "codegen/reference/Observation.h"
#include "ir/Sched.h"
#include "mlir/Parser/Parser.h"
#include "passes/Passes.h"
#include <cmath>
#include <gmock/gmock.h>

using namespace mlir;
using namespace tenon;

namespace {

class EngineTest : public testing::Test {
protected:
  EngineTest() : context(getRegistry()) { context.loadAllAvailableDialects(); }

  static DialectRegistry getRegistry() {
    DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }
  OwningOpRef<ModuleOp> parse(StringRef text) {
    return parseSourceString<ModuleOp>(text, &context);
  }
  func::FuncOp find(ModuleOp module, StringRef name) {
    return module.lookupSymbol<func::FuncOp>(name);
  }

  MLIRContext context;
  ReferenceEngine engine{/*seed=*/1};
};

// Two sequences of 2 and 1 tokens, the second after one cached position; the last rows are scored.
HostBatch makeBatch() {
  HostBatch batch;
  batch.ids = {1, 2, 0};
  batch.positions = {0, 1, 1};
  batch.sequenceOf = batch.sequences = {0, 0, 1};
  batch.starts = {0, 2, 3};
  batch.lengths = {2, 2};
  batch.blockTable = {2, 0};
  batch.scoredRows = {1, 2};
  batch.maxBlocks = 1;
  batch.blocks = 3;
  return batch;
}

HostRows makeRows(int64_t count, int64_t columns) {
  HostRows rows{RowKind::tokens, count, columns, {}};
  for (int64_t i = 0; i < count * columns; ++i)
    rows.data.push_back(float(i));
  return rows;
}

TEST_F(EngineTest, GathersScoredRows) {
  auto module = parse(R"(func.func @f(%b: !llm.batch, %x: tensor<?x2xf32>) -> tensor<?x2xf32> {
    %s = llm.add %x, %x : tensor<?x2xf32>
    %r = llm.gather_rows %s, %b : tensor<?x2xf32>
    return %r : tensor<?x2xf32>
  })");
  auto outcome = cantFail(engine.run(find(*module, "f"), makeBatch(), {makeRows(3, 2)}, {}));
  ASSERT_EQ(outcome.results.size(), 1u);
  EXPECT_EQ(outcome.results[0].kind, RowKind::scored);
  EXPECT_THAT(outcome.results[0].data, testing::ElementsAre(4, 6, 8, 10));
}

// kv_append gives a new cache; who reads the old one sees the old rows.
TEST_F(EngineTest, ACacheIsAValue) {
  auto module = parse(R"(
    func.func @f(%b: !llm.batch, %c: !llm.cache<1 x [k: 1x2xf32, v: 1x2xf32]>, %k: tensor<?x2xf32>)
        -> (tensor<?x2xf32>, tensor<?x2xf32>) {
      %d = llm.kv_append %c, %k, %k, %b layer 0 : !llm.cache<1 x [k: 1x2xf32, v: 1x2xf32]>, tensor<?x2xf32>
      %old, %0 = llm.kv_read %c, %b layer 0 : !llm.cache<1 x [k: 1x2xf32, v: 1x2xf32]>
      %new, %1 = llm.kv_read %d, %b layer 0 : !llm.cache<1 x [k: 1x2xf32, v: 1x2xf32]>
      return %old, %new : tensor<?x2xf32>, tensor<?x2xf32>
    })");
  func::FuncOp function = find(*module, "f");
  HostCache cache;
  cache.type = cast<llm::CacheType>(function.getArgumentTypes()[1]);
  std::vector<char> bytes(3 * 2 * 2 * TENON_BLOCK_TOKENS * sizeof(float));
  std::fill_n(reinterpret_cast<float *>(bytes.data()), bytes.size() / sizeof(float), 7.0f);
  cache.layers.push_back(std::make_shared<std::vector<char>>(bytes));
  auto outcome = cantFail(engine.run(function, makeBatch(), {makeRows(3, 2)}, cache));
  EXPECT_EQ(outcome.results[0].kind, RowKind::context);
  EXPECT_THAT(outcome.results[0].data, testing::Each(7.0f));
  EXPECT_THAT(outcome.results[1].data, testing::ElementsAre(0, 1, 2, 3, 7, 7, 4, 5));
  EXPECT_EQ(*cache.layers[0], bytes);
}

std::string refusal(llvm::Expected<ReferenceEngine::Outcome> outcome) {
  return outcome ? "" : llvm::toString(outcome.takeError());
}

TEST_F(EngineTest, RefusesRowsOfOthers) {
  auto module = parse(R"(
    func.func @mixed(%b: !llm.batch, %x: tensor<?x2xf32>) -> tensor<?x2xf32> {
      %r = llm.gather_rows %x, %b : tensor<?x2xf32>
      %y = llm.add %x, %r : tensor<?x2xf32>
      return %y : tensor<?x2xf32>
    }
    func.func @context(%b: !llm.batch, %q: tensor<?x2xf32>) -> tensor<?x2xf32> {
      %y = llm.attention %q, %q, %q, %b heads 1 kv_heads 1 scale 1.0 keys context : tensor<?x2xf32>, tensor<?x2xf32>
      return %y : tensor<?x2xf32>
    })");
  EXPECT_THAT(refusal(engine.run(find(*module, "mixed"), makeBatch(), {makeRows(3, 2)}, {})),
              testing::HasSubstr("'llm.add' reads a row for each token where it needs others"));
  EXPECT_THAT(refusal(engine.run(find(*module, "context"), makeBatch(), {makeRows(3, 2)}, {})),
              testing::HasSubstr("'llm.attention' reads"));
}

// Within two barriers the last stage runs first: what it needs of the first is not there.
TEST_F(EngineTest, StagesNeedBarriers) {
  const char *const kernel = R"(
    sched.kernel @double kind "" (%b: !llm.batch, %x: tensor<?x2xf32>) -> tensor<?x2xf32> {
      %y = llm.add %x, %x : tensor<?x2xf32>
      sched.yield %y : tensor<?x2xf32>
    }
    sched.weight @w at 0 bytes 24 : !llm.weight<3x2xf32> {
      %t = llm.weight "t" : <3x2xf32>
      sched.yield %t : !llm.weight<3x2xf32>
    }
    sched.kernel @look kind "" (%b: !llm.batch, %w: !llm.weight<3x2xf32>) -> tensor<?x2xf32> {
      %y = llm.embedding %b, %w : <3x2xf32>
      sched.yield %y : tensor<?x2xf32>
    }
    sched.program @prefill arena 128 + 0 {
      %w = sched.constant @w : !llm.weight<3x2xf32>
      %x = sched.buffer tokens at 0 : memref<?x2xf32>
      %y = sched.buffer tokens at 64 : memref<?x2xf32>
      sched.stage @look(%w) into(%x) slice rows : !llm.weight<3x2xf32> into memref<?x2xf32>
      BARRIER
      sched.stage @double(%x) into(%y) slice rows : memref<?x2xf32> into memref<?x2xf32>
      sched.output "x" %x : memref<?x2xf32>
      sched.output "y" %y : memref<?x2xf32>
    })";
  for (bool hasBarrier : {true, false}) {
    std::string text = kernel;
    text.replace(text.find("BARRIER"), 7, hasBarrier ? "sched.barrier" : "");
    auto module = parse(text);
    auto program = *module->getOps<sched::ProgramOp>().begin();
    auto outcome = cantFail(engine.run(program, makeBatch(), {}, {}));
    ASSERT_EQ(outcome.results.size(), 2u);
    for (int i = 0; i < 6; ++i) {
      float x = outcome.results[0].data[i], y = outcome.results[1].data[i];
      EXPECT_TRUE(hasBarrier ? y == 2 * x && x != 0 : std::isnan(y));
    }
  }
}

TEST_F(EngineTest, WeightsAreWhatTheirRecipeSays) {
  auto module = parse(R"(func.func @f() {
    %a = llm.weight "a" : <16x32xq4_1>
    %b = llm.weight "b" : <4x32xq4_1>
    %ab = llm.weight_concat %a, %b : !llm.weight<16x32xq4_1>, !llm.weight<4x32xq4_1>
    %p = llm.weight_pack %ab : <20x32xq4_1> to <20x32xq4_1, x16k4>
    %f = llm.weight "f" : <16x32xf32>
    %i = llm.weight_convert %f : <16x32xf32> to <16x32xq8_0>
    %big = llm.weight "big" : <1048576x4096xbf16>
    return
  })");
  std::vector<Value> values;
  for (Operation &op : find(*module, "f").getBody().front().without_terminator())
    values.push_back(op.getResult(0));
  WeightValues weights(1), others(2);
  auto get = [&](WeightValues &from, int i) {
    return static_cast<const float *>(cantFail(from.get(values[i])));
  };
  const float *a = get(weights, 0), *b = get(weights, 1), *ab = get(weights, 2),
              *packed = get(weights, 3), *f = get(weights, 4), *rounded = get(weights, 5);
  double difference = 0;
  for (int i = 0; i < 20 * 32; ++i) {
    EXPECT_EQ(ab[i], i < 512 ? a[i] : b[i - 512]);
    EXPECT_EQ(packed[i], ab[i]); // the codes are kept
    if (i < 512) {
      EXPECT_NEAR(rounded[i], f[i], 0.3 / 127);
      difference += std::fabs(rounded[i] - f[i]) + (get(others, 0)[i] == a[i] ? 0 : 1000);
    }
  }
  EXPECT_GT(difference, 1000); // rounding shows, and so does the seed
  EXPECT_THAT(llvm::toString(weights.begin(values[6])),
              testing::HasSubstr("its weights would take 16384 MiB as f32, of 8192 at most"));
}

TEST(Promise, OfPasses) {
  Promise fuse = getPromise(*createLLMFuseNormQKV());
  EXPECT_EQ(fuse.kind, Promise::sameIO);
  EXPECT_EQ(fuse.tolerance, sameNumbers);
  EXPECT_EQ(getPromise(*createLLMToSched()).kind, Promise::phaseMap);
  EXPECT_EQ(getPromise(*createLLMPackWeights()).tolerance, 2e-3);
  // Options decide how much is lost.
  EXPECT_EQ(getPromise(*createLLMInsertKVCache({"f32"})).tolerance, sameNumbers);
  EXPECT_GT(getPromise(*createLLMInsertKVCache({"bf16"})).tolerance, sameNumbers);
  EXPECT_GT(getPromise(*createLLMQuantize({"int4"})).tolerance,
            getPromise(*createLLMQuantize({"int8"})).tolerance);
}

} // namespace
