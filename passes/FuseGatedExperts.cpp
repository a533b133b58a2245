// llm-fuse-gated-experts: the gate and up projections of experts and their product become one fused
// operation.
#include "passes/Graph.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"

namespace tenon {
#define GEN_PASS_DEF_LLMFUSEGATEDEXPERTS
#include "passes/Passes.h.inc"

using namespace mlir;
using namespace tenon::llm;

namespace {

struct FuseGatedExperts : impl::LLMFuseGatedExpertsBase<FuseGatedExperts> {
  void runOnOperation() override {
    SmallVector<MulOp> products(getOperation().getOps<MulOp>());
    for (MulOp product : products)
      fuse(product);
  }

  void fuse(MulOp product) {
    GatedProduct<ExpertLinearOp> gated(product);
    if (!gated)
      return;
    ExpertLinearOp gate = gated.gate, up = gated.up;
    if (gated.hasOtherUsers())
      return missed(product, "a part of the product has other users");
    if (gate.getInput() != up.getInput() || gate.getChoice() != up.getChoice())
      return missed(product, "the projections read different rows or choices");
    if (gate.getWeight().getType() != up.getWeight().getType() ||
        bool(gate.getBias()) != bool(up.getBias()))
      return missed(product, "the projections' weights are not alike");

    for (ExpertLinearOp linear : {gate, up})
      for (Value weight : {Value(linear.getWeight()), Value(linear.getBias())})
        if (weight)
          hoistWeight(weight, product);
    OpBuilder builder(product);
    FusedOp fused = createFused(builder, product.getLoc(), "gated_experts",
                                [&](OpBuilder &body) -> SmallVector<Value> {
                                  IRMapping mapping;
                                  Operation *parts[] = {gate, gated.activation, up, product};
                                  for (Operation *op : parts)
                                    body.clone(*op, mapping);
                                  return {mapping.lookup(product.getResult())};
                                });
    emitFused(fused, getArgument());
    gated.replaceWith(fused.getResult(0));
  }

  void missed(MulOp product, const Twine &why) { emitMissed(product, getArgument(), why); }
};

} // namespace
} // namespace tenon
