// Costs against numbers worked out by hand: hidden 4, two query heads on one key head of 2, a
// vocabulary of 8, all in f32.
#include "codegen/Cost.h"
#include "test/unit/view/Support.h"

using namespace tenon;
using testing::FieldsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

namespace {

constexpr const char *model = R"(
func.func @prefill(%b: !llm.batch, %c: !llm.cache<1 x [k: 1x2xf32, v: 1x2xf32]>)
    -> (tensor<?x8xf32>, !llm.cache<1 x [k: 1x2xf32, v: 1x2xf32]>) {
  %e = llm.weight "e" : <8x4xf32>
  %g = llm.weight "g" : <4xf32>
  %wq = llm.weight "q" : <4x4xf32>
  %wk = llm.weight "k" : <2x4xf32>
  %bias = llm.weight "k.bias" : <2xf32>
  %f = llm.rope_frequencies dim 2 theta 1.0e4
  %x = llm.embedding %b, %e : <8x4xf32>
  %n = llm.rms_norm %x, %g eps 1.0e-5 : tensor<?x4xf32>, <4xf32>
  %q = llm.linear %n, %wq : tensor<?x4xf32>, <4x4xf32>
  %k = llm.linear %n, %wk, %bias : tensor<?x4xf32>, <2x4xf32>, !llm.weight<2xf32>
  %a = llm.rope_angles %b, %f : <1xf64>
  %rq = llm.rope %q, %a heads 2 half : tensor<?x4xf32>, tensor<?x2xf32>
  %c1 = llm.kv_append %c, %k, %k, %b layer 0 : <1 x [k: 1x2xf32, v: 1x2xf32]>, tensor<?x2xf32>
  %y = llm.paged_attention %rq, %c1, %b layer 0 heads 2 scale 1.0
    : tensor<?x4xf32>, <1 x [k: 1x2xf32, v: 1x2xf32]>
  %z = llm.fused @linear_residual -> tensor<?x4xf32> {
    %o = llm.linear %y, %wq : tensor<?x4xf32>, <4x4xf32>
    %s = llm.activation silu %o : tensor<?x4xf32>
    %t = llm.add %x, %s : tensor<?x4xf32>
    llm.yield %t : tensor<?x4xf32>
  }
  %r = llm.gather_rows %z, %b : tensor<?x4xf32>
  %l = llm.linear %r, %e : tensor<?x4xf32>, <8x4xf32>
  return %l, %c1 : tensor<?x8xf32>, !llm.cache<1 x [k: 1x2xf32, v: 1x2xf32]>
}
)";

class CostTest : public ViewTest {
protected:
  CostTest() : module(parse(model)) {}
  mlir::func::FuncOp getFunction() { return module->lookupSymbol<mlir::func::FuncOp>("prefill"); }
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

// operations, weight bytes, cache bytes, FLOPs
TEST_F(CostTest, decodesOneToken) {
  EXPECT_THAT(estimateCost(getFunction(), Workload::decode(5)),
              UnorderedElementsAre(
                  Pair("embedding", FieldsAre(1, 16, 0, 0)), // a row of 4
                  Pair("rms_norm", FieldsAre(1, 16, 0, 16)), // 4 of 4 elements
                  // q 2*4*4, k 2*2*4 + 2, o 2*4*4, head 2*8*4; 64 + 32 + 8 + 64 + 128 bytes
                  Pair("linear", FieldsAre(4, 296, 0, 32 + 18 + 32 + 64)),
                  Pair("rope_angles", FieldsAre(1, 8, 0, 4)),        // 2 of 2 elements
                  Pair("rope", FieldsAre(1, 0, 0, 12)),              // 3 of 4 elements
                  Pair("kv_append", FieldsAre(1, 0, 16, 0)),         // 2 + 2 elements
                  Pair("paged_attention", FieldsAre(1, 0, 80, 120)), // 5 keys, 2 heads, 4*2 + 4
                  Pair("activation", FieldsAre(1, 0, 0, 16)),        // 4 of 4 elements
                  Pair("add", FieldsAre(1, 0, 0, 4)), Pair("gather_rows", FieldsAre(1, 0, 0, 0))));
}

TEST_F(CostTest, scoresOneRowOfAPrompt) {
  CostTable table = estimateCost(getFunction(), Workload::prefill(3));
  EXPECT_THAT(table, testing::IsSupersetOf({
                         Pair("embedding", FieldsAre(1, 48, 0, 0)),
                         // All but the head see three rows.
                         Pair("linear", FieldsAre(4, 296, 0, 3 * (32 + 18 + 32) + 64)),
                         // 1 + 2 + 3 pairs; three positions are written, then read.
                         Pair("paged_attention", FieldsAre(1, 0, 48, 6 * 2 * 12)),
                         Pair("kv_append", FieldsAre(1, 0, 48, 0)),
                     }));
}

TEST_F(CostTest, addsUp) {
  Cost total = getTotal(estimateCost(getFunction(), Workload::decode(5)));
  EXPECT_THAT(total, FieldsAre(13, 336, 96, 318));
  EXPECT_EQ(getCacheBytesPerToken(getFunction()), 16);
}

} // namespace
