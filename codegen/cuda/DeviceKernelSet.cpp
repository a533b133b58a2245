// See DeviceKernelSet.h.
#include "codegen/cuda/DeviceKernelSet.h"

namespace tenon::cuda {

static std::vector<DeviceKernelSet> &sets() {
  static std::vector<DeviceKernelSet> all;
  return all;
}

void registerDeviceKernels(DeviceKernelSet set) { sets().insert(sets().begin(), std::move(set)); }
llvm::ArrayRef<DeviceKernelSet> getDeviceKernelSets() { return sets(); }

} // namespace tenon::cuda
