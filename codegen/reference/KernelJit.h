// Kernels by their meaning, compiled into this process.
#ifndef TENON_CODEGEN_REFERENCE_KERNELJIT_H
#define TENON_CODEGEN_REFERENCE_KERNELJIT_H

#include "ir/Sched.h"
#include "runtime/kernel_abi.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>

namespace llvm::orc {
class LLJIT;
}

namespace tenon {

// Each kernel is compiled once, whatever its name: a pass that fuses one pattern in thirty layers
// costs one compilation.
class KernelJit {
public:
  KernelJit();
  ~KernelJit();

  // `kernel` reads plain f32 (tables: f64) weights; `spaces` as in KernelToLower. The kernel's
  // symbol name is replaced.
  llvm::Expected<tenon_kernel *> get(sched::KernelOp kernel, llvm::ArrayRef<sched::Space> spaces);

private:
  llvm::Error start();
  llvm::Expected<tenon_kernel *> compile(sched::KernelOp kernel,
                                         llvm::ArrayRef<sched::Space> spaces);

  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::unique_ptr<llvm::TargetMachine> machine;
  llvm::StringMap<tenon_kernel *> known; // by text and spaces
};

} // namespace tenon

#endif // TENON_CODEGEN_REFERENCE_KERNELJIT_H
