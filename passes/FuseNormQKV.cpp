// llm-fuse-norm-qkv: a norm and the Q, K and V projections become one fused operation.
#include "passes/Graph.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"

namespace tenon {
#define GEN_PASS_DEF_LLMFUSENORMQKV
#include "passes/Passes.h.inc"

using namespace mlir;
using namespace tenon::llm;

namespace {

struct FuseNormQKV : impl::LLMFuseNormQKVBase<FuseNormQKV> {
  void runOnOperation() override {
    SmallVector<NormOpInterface> norms(getOperation().getOps<NormOpInterface>());
    for (NormOpInterface norm : norms)
      fuse(norm);
  }

  void fuse(NormOpInterface norm) {
    LinearOp projections[3];
    unsigned others = 0;
    for (Operation *user : norm->getUsers()) {
      auto linear = dyn_cast<LinearOp>(user);
      Role role = linear ? getReader(linear).role : Role::none;
      if (role == Role::none || projections[int(role)])
        ++others;
      else
        projections[int(role)] = linear;
    }
    if (!llvm::all_of(projections, [](LinearOp op) { return bool(op); }))
      return; // not the norm before attention
    if (others)
      return missed(norm, "the norm has " + Twine(others) +
                              (others == 1 ? " other user" : " other users"));
    if (norm.getNormHeads() > 1)
      return missed(norm,
                    "the norm is of " + Twine(norm.getNormHeads()) + " heads, not of whole rows");
    std::string why;
    if (!canStack(projections, why))
      return missed(norm, why);

    OpBuilder builder(projections[0]);
    for (LinearOp op : projections)
      if (op->isBeforeInBlock(&*builder.getInsertionPoint()))
        builder.setInsertionPoint(op);
    StackedLinear qkv = stack(builder, projections);
    FusedOp fused =
        createFused(builder, norm.getLoc(), "norm_qkv", [&](OpBuilder &body) -> SmallVector<Value> {
          Value normed = body.clone(*norm)->getResult(0);
          return {LinearOp::create(body, norm.getLoc(), normed, qkv.weight, qkv.bias)};
        });
    emitFused(fused, getArgument());
    replaceWithSlices(builder, projections, fused.getResult(0));
    norm.erase();
  }

  void missed(NormOpInterface norm, const Twine &why) { emitMissed(norm, getArgument(), why); }
};

} // namespace
} // namespace tenon
