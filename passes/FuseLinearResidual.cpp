// llm-fuse-linear-residual: a projection and the residual sum after it become one fused operation.
#include "passes/Graph.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"

namespace tenon {
#define GEN_PASS_DEF_LLMFUSELINEARRESIDUAL
#include "passes/Passes.h.inc"

using namespace mlir;
using namespace tenon::llm;

namespace {

struct FuseLinearResidual : impl::LLMFuseLinearResidualBase<FuseLinearResidual> {
  void runOnOperation() override {
    SmallVector<AddOp> sums(getOperation().getOps<AddOp>());
    for (AddOp sum : sums)
      fuse(sum);
  }

  void fuse(AddOp sum) {
    auto linear = sum.getRhs().getDefiningOp<LinearOp>();
    if (!linear || !linear->hasOneUse())
      linear = sum.getLhs().getDefiningOp<LinearOp>();
    if (!linear || !linear->hasOneUse())
      return;
    OpBuilder builder(sum);
    Location loc = builder.getFusedLoc({linear.getLoc(), sum.getLoc()});
    FusedOp fused =
        createFused(builder, loc, "linear_residual", [&](OpBuilder &body) -> SmallVector<Value> {
          IRMapping mapping;
          body.clone(*linear, mapping);
          return {body.clone(*sum, mapping)->getResult(0)};
        });
    emitFused(fused, getArgument());
    sum.replaceAllUsesWith(fused.getResult(0));
    sum.erase();
    linear.erase();
  }
};

} // namespace
} // namespace tenon
