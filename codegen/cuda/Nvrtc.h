// NVIDIA's run-time compiler, loaded when it is first needed.
#ifndef TENON_CODEGEN_CUDA_NVRTC_H
#define TENON_CODEGEN_CUDA_NVRTC_H

#include "codegen/Backend.h"

namespace tenon::cuda {

// A cubin for "sm_90", PTX for "compute_90". Safe to call from several threads.
llvm::Expected<std::string> compileWithNvrtc(const std::string &source,
                                             llvm::StringRef architecture,
                                             const TargetOptions &options);

} // namespace tenon::cuda

#endif // TENON_CODEGEN_CUDA_NVRTC_H
