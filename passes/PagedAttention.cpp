// llm-paged-attention: keys and values are read where they lie in the cache.
#include "mlir/IR/Builders.h"
#include "passes/Passes.h"

namespace tenon {
#define GEN_PASS_DEF_LLMPAGEDATTENTION
#include "passes/Passes.h.inc"

using namespace mlir;
using namespace tenon::llm;

namespace {

struct PagedAttention : impl::LLMPagedAttentionBase<PagedAttention> {
  void runOnOperation() override {
    getOperation().walk([](AttentionOp op) {
      auto read = op.getKey().getDefiningOp<KVReadOp>();
      if (op.getKeys() == KeyRows::tokens || !read || op.getKey() != read.getKey() ||
          op.getValue() != read.getValue() ||
          read.getCache().getType().getHeads() != int64_t(op.getNumKvHeads()))
        return;
      OpBuilder builder(op);
      op.replaceAllUsesWith(
          PagedAttentionOp::create(builder, op.getLoc(), op.getQuery(), read.getCache(),
                                   op.getBatch(), op.getBias(), op.getSinks(), read.getLayer(),
                                   op.getNumHeads(), op.getScale(), op.getWindow(), op.getSoftcap(),
                                   op.getBiasBy(), op.getBiasOrigin())
              .getResult());
      op.erase();
      if (read->use_empty())
        read.erase();
    });
  }
};

} // namespace
} // namespace tenon
