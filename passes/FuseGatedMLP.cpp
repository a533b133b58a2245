// llm-fuse-gated-mlp: norm, gate and up projections and their product become one fused operation.
#include "passes/Graph.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"

namespace tenon {
#define GEN_PASS_DEF_LLMFUSEGATEDMLP
#include "passes/Passes.h.inc"

using namespace mlir;
using namespace tenon::llm;

namespace {

struct FuseGatedMLP : impl::LLMFuseGatedMLPBase<FuseGatedMLP> {
  void runOnOperation() override {
    SmallVector<MulOp> products(getOperation().getOps<MulOp>());
    for (MulOp product : products)
      fuse(product);
  }

  void fuse(MulOp product) {
    GatedProduct<LinearOp> gated(product);
    if (!gated)
      return;
    LinearOp gate = gated.gate, up = gated.up;
    if (gated.hasOtherUsers())
      return missed(product, "a part of the product has other users");
    std::string why;
    if (!canStack({gate, up}, why))
      return missed(product, why);

    auto norm = gate.getInput().getDefiningOp<NormOpInterface>();
    // A norm that others read, or of single heads, stays outside.
    if (norm && (norm.getNormHeads() > 1 || !llvm::all_of(norm->getUsers(), [&](Operation *user) {
                   return user == gate || user == up;
                 })))
      norm = nullptr;

    OpBuilder builder(product);
    Location loc = product.getLoc();
    StackedLinear both = stack(builder, {gate, up});
    int64_t width = getColumns(gate);
    FusedOp fused =
        createFused(builder, loc, "gated_mlp", [&](OpBuilder &body) -> SmallVector<Value> {
          Value rows = norm ? body.clone(*norm)->getResult(0) : Value(gate.getInput());
          Value stacked = LinearOp::create(body, loc, rows, both.weight, both.bias);
          Value left = SliceOp::create(body, loc, stacked, 0, width);
          Value right = SliceOp::create(body, loc, stacked, width, 2 * width);
          Value active =
              ActivationOp::create(body, loc, left.getType(), gated.activation.getKind(), left);
          return {MulOp::create(body, loc, active.getType(), active, right)};
        });
    emitFused(fused, getArgument());
    gated.replaceWith(fused.getResult(0));
    if (norm)
      norm.erase();
  }

  void missed(MulOp product, const Twine &why) { emitMissed(product, getArgument(), why); }
};

} // namespace
} // namespace tenon
