// llm-gather-scored-rows: only rows to be scored reach the LM head.
#include "mlir/IR/Builders.h"
#include "passes/Graph.h"
#include "passes/Passes.h"

namespace tenon {
#define GEN_PASS_DEF_LLMGATHERSCOREDROWS
#include "passes/Passes.h.inc"

using namespace mlir;
using namespace tenon::llm;

namespace {

// The operand through which rows flow, if the operation makes each row from the same row of that
// operand alone.
OpOperand *getRowsOperand(Operation *op) {
  if (!isa_and_nonnull<LinearOp, NormOpInterface, ActivationOp, ScaleOp, SoftcapOp>(op))
    return nullptr;
  return &op->getOpOperand(
      isa<ActivationOp>(op) ? cast<ActivationOp>(op).getInputMutable().getOperandNumber() : 0);
}

struct GatherScoredRows : impl::LLMGatherScoredRowsBase<GatherScoredRows> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!isDecode(function))
        gather(function);
  }

  // Climbs from the logits to the residual stream and gathers there.
  void gather(func::FuncOp function) {
    std::optional<unsigned> logits = getNamedResult(function, "logits");
    if (!logits)
      return;
    OpOperand *operand = &function.getBody().front().getTerminator()->getOpOperand(*logits);
    while (OpOperand *next = getRowsOperand(operand->get().getDefiningOp())) {
      if (!operand->get().hasOneUse())
        break;
      operand = next;
    }
    if (operand->get().getDefiningOp<GatherRowsOp>())
      return;
    OpBuilder builder(operand->getOwner());
    operand->set(GatherRowsOp::create(builder, operand->getOwner()->getLoc(),
                                      operand->get().getType(), operand->get(),
                                      function.getArgument(0)));
  }
};

} // namespace
} // namespace tenon
