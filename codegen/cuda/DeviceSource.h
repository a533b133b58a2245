// The kernels of a program as one text of CUDA C++: an entry for each kernel and shape, over the
// sources in cuda/kernels. NVRTC compiles it, and the host's compiler for the emulator of the
// tests.
//
//   #include "kernels.cu"
//   static constexpr int shape0[] = {0, 576, 960, ...};
//   TK_SPECIALISE(tenon_norm_qkv_tk_linear_few, tk_linear_few, tk_linear_shape, 256, shape0)
#ifndef TENON_CODEGEN_CUDA_DEVICESOURCE_H
#define TENON_CODEGEN_CUDA_DEVICESOURCE_H

#include "codegen/cuda/DeviceProgram.h"
#include <string>

namespace tenon::cuda {

std::string writeSource(const DeviceProgram &program);

} // namespace tenon::cuda

#endif // TENON_CODEGEN_CUDA_DEVICESOURCE_H
