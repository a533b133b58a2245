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

enum Role { query, key, value, none };

// What attention does with a projection: follows it through operations on its rows, such as norm,
// rotation and copying, to its only reader. A plugin's operations are as good.
Role getRole(Value projection) {
  while (projection.hasOneUse()) {
    OpOperand &use = *projection.getUses().begin();
    Operation *user = use.getOwner();
    if (isa<AttentionOp>(user))
      return Role(use.getOperandNumber()); // query, key, value
    if (isa<PagedAttentionOp>(user))
      return query;
    if (isa<KVAppendOp>(user))
      return use.getOperandNumber() == 1 ? key : value;
    if (isa<LinearOp>(user) || !isa<ReferenceOpInterface>(user) || use.getOperandNumber() != 0 ||
        user->getNumResults() != 1)
      return none;
    projection = user->getResult(0);
  }
  return none;
}

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
      Role role = linear ? getRole(linear) : none;
      if (role == none || projections[role])
        ++others;
      else
        projections[role] = linear;
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
    int64_t begin = 0;
    for (LinearOp op : projections) {
      int64_t end = begin + getColumns(op);
      op.replaceAllUsesWith(
          SliceOp::create(builder, op.getLoc(), fused.getResult(0), begin, end).getResult());
      begin = end;
    }
    for (LinearOp op : projections)
      op.erase();
    norm.erase();
  }

  void missed(NormOpInterface norm, const Twine &why) { emitMissed(norm, getArgument(), why); }
};

} // namespace
} // namespace tenon
