// Finds the kernel that computes a stage, for backends that have kernels: cpu and cuda.
//
//   sched.kernel body              kernel and shape
//   rms_norm → linear → add   ─▶   tk_linear {norm: rms, residual: 1, cols: 576, ...}
//                                  io = {x, w, norm, residual, out}
//
// Matching looks at the operations, not at the name of the fusion, so that every fusion that means
// the same gets the same kernel.
#ifndef TENON_CODEGEN_KERNELS_KERNELMATCH_H
#define TENON_CODEGEN_KERNELS_KERNELMATCH_H

#include "ir/Sched.h"
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

struct KernelMatch {
  std::string function;           // "tk_linear"
  std::vector<uint8_t> shape;     // its shape struct
  llvm::SmallVector<unsigned> io; // operands of the stage (inputs, then outputs)
  int64_t scratch = 0;            // bytes for each thread
};

// `shape` is the kernel's shape struct (runtime/kernel_abi.h), whose bytes become a constant of the
// program.
template <typename Shape>
KernelMatch makeMatch(llvm::StringRef function, const Shape &shape, llvm::SmallVector<unsigned> io,
                      int64_t scratch = 0) {
  const auto *bytes = reinterpret_cast<const uint8_t *>(&shape);
  return {function.str(), {bytes, bytes + sizeof shape}, std::move(io), scratch};
}

// The kernel that computes a stage, or nothing. `isDecode`: each sequence has one token.
using KernelMatcher =
    std::function<std::optional<KernelMatch>(sched::StageOp, sched::KernelOp, bool isDecode)>;

// Nothing when no kernel computes this body. `halves` is the layout in which the caller's kernels
// read matrices of 16-bit elements.
std::optional<KernelMatch> matchKernel(sched::StageOp stage, sched::KernelOp kernel, bool isDecode,
                                       llm::Layout halves);

} // namespace tenon

#endif // TENON_CODEGEN_KERNELS_KERNELMATCH_H
