// CUDA kernels from outside the tree.
#ifndef TENON_CODEGEN_CUDA_DEVICEKERNELSET_H
#define TENON_CODEGEN_CUDA_DEVICEKERNELSET_H

#include "codegen/cuda/LaunchPlan.h"
#include "codegen/kernels/KernelMatch.h"
#include <functional>
#include <memory>

namespace tenon::cuda {

struct DeviceKernelSet {
  std::string name;
  // The kernel that computes a stage, or nothing. Called for every stage; `isDecode`: each sequence
  // has one token.
  std::function<std::optional<KernelMatch>(sched::StageOp, sched::KernelOp, bool isDecode)> match;
  // How it is launched.
  std::function<LaunchPlan(const KernelMatch &, bool isDecode)> plan;
  // CUDA C++, behind that of Tenon's own kernels (cuda/kernels/kernels.cu): the shape struct, and
  //   TK_DEVICE void NAME(const Shape &, const tk_args &)
  std::string source;
};

// The set is asked before those registered earlier, and all before Tenon's own kernels.
void registerDeviceKernels(DeviceKernelSet set);
llvm::ArrayRef<std::shared_ptr<DeviceKernelSet>> getDeviceKernelSets();

} // namespace tenon::cuda

#endif // TENON_CODEGEN_CUDA_DEVICEKERNELSET_H
