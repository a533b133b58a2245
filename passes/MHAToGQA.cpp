// llm-mha-to-gqa: attention over copied heads becomes grouped-query attention.
#include "passes/Graph.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"

namespace tenon {
#define GEN_PASS_DEF_LLMMHATOGQA
#include "passes/Passes.h.inc"

using namespace mlir;
using namespace tenon::llm;

namespace {

struct MHAToGQA : impl::LLMMHAToGQABase<MHAToGQA> {
  void runOnOperation() override {
    getOperation().walk([this](AttentionOp op) {
      auto [keys, values] = getRepeatedHeads(op);
      // Copies of copies, or of an unequal number of heads, are not what GQA reads.
      if (!keys || keys.getHeads() * keys.getTimes() != op.getNumKvHeads())
        return;
      emitPassed(op, getArgument(),
                 Twine(op.getNumHeads()) + " query heads share " + Twine(keys.getHeads()) +
                     " key and value heads");
      op.getKeyMutable().assign(keys.getInput());
      op.getValueMutable().assign(values.getInput());
      op.setNumKvHeads(keys.getHeads());
      eraseUnused({keys, values});
    });
  }
};

} // namespace
} // namespace tenon
