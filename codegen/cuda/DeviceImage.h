// Compiling kernels for devices.
#ifndef TENON_CODEGEN_CUDA_DEVICEIMAGE_H
#define TENON_CODEGEN_CUDA_DEVICEIMAGE_H

#include "codegen/Backend.h"
#include "runtime/kernel_abi.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace tenon::cuda {

// What to compile for.
struct Architecture {
  std::string name; // "sm_90", "compute_80", "emulator"
  tenon_image_kind kind;
  int32_t capability; // 90
};

struct DeviceImage {
  Architecture architecture;
  std::string bytes;
};

// `--mcpu`: names such as sm_90, "emulator", or "native" for sm_80, sm_90 and sm_100 and, for later
// devices, PTX.
llvm::Expected<std::vector<Architecture>> selectArchitectures(llvm::ArrayRef<std::string> names);

// The text of DeviceSource.h for each architecture, in the order of preference.
llvm::Expected<std::vector<DeviceImage>> compileImages(const std::string &source,
                                                       llvm::ArrayRef<Architecture> architectures,
                                                       const TargetOptions &options);

} // namespace tenon::cuda

#endif // TENON_CODEGEN_CUDA_DEVICEIMAGE_H
