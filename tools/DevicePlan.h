// `tenon plan --target cuda`: what steps would take on a GPU, on paper.
#ifndef TENON_TOOLS_DEVICEPLAN_H
#define TENON_TOOLS_DEVICEPLAN_H

#include "codegen/Compile.h"
#include "codegen/cuda/DeviceCost.h"
#include "llvm/Support/JSON.h"

namespace tenon {

struct DevicePhase {
  std::string name; // "decode"
  int64_t tokens, length, batch;
  cuda::StepEstimate step;
  double getTokensPerSecond() const { return double(tokens * batch) / step.seconds; }
};

struct DevicePlan {
  tk_device device;
  std::string precision;
  std::vector<DevicePhase> phases;
};

// The module is lowered as for `--target cuda`. Prefill of `prompt` tokens and the decode step
// behind it; of an encoder, the encoding of the prompt.
llvm::Expected<DevicePlan> planOnDevice(mlir::ModuleOp module, const CompileOptions &options,
                                        int64_t batch, int64_t prompt);

void printText(const DevicePlan &plan);
void printJson(const DevicePlan &plan, llvm::json::OStream &json);

} // namespace tenon

#endif // TENON_TOOLS_DEVICEPLAN_H
