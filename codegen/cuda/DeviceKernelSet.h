// CUDA kernels from outside the tree.
#ifndef TENON_CODEGEN_CUDA_DEVICEKERNELSET_H
#define TENON_CODEGEN_CUDA_DEVICEKERNELSET_H

#include "codegen/cuda/LaunchPlan.h"
#include "codegen/kernels/KernelMatch.h"
#include <functional>

namespace tenon::cuda {

struct DeviceKernelSet {
  std::string name;
  KernelMatcher match; // called for every stage
  // How it is launched.
  std::function<LaunchPlan(const KernelMatch &, bool isDecode)> plan;
  // CUDA C++, behind that of Tenon's own kernels (cuda/kernels/kernels.cu): the shape struct, and
  //   TK_DEVICE void NAME(const Shape &, const tk_args &)
  std::string source;
};

// The set is asked before those registered earlier, and all before Tenon's own kernels.
void registerDeviceKernels(DeviceKernelSet set);
llvm::ArrayRef<DeviceKernelSet> getDeviceKernelSets(); // in the order of asking

} // namespace tenon::cuda

#endif // TENON_CODEGEN_CUDA_DEVICEKERNELSET_H
