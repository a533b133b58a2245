// See DeviceCost.h.
#include "codegen/cuda/DeviceCost.h"
#include "codegen/cuda/DeviceProgram.h"
#include "codegen/kernels/shapes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tenon::cuda {

// The rate at which the kernel's products are computed.
static double getPeak(sched::KernelOp kernel, const DeviceModel &device) {
  double peak = device.floats;
  for (Type type : kernel.getType().getInputs())
    if (auto weight = dyn_cast<llm::WeightType>(type))
      if (weight.getLayout() != llm::Layout::plain) {
        Storage storage = weight.getStorage();
        if (isQuantised(storage))
          peak = std::max(peak, device.integers);
        else if (storage == Storage::BF16 || storage == Storage::F16)
          peak = std::max(peak, device.halves);
      }
  return peak;
}

llvm::Expected<StepEstimate> estimateStep(sched::ProgramOp program, const Workload &workload,
                                          int64_t sequences, const DeviceModel &device) {
  auto module = program->getParentOfType<ModuleOp>();
  llvm::Expected<DeviceProgram> launches = DeviceProgram::build(module);
  if (!launches)
    return launches.takeError();
  std::vector<int64_t> launchesOf; // of each stage
  for (const DeviceLaunch &launch : launches->getLaunches(program.getSymName())) {
    const tk_launch &made = launches->getKernels()[launch.kernel].launch;
    int64_t rows = sequences * (made.rows == TK_ROWS_SCORED ? workload.scored : workload.tokens);
    launchesOf.resize(launch.stage + 1);
    launchesOf[launch.stage] +=
        rows >= made.least_rows && (made.most_rows == 0 || rows <= made.most_rows);
  }

  llvm::MapVector<StringRef, KernelEstimate> kernels;
  StepEstimate step;
  for (auto [i, stage] : llvm::enumerate(program.getOps<sched::StageOp>())) {
    auto kernel =
        SymbolTable::lookupNearestSymbolFrom<sched::KernelOp>(stage, stage.getKernelAttr());
    bool isScored = llvm::any_of(stage->getOperands(), [](Value operand) {
      return sched::getSpace(operand) == sched::Space::scored;
    });
    KernelCost cost = getKernelCost(kernel.getBody());
    int64_t rows = sequences * (isScored ? workload.scored : workload.tokens);
    KernelEstimate &entry = kernels[stage.getKernel()];
    int64_t bytes = cost.weightBytes + cost.contextBytes * sequences * workload.context;
    int64_t flops = cost.rowFlops * rows + cost.pairFlops * sequences * workload.pairs;
    double reading = double(bytes) / device.memory;
    double computing = double(flops) / getPeak(kernel, device);
    ++entry.stages;
    entry.launches += launchesOf[i];
    entry.bytes += bytes;
    entry.flops += flops;
    entry.memoryBound = reading >= computing;
    entry.seconds += std::max(reading, computing) + double(launchesOf[i]) * device.launch;
  }
  for (auto &[name, entry] : kernels) {
    entry.kernel = name.str();
    step.bytes += entry.bytes;
    step.flops += entry.flops;
    step.launches += entry.launches;
    step.seconds += entry.seconds;
    step.kernels.push_back(entry);
  }
  step.streaming = double(step.bytes) / device.memory;
  llvm::sort(step.kernels, [](const KernelEstimate &a, const KernelEstimate &b) {
    return a.seconds > b.seconds;
  });
  return step;
}

} // namespace tenon::cuda
