// llm-pack-weights: every matrix that an operation multiplies by or looks up is packed for kernels.
// Tables of score biases stay as they are.
#include "mlir/IR/Builders.h"
#include "passes/Passes.h"

namespace tenon {
#define GEN_PASS_DEF_LLMPACKWEIGHTS
#include "passes/Passes.h.inc"

using namespace mlir;
using namespace tenon::llm;

namespace {

struct PackWeights : impl::LLMPackWeightsBase<PackWeights> {
  using Base::Base;
  void runOnOperation() override {
    getOperation().walk([this](WeightOpInterface op) {
      auto weight = cast<TypedValue<WeightType>>(op->getResult(0));
      WeightType type = weight.getType();
      Layout layout = getPackedLayout(type.getStorage(), keepRows);
      auto isReader = [](OpOperand &use) {
        return !isa<WeightOpInterface, AttentionOp, PagedAttentionOp>(use.getOwner());
      };
      if (type.getRank() < 2 || type.getLayout() != Layout::plain || layout == Layout::plain ||
          llvm::none_of(weight.getUses(), isReader))
        return;
      OpBuilder builder(op->getContext());
      builder.setInsertionPointAfter(op);
      auto packed = WeightPackOp::create(builder, op.getLoc(), type.withLayout(layout), weight);
      weight.replaceUsesWithIf(packed.getResult(), isReader);
    });
  }
};

} // namespace
} // namespace tenon
