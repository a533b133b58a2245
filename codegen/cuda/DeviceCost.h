// What a step of a model takes on a GPU, on paper: for each kernel the longer of reading its bytes
// and doing its arithmetic, and the launches.
//
//   seconds = Σ max(bytes / memory, FLOPs / peak) + launches · launch
//
// Bytes are those of weights and of the cache (codegen/Cost.h). The peak is that of the units which
// multiply the kernel's weights: 8-bit for quantised ones, 16-bit for bf16 and f16, and for keys and
// values of up to 16 bits, else f32. Those are bounds; what is likely, so that launches are chosen by
// it, says kernels/device_model.h.
#ifndef TENON_CODEGEN_CUDA_DEVICECOST_H
#define TENON_CODEGEN_CUDA_DEVICECOST_H

#include "codegen/Cost.h"
#include "codegen/cuda/DeviceProgram.h"
#include "codegen/cuda/kernels/device_model.h"
#include <string>
#include <vector>

namespace tenon::cuda {

struct KernelEstimate {
  std::string kernel;
  int64_t stages = 0, launches = 0, bytes = 0, flops = 0;
  double seconds = 0;
  bool memoryBound = true;
  std::string how; // its launches, in the first stage: "linear_round 1x512, cuBLASLt"
};

struct StepEstimate {
  std::vector<KernelEstimate> kernels; // the slowest first
  int64_t bytes = 0, flops = 0, launches = 0;
  double seconds = 0, streaming = 0; // streaming: the bytes alone
};

// A step of `sequences` alike; `program` is a phase of the module that `launches` was built from.
StepEstimate estimateStep(sched::ProgramOp program, const DeviceProgram &launches,
                          const Workload &workload, int64_t sequences, const tk_device &device);

} // namespace tenon::cuda

#endif // TENON_CODEGEN_CUDA_DEVICECOST_H
