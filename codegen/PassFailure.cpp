// See PassFailure.h. MLIR's crash reproducer runs the passes under a recovery context and prints
// the module that the failing one was given.
#include "codegen/PassFailure.h"
#include "codegen/Error.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tenon {

void PassFailure::watch(PassManager &manager) {
  class Watch : public PassInstrumentation {
  public:
    explicit Watch(std::shared_ptr<State> state) : state(std::move(state)) {}
    void runBeforePass(Pass *pass, Operation *) override {
      state->returned = false;
      // Adaptors that run passes over functions have no name.
      if (!pass->getArgument().empty())
        state->pass = pass->getArgument().str();
    }
    // What is wrong with what it did may be found yet.
    void runAfterPass(Pass *, Operation *) override { state->returned = true; }
    void runAfterPassFailed(Pass *, Operation *) override { state->returned = true; }

  private:
    std::shared_ptr<State> state;
  };

  class Stream : public ReproducerStream {
  public:
    Stream(std::unique_ptr<llvm::raw_ostream> out, std::string name)
        : out(std::move(out)), name(std::move(name)) {}
    StringRef description() override { return name; }
    llvm::raw_ostream &os() override { return *out; }

  private:
    std::unique_ptr<llvm::raw_ostream> out;
    std::string name;
  };

  manager.addInstrumentation(std::make_unique<Watch>(state));
  manager.enableCrashReproducerGeneration(
      [state = state](std::string &) -> std::unique_ptr<ReproducerStream> {
        std::error_code code;
        if (!state->returned || !state->plugin(state->pass).empty()) {
          auto out = std::make_unique<llvm::raw_fd_ostream>(state->file, code);
          state->saved = !code;
          if (!code)
            return std::make_unique<Stream>(std::move(out), state->file);
        }
        return std::make_unique<Stream>(std::make_unique<llvm::raw_null_ostream>(), "");
      },
      /*genLocalReproducer=*/true);
}

llvm::Error PassFailure::explain(StringRef message) const {
  std::string plugin = state->plugin(state->pass);
  if (state->returned && plugin.empty())
    return refused(message.empty() ? state->pass + " failed" : message.str());
  std::string text = "pass " + state->pass + (plugin.empty() ? "" : " of plugin " + plugin) +
                     (state->returned ? " failed" : " crashed");
  if (state->returned && !message.empty())
    text += ": " + message.str();
  if (state->saved)
    text += "; the module before it is in " + state->file;
  return plugin.empty() ? internal(text) : refused(text);
}

} // namespace tenon
