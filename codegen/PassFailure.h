// What becomes of a pass that fails: one line that names it, and the module it was given in a file.
#ifndef TENON_CODEGEN_PASSFAILURE_H
#define TENON_CODEGEN_PASSFAILURE_H

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

namespace tenon {

// Watches one run of a pass manager. A crash in a pass is a failure like any other.
class PassFailure {
public:
  // `file` is written when a pass of a plugin fails or any pass crashes. `plugin` says which plugin
  // brought a pass; empty for Tenon's own.
  PassFailure(std::string file, std::function<std::string(llvm::StringRef pass)> plugin)
      : state(std::make_shared<State>()) {
    state->file = std::move(file);
    state->plugin = std::move(plugin);
  }

  void watch(mlir::PassManager &manager);
  // After a failed run. `message` is what the pass said, if anything.
  llvm::Error explain(llvm::StringRef message) const;

private:
  struct State {
    std::string file;
    std::function<std::string(llvm::StringRef)> plugin;
    std::string pass;      // that runs
    bool returned = false; // whether it failed or not; otherwise it crashed
    bool saved = false;
  };
  std::shared_ptr<State> state; // shared with the pass manager
};

} // namespace tenon

#endif // TENON_CODEGEN_PASSFAILURE_H
