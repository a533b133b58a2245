// fuse-qk-norm-rope: the norms of queries and keys join the rotation after them (Qwen3).
//
//      q      k                 q     k
//      │      │                 │     │
//     norm   norm       ┌ fused @qk_norm_rope ┐
//      │      │     ─▶  │     norm  norm      │
//     rope   rope       │     rope  rope      │
//      │      │         └───────┬─────┬───────┘
#include "Qk.h"
#include "passes/Graph.h"

using namespace mlir;
using namespace tenon;
using namespace tenon::llm;

namespace qk {
namespace {

struct FuseQkNormRope : PassWrapper<FuseQkNormRope, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FuseQkNormRope)

  StringRef getArgument() const override { return "fuse-qk-norm-rope"; }
  StringRef getDescription() const override {
    return "join the norms of queries and keys and their rotation";
  }

  void runOnOperation() override {
    SmallVector<RopeOp> ropes;
    for (RopeOp rope : getOperation().getOps<RopeOp>())
      if (NormRope::match(rope))
        ropes.push_back(rope);
    for (size_t i = 0; i < ropes.size(); ++i)
      if (i + 1 < ropes.size() && canJoin(ropes[i], ropes[i + 1])) {
        fuse({ropes[i], ropes[i + 1]});
        ++i;
      } else {
        fuse({ropes[i]});
      }
  }

  // Whether one kernel can do both: they turn by the same angles, and the second can't depend on
  // the first.
  static bool canJoin(RopeOp first, RopeOp second) {
    return first.getAngles() == second.getAngles() && first.getStyle() == second.getStyle() &&
           first.getHeadDim() == second.getHeadDim() &&
           llvm::all_of(first->getUsers(), [&](Operation *user) {
             return user->getBlock() == second->getBlock() && second->isBeforeInBlock(user);
           });
  }

  static void fuse(ArrayRef<RopeOp> ropes) {
    OpBuilder builder(ropes.back());
    Location loc =
        builder.getFusedLoc(llvm::map_to_vector(ropes, [](RopeOp rope) { return rope.getLoc(); }));
    FusedOp fused = createFused(builder, loc, "qk_norm_rope", [&](OpBuilder &body) {
      IRMapping mapping;
      SmallVector<Value> results;
      for (RopeOp rope : ropes) {
        body.clone(*rope.getInput().getDefiningOp(), mapping);
        results.push_back(body.clone(*rope, mapping)->getResult(0));
      }
      return results;
    });
    for (auto [rope, result] : llvm::zip_equal(ropes, fused.getResults())) {
      Operation *norm = RopeOp(rope).getInput().getDefiningOp();
      RopeOp(rope).replaceAllUsesWith(result);
      RopeOp(rope).erase();
      norm->erase();
    }
  }
};

} // namespace

std::unique_ptr<Pass> createFuseQkNormRope() { return std::make_unique<FuseQkNormRope>(); }

} // namespace qk
