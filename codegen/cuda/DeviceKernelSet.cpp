// See DeviceKernelSet.h.
#include "codegen/cuda/DeviceKernelSet.h"
#include <memory>

namespace tenon::cuda {

static std::vector<std::shared_ptr<DeviceKernelSet>> &sets() {
  static std::vector<std::shared_ptr<DeviceKernelSet>> all;
  return all;
}

void registerDeviceKernels(DeviceKernelSet set) {
  sets().insert(sets().begin(), std::make_shared<DeviceKernelSet>(std::move(set)));
}
llvm::ArrayRef<std::shared_ptr<DeviceKernelSet>> getDeviceKernelSets() { return sets(); }

} // namespace tenon::cuda
