// Passes that break the compiler's rules, not the model's numbers: what is said of them.
#include "ir/Sched.h"
#include "plugin/TenonPlugin.h"
#include <cstdlib>

using namespace mlir;
using namespace tenon::llm;

namespace {

// Leaves a norm whose weight does not fit.
struct Invalid : PassWrapper<Invalid, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Invalid)
  StringRef getArgument() const override { return "bad-invalid"; }
  void runOnOperation() override {
    getOperation().walk([](LinearOp op) { op.getWeightMutable().assign(getOther(op)); });
  }
  // Some weight of another width.
  static Value getOther(LinearOp op) {
    Value other = op.getWeight();
    op->getParentOfType<func::FuncOp>().walk([&](WeightOp weight) {
      if (weight.getType().getColumns() != op.getWeight().getType().getColumns())
        other = weight;
    });
    return other;
  }
};

struct Crash : PassWrapper<Crash, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Crash)
  StringRef getArgument() const override { return "bad-crash"; }
  void runOnOperation() override { std::abort(); }
};

} // namespace

static void add(tenon::PluginRegistry &registry) {
  registry.addPass([] { return std::make_unique<Invalid>(); });
  registry.addPass([] { return std::make_unique<Crash>(); });
}

TENON_PLUGIN("bad-passes", "1", add)
