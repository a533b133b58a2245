// What a backend does: it takes a scheduled module and gives native objects.
#ifndef TENON_CODEGEN_BACKEND_H
#define TENON_CODEGEN_BACKEND_H

#include "codegen/NativeCode.h"
#include "ir/Sched.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/Pipeline.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tenon {

struct TargetOptions {
  // Instruction sets to compile for, best first, or "native".
  std::vector<std::string> cpus = {"native"};
  // Where the kernels' bitcode lies: <folder>/<level>.bc.
  std::string kernelFolder;
  // Where the sources of a device's kernels lie, by their paths in Tenon's own tree.
  std::string deviceFolder;
  std::string nvrtcPath; // the NVRTC to try first; may be empty
  CodeForm form = CodeForm::object;
};

class Backend {
public:
  virtual ~Backend() = default;

  virtual llvm::StringRef getName() const = 0;
  // Which types and layouts its kernels read. No cacheType: the user has not chosen one.
  virtual void configure(PipelineOptions &options) const = 0;
  virtual llvm::Expected<NativeCode> compile(mlir::ModuleOp module,
                                             const TargetOptions &options) = 0;
};

using BackendFactory = std::function<std::unique_ptr<Backend>()>;

// Makes a name one that `--target` takes. False when it is taken.
bool registerBackend(llvm::StringRef name, BackendFactory make);
// "cpu", "cuda", "reference" or a registered one; unknown names are errors that say what is
// accepted.
llvm::Expected<std::unique_ptr<Backend>> createBackend(llvm::StringRef name);

} // namespace tenon

#endif // TENON_CODEGEN_BACKEND_H
