// Turns a sched.program into an LLVM function that every thread runs.
//
//   sched.stage @linear(%x, %w) into(%y)      io = {arena + T * 64, weights + 4096, ...}
//                                        ─▶   call @tenon_avx2.linear.tk_linear(io, env)
//   sched.barrier                             call env->services->barrier(env)
#ifndef TENON_CODEGEN_PROGRAMEMITTER_H
#define TENON_CODEGEN_PROGRAMEMITTER_H

#include "codegen/Specialisation.h"
#include "ir/Sched.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace tenon {

// How a stage is computed: `function` is a tenon_kernel, called with a constant shape.
struct KernelCall {
  std::string function;
  std::vector<uint8_t> shape;
  // Which operand of the stage (inputs, then outputs) each pointer of `io` is.
  llvm::SmallVector<unsigned> io;
};

// Bytes for each token and each scored row, enough for every program of the module.
struct ArenaSize {
  int64_t tokenBytes = 0, scoredBytes = 0;
};
ArenaSize getArenaSize(mlir::ModuleOp module);

using KernelProvider =
    llvm::function_ref<llvm::Expected<KernelCall>(sched::StageOp, bool isDecode)>;

// Emits `name` for a program. What it calls is added to `kernels`, and declared in `module`.
llvm::Error emitProgram(sched::ProgramOp program, llvm::StringRef name, llvm::Module &module,
                        KernelProvider getKernel, SpecialisationSet &kernels);

} // namespace tenon

#endif // TENON_CODEGEN_PROGRAMEMITTER_H
