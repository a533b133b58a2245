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
    SmallVector<RMSNormOp> norms(getOperation().getOps<RMSNormOp>());
    for (RMSNormOp norm : norms)
      if (auto sum = norm.getInput().getDefiningOp<AddOp>())
        fuse(sum, norm);
  }

  void fuse(AddOp sum, RMSNormOp norm) {
    OpBuilder builder(sum);
    hoistWeight(norm.getWeight(), sum);
    Location loc = builder.getFusedLoc({sum.getLoc(), norm.getLoc()});
    FusedOp fused =
        createFused(builder, loc, "residual_norm", [&](OpBuilder &body) -> SmallVector<Value> {
          IRMapping mapping;
          Value total = body.clone(*sum, mapping)->getResult(0);
          return {total, body.clone(*norm, mapping)->getResult(0)};
        });
    emitFused(fused, getArgument());
    norm.replaceAllUsesWith(fused.getResult(1));
    norm.erase();
    sum.replaceAllUsesWith(fused.getResult(0));
    sum.erase();
  }
};

} // namespace
} // namespace tenon
