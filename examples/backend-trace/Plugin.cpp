// `--target trace-json` and `--target trace-c`: what Tenon schedules, in text. A backend gets the
// scheduled module, and gives back parts; these two give one part of text each.
#include "Trace.h"

namespace {

class TextBackend : public tenon::Backend {
public:
  TextBackend(llvm::StringRef name, std::string (*print)(mlir::ModuleOp))
      : name(name), print(print) {}

  llvm::StringRef getName() const override { return name; }

  // The kernels that would run could read any layout: weights are left as they are stored.
  void configure(tenon::PipelineOptions &options) const override { options.pack = false; }

  llvm::Expected<tenon::NativeCode> compile(mlir::ModuleOp module,
                                            const tenon::TargetOptions &) override {
    tenon::NativeCode code(tenon::CodeForm::text);
    code.add(print(module));
    return code;
  }

private:
  llvm::StringRef name;
  std::string (*print)(mlir::ModuleOp);
};

} // namespace

static void add(tenon::PluginRegistry &registry) {
  registry.addBackend("trace-json",
                      [] { return std::make_unique<TextBackend>("trace-json", trace::toJson); });
  registry.addBackend("trace-c",
                      [] { return std::make_unique<TextBackend>("trace-c", trace::toC); });
}

TENON_PLUGIN("backend-trace", "0.1", add)
