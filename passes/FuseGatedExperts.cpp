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
    auto activation = product.getLhs().getDefiningOp<ActivationOp>();
    Value other = product.getRhs();
    if (!activation) {
      activation = product.getRhs().getDefiningOp<ActivationOp>();
      other = product.getLhs();
    }
    auto gate =
        activation ? activation.getInput().getDefiningOp<ExpertLinearOp>() : ExpertLinearOp();
    auto up = other.getDefiningOp<ExpertLinearOp>();
    if (!gate || !up)
      return;
    if (!activation->hasOneUse() || !gate->hasOneUse() || !up->hasOneUse())
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
                                  Operation *parts[] = {gate, activation, up, product};
                                  for (Operation *op : parts)
                                    body.clone(*op, mapping);
                                  return {mapping.lookup(product.getResult())};
                                });
    emitFused(fused, getArgument());
    product.replaceAllUsesWith(fused.getResult(0));
    product.erase();
    activation.erase();
    gate.erase();
    up.erase();
  }

  void missed(MulOp product, const Twine &why) { emitMissed(product, getArgument(), why); }
};

} // namespace
} // namespace tenon
