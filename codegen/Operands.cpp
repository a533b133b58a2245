// See Operands.h.
#include "codegen/Operands.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tenon {

llvm::DenseMap<Value, tenon_operand> locateOperands(sched::ProgramOp program) {
  llvm::DenseMap<Value, tenon_operand> operands;
  for (Operation &op : program.getBody().front())
    llvm::TypeSwitch<Operation *>(&op)
        .Case([&](sched::BufferOp buffer) {
          bool isScored = buffer.getSpace() == sched::Space::scored;
          operands[buffer] = {isScored ? TENON_AT_SCORED : TENON_AT_TOKENS,
                              int64_t(*buffer.getOffset()), 0};
        })
        .Case([&](sched::ViewOp view) {
          tenon_operand operand = operands.lookup(view.getSource());
          operand.offset += view.getBegin() * int64_t(sizeof(float));
          operands[view] = operand;
        })
        .Case([&](sched::ConstantOp constant) {
          auto weight = SymbolTable::lookupNearestSymbolFrom<sched::WeightOp>(
              constant, constant.getWeightAttr());
          operands[constant] = {TENON_AT_WEIGHTS, 0, int64_t(weight.getOffset())};
        })
        .Case([&](sched::CacheOp layer) {
          llm::CacheType cache = layer.getType();
          int64_t blockBytes = TENON_BLOCK_TOKENS * cache.getPositionBytes();
          operands[layer] = {cache.getMemory() ? TENON_AT_MEMORY : TENON_AT_CACHE,
                             int64_t(layer.getLayer()) * blockBytes, 0};
        });
  return operands;
}

} // namespace tenon
