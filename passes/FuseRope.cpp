// llm-fuse-rope: in @decode, rotation, cache update and attention of a layer become one fused
// operation.
#include "passes/Graph.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"

namespace tenon {
#define GEN_PASS_DEF_LLMFUSEROPE
#include "passes/Passes.h.inc"

using namespace mlir;
using namespace tenon::llm;

namespace {

struct FuseRope : impl::LLMFuseRopeBase<FuseRope> {
  void runOnOperation() override {
    if (!isDecode(getOperation()))
      return; // other tokens of the batch would read keys that another thread has yet to write
    SmallVector<PagedAttentionOp> attentions(getOperation().getOps<PagedAttentionOp>());
    for (PagedAttentionOp attention : attentions)
      fuse(attention);
  }

  void fuse(PagedAttentionOp attention) {
    auto append = attention.getCache().getDefiningOp<KVAppendOp>();
    auto query = attention.getQuery().getDefiningOp<RopeOp>();
    auto key = append ? append.getKey().getDefiningOp<RopeOp>() : RopeOp();
    if (!query || !key || append.getLayer() != attention.getLayer())
      return; // not rotated
    if (!query->hasOneUse() || !key->hasOneUse())
      return emitMissed(attention, getArgument(), "a rotated value has other users");
    if (query.getFirst() || key.getFirst())
      return emitMissed(attention, getArgument(),
                        "heads are not rotated from their first element on");
    if (query.getAngles() != key.getAngles() || query.getStyle() != key.getStyle())
      return emitMissed(attention, getArgument(), "queries and keys are rotated differently");
    OpBuilder builder(attention);
    Location loc = attention.getLoc();
    FusedOp fused =
        createFused(builder, loc, "rope_attention", [&](OpBuilder &body) -> SmallVector<Value> {
          IRMapping mapping;
          Operation *parts[] = {query, key, append, attention};
          for (Operation *op : parts)
            body.clone(*op, mapping);
          return {mapping.lookup(attention.getResult()), mapping.lookup(append.getResult())};
        });
    emitFused(fused, getArgument());
    attention.replaceAllUsesWith(fused.getResult(0));
    attention.erase();
    append.replaceAllUsesWith(fused.getResult(1));
    append.erase();
    query.erase();
    key.erase();
  }
};

} // namespace
} // namespace tenon
