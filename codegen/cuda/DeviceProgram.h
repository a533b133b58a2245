// The programs of a module as launches of kernels on a device.
//
//   sched.stage @norm_qkv(%x, %w0, %w1) into(%q)
//        │ KernelMatch: tk_linear, its shape, io
//        │ LaunchPlan:  tk_linear_few for few rows; tk_linear_prepare, tk_linear_many for others
//        ▼
//   launch k0 {arena + T * 0, weights + 4096, ...}
//
// Barriers need nothing: launches run one after another. Kernels of equal shape are one.
#ifndef TENON_CODEGEN_CUDA_DEVICEPROGRAM_H
#define TENON_CODEGEN_CUDA_DEVICEPROGRAM_H

#include "codegen/cuda/DeviceKernelSet.h"
#include "ir/Sched.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace tenon::cuda {

struct DeviceKernel {
  std::string symbol;         // "norm_qkv_tk_linear_few"
  std::string shapeType;      // "tk_linear_shape"
  std::vector<uint8_t> shape; // its bytes
  tk_launch launch;
};

struct DeviceLaunch {
  int32_t kernel; // index
  int32_t stage;  // of the program
  std::vector<tenon_operand> operands;
};

class DeviceProgram {
public:
  // Refuses a module with a stage that no kernel computes.
  static llvm::Expected<DeviceProgram> build(mlir::ModuleOp module);

  llvm::ArrayRef<DeviceKernel> getKernels() const { return kernels; }
  // The sets of plugins whose kernels are used.
  llvm::ArrayRef<const DeviceKernelSet *> getSets() const { return sets; }
  // Of a phase, or "sample"; empty where the model has none.
  llvm::ArrayRef<DeviceLaunch> getLaunches(llvm::StringRef phase) const {
    auto found = phases.find(phase);
    if (found == phases.end())
      return {};
    return found->second;
  }

private:
  struct Planned {
    KernelMatch match;
    LaunchPlan plan;
  };

  llvm::Error addProgram(sched::ProgramOp program);
  // What draws tokens from the logits of `decode`, as a phase "sample".
  void addSampling(sched::ProgramOp decode);
  // How a stage is computed; nothing when no kernel does.
  std::optional<Planned> planStage(sched::StageOp stage, sched::KernelOp kernel, bool isDecode);
  int32_t getKernel(DeviceKernel kernel, llvm::StringRef stage);

  std::vector<DeviceKernel> kernels;
  llvm::StringMap<int32_t> known; // by function and shape
  llvm::StringMap<int32_t> symbols;
  llvm::StringMap<std::vector<DeviceLaunch>> phases;
  std::vector<const DeviceKernelSet *> sets;
};

} // namespace tenon::cuda

#endif // TENON_CODEGEN_CUDA_DEVICEPROGRAM_H
