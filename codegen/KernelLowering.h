// From the meaning of a kernel to code: the lowering behind the reference backend, the numeric
// verification of passes, and every kernel that a backend has not written by hand.
//
//   sched.kernel ─decompose─▶ linalg on tensors ─bufferise─▶ loops on memrefs ─▶ LLVM IR
//
// Weights are plain row-major f32 (tables: f64). Operands and results must not overlap in memory.
#ifndef TENON_CODEGEN_KERNELLOWERING_H
#define TENON_CODEGEN_KERNELLOWERING_H

#include "ir/Sched.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace tenon {

struct KernelToLower {
  sched::KernelOp op;
  // How many rows each operand and then each result has; the batch left out, weights and caches
  // ignored.
  llvm::SmallVector<sched::Space> spaces;
};

// Whether a block holds its keys as [head_dim][TENON_BLOCK_TOKENS]; see runtime/kernel_abi.h.
bool areKeysByElement(llm::CacheType cache);

// Registers the dialects, interfaces and translations that lowerKernels uses.
void registerReferenceDialects(mlir::DialectRegistry &registry);

// Lowers each kernel to a `tenon_kernel` (runtime/kernel_abi.h) with external linkage and the
// kernel's name:
//
//   void NAME(const void *shape, void *const *io, const tenon_env *env)
//
// `shape` points to int64_t row strides in elements, one for each rows operand and then each
// result. Thread 0 does the work. The module has neither target nor data layout, and is not
// optimised: inlining is part of the plan.
llvm::Expected<std::unique_ptr<llvm::Module>> lowerKernels(llvm::ArrayRef<KernelToLower> kernels,
                                                           llvm::LLVMContext &context);

} // namespace tenon

#endif // TENON_CODEGEN_KERNELLOWERING_H
