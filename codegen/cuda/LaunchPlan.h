// Which launches compute a kernel of codegen/kernels on a device: the plans of
// cuda/kernels/plan_*.h by the kernel's name.
#ifndef TENON_CODEGEN_CUDA_LAUNCHPLAN_H
#define TENON_CODEGEN_CUDA_LAUNCHPLAN_H

#include "codegen/cuda/kernels/launch.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <vector>

namespace tenon::cuda {

struct LaunchPlan {
  const char *shapeType;      // "tk_linear_shape"
  std::vector<uint8_t> shape; // without what says nothing to a device
  std::vector<tk_launch> launches;
};

// Nothing when the device has no such kernel.
std::optional<LaunchPlan> planLaunches(llvm::StringRef function, llvm::ArrayRef<uint8_t> shape,
                                       bool isDecode);

} // namespace tenon::cuda

#endif // TENON_CODEGEN_CUDA_LAUNCHPLAN_H
