// A plugin whose pass has the name of another.
#include "plugin/TenonPlugin.h"

namespace {
struct Clash : mlir::PassWrapper<Clash, mlir::OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Clash)
  llvm::StringRef getArgument() const override { return "llm-fuse-rope"; }
  void runOnOperation() override {}
};
} // namespace

static void add(tenon::PluginRegistry &registry) {
  registry.addPass([] { return std::make_unique<Clash>(); });
}

TENON_PLUGIN("clash", "1", add)
