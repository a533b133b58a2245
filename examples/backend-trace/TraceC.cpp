// The schedule as C, for reading: a buffer is where it lies in the arena, and T tokens, R scored
// rows decide where that is.
//
//   void decode(const tenon_env *env, char *arena, const char *weights, char *cache) {
//     const int64_t T = env->batch->tokens, R = env->batch->scored;
//     embedding(env, weights + 0, arena + T * 1024);
//     barrier(env);
//   }
#include "Trace.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tenon;

// An operand as an expression.
static void print(raw_ostream &os, Value operand, ModuleOp module) {
  if (auto constant = operand.getDefiningOp<sched::ConstantOp>()) {
    auto weight = module.lookupSymbol<sched::WeightOp>(constant.getWeight());
    os << "weights + " << weight.getOffset();
    return;
  }
  if (auto layer = operand.getDefiningOp<sched::CacheOp>()) {
    os << "cache + " << layer.getLayer() << " * layer_bytes";
    return;
  }
  int64_t begin = 0;
  while (auto view = operand.getDefiningOp<sched::ViewOp>()) {
    begin += view.getBegin();
    operand = view.getSource();
  }
  auto buffer = operand.getDefiningOp<sched::BufferOp>();
  bool isScored = buffer.getSpace() == sched::Space::scored;
  // Buffers of scored rows lie behind those of tokens.
  auto program = buffer->getParentOfType<sched::ProgramOp>();
  os << "arena + ";
  if (isScored)
    os << "T * " << program.getTokenBytes() << " + ";
  os << (isScored ? 'R' : 'T') << " * " << buffer.getOffset().value_or(0);
  if (begin)
    os << " + " << 4 * begin;
}

std::string trace::toC(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto program : module.getOps<sched::ProgramOp>()) {
    os << "void " << program.getSymName()
       << "(const tenon_env *env, char *arena, const char *weights, char *cache) {\n"
          "  const int64_t T = env->batch->tokens, R = env->batch->scored;\n";
    program.walk([&](Operation *op) {
      if (isa<sched::BarrierOp>(op))
        os << "  barrier(env);\n";
      auto stage = dyn_cast<sched::StageOp>(op);
      if (!stage)
        return;
      os << "  " << stage.getKernel() << "(env";
      for (Value operand : stage.getOperands())
        print(os << ", ", operand, module);
      os << ");\n";
    });
    os << "}\n\n";
  }
  return text;
}
