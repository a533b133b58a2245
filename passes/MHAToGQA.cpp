// llm-mha-to-gqa: attention over copied heads becomes grouped-query attention.
#include "passes/Passes.h"

namespace tenon {
#define GEN_PASS_DEF_LLMMHATOGQA
#include "passes/Passes.h.inc"

using namespace mlir;
using namespace tenon::llm;

namespace {

struct MHAToGQA : impl::LLMMHAToGQABase<MHAToGQA> {
  void runOnOperation() override {
    getOperation().walk([](AttentionOp op) {
      auto keys = op.getKey().getDefiningOp<RepeatKVOp>();
      auto values = op.getValue().getDefiningOp<RepeatKVOp>();
      // Copies of copies, or of an unequal number of heads, are not what GQA reads.
      if (!keys || !values || keys.getHeads() != values.getHeads() ||
          keys.getTimes() != values.getTimes() ||
          keys.getHeads() * keys.getTimes() != op.getNumKvHeads())
        return;
      op.getKeyMutable().assign(keys.getInput());
      op.getValueMutable().assign(values.getInput());
      op.setNumKvHeads(keys.getHeads());
      if (values != keys && values->use_empty())
        values.erase();
      if (keys->use_empty())
        keys.erase();
    });
  }
};

} // namespace
} // namespace tenon
