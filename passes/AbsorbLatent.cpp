// llm-absorb-latent: keys and values that are made from one latent row of a token are not made;
// heads attend to the latent row itself (arXiv:2405.04434, section 2.1.3).
//
//      q          latent        rotated             q          latent  rotated
//      │          │    │           │             ┌──┴──┐          └──┬──┘
//      │          Wk   Wv     repeat H           n     r             key ──▶ its first columns
//      │          └─┬──│───────────┘          Wk^T     │              │        │
//      │           key │                         └──┬──┘              │        │
//      └────┬───────┘  │               ─▶           └───────┬─────────┘        │
//        attention ────┘                                attention, one kv head ┘
//           │                                               Wv
//           out                                             out
#include "passes/Graph.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"

namespace tenon {
#define GEN_PASS_DEF_LLMABSORBLATENT
#include "passes/Passes.h.inc"

using namespace mlir;
using namespace tenon::llm;

namespace {

struct AbsorbLatent : impl::LLMAbsorbLatentBase<AbsorbLatent> {
  void runOnOperation() override {
    SmallVector<AttentionOp> attentions(getOperation().getOps<AttentionOp>());
    for (AttentionOp attention : attentions)
      absorb(attention);
  }

  void absorb(AttentionOp op) {
    auto join = op.getKey().getDefiningOp<JoinHeadsOp>();
    auto keys = join ? join.getLhs().getDefiningOp<LinearOp>() : LinearOp();
    auto rotated = join ? join.getRhs().getDefiningOp<RepeatKVOp>() : RepeatKVOp();
    auto values = op.getValue().getDefiningOp<LinearOp>();
    int64_t heads = op.getNumHeads();
    if (!keys || !rotated || !values || keys.getInput() != values.getInput())
      return;
    if (op.getKeys() != KeyRows::tokens || int64_t(op.getNumKvHeads()) != heads ||
        int64_t(join.getHeads()) != heads || rotated.getHeads() != 1 ||
        int64_t(rotated.getTimes()) != heads)
      return missed(op, "the heads of keys are not those of queries");
    if (keys.getBias() || values.getBias())
      return missed(op, "keys or values have a bias");
    if (isQuantised(keys.getWeight().getType().getStorage()))
      return missed(op, "the keys' weight is stored in groups of columns, which cannot be turned");
    Value latent = keys.getInput(), shared = rotated.getInput();
    int64_t rank = getColumns(latent), plain = getColumns(keys) / heads, dim = op.getHeadDim(),
            width = getColumns(values) / heads;
    if (rank + getColumns(shared) >= heads * (dim + width))
      return missed(op, "the latent row is no narrower than the keys and values made from it");

    OpBuilder builder(op);
    Location loc = op.getLoc();
    auto perHead = [&](LinearOp linear) -> Value {
      WeightType type = linear.getWeight().getType();
      hoistWeight(linear.getWeight(), op);
      auto stack = WeightType::get(builder.getContext(), {heads, type.getRows() / heads, rank},
                                   type.getStorage());
      return builder.createOrFold<WeightReshapeOp>(loc, stack, linear.getWeight());
    };
    // Where this undoes a turn, what was decoded to be turned need not be.
    Value turned = builder.createOrFold<WeightTransposeOp>(loc, perHead(keys));
    if (auto decoded = turned.getDefiningOp<WeightConvertOp>())
      turned = decoded.getInput();
    Value query = op.getQuery();
    Value q = SliceHeadsOp::create(builder, loc, query, heads, 0, plain);
    Value r = SliceHeadsOp::create(builder, loc, query, heads, plain, dim);
    q = HeadLinearOp::create(builder, loc, q, turned);
    q = JoinHeadsOp::create(builder, loc, q, r, heads);
    Value key = JoinHeadsOp::create(builder, loc, latent, shared, 1);
    Value value = SliceOp::create(builder, loc, key, 0, rank);
    Value mixed =
        AttentionOp::create(builder, loc, q, key, value, op.getBatch(), op.getBias(), op.getSinks(),
                            heads, 1, op.getScale(), op.getKeys(), op.getWindow(), op.getSoftcap(),
                            op.getBiasBy(), op.getBiasOrigin());
    Value result = HeadLinearOp::create(builder, loc, mixed, perHead(values));
    emitPassed(op, getArgument(),
               Twine(rank + getColumns(shared)) + " numbers are kept of a token instead of " +
                   Twine(heads * (dim + width)));
    op.replaceAllUsesWith(result);
    op.erase();
    for (Operation *part :
         {join.getOperation(), keys.getOperation(), rotated.getOperation(), values.getOperation()})
      if (part->use_empty())
        part->erase();
  }

  void missed(AttentionOp op, const Twine &why) { emitMissed(op, getArgument(), why, "not done"); }
};

} // namespace
} // namespace tenon
