// llm-fuse-residual-norm: a residual sum and the norm of it become one fused operation with both as
// results.
#include "passes/Graph.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"

namespace tenon {
#define GEN_PASS_DEF_LLMFUSERESIDUALNORM
#include "passes/Passes.h.inc"

using namespace mlir;
using namespace tenon::llm;

namespace {

struct FuseResidualNorm : impl::LLMFuseResidualNormBase<FuseResidualNorm> {
  void runOnOperation() override {
    SmallVector<NormOpInterface> norms(getOperation().getOps<NormOpInterface>());
    for (NormOpInterface norm : norms)
      if (auto sum = norm.getNormInput().getDefiningOp<AddOp>())
        fuse(sum, norm);
  }

  void fuse(AddOp sum, NormOpInterface norm) {
    OpBuilder builder(sum);
    for (Value weight : norm->getOperands().drop_front())
      hoistWeight(weight, sum);
    Location loc = builder.getFusedLoc({sum.getLoc(), norm.getLoc()});
    FusedOp fused =
        createFused(builder, loc, "residual_norm", [&](OpBuilder &body) -> SmallVector<Value> {
          IRMapping mapping;
          Value total = body.clone(*sum, mapping)->getResult(0);
          return {total, body.clone(*norm, mapping)->getResult(0)};
        });
    emitFused(fused, getArgument());
    norm->replaceAllUsesWith(ValueRange(fused.getResult(1)));
    norm.erase();
    sum.replaceAllUsesWith(fused.getResult(0));
    sum.erase();
  }
};

} // namespace
} // namespace tenon
