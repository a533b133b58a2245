// See DeviceCost.h.
#include "codegen/cuda/DeviceCost.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tenon::cuda {

// The rate at which the kernel's products are computed.
static double getPeak(sched::KernelOp kernel, const tk_device &device) {
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
  // Tensor cores read keys and values of at most 16 bits.
  for (Type type : kernel.getType().getInputs())
    if (auto cache = dyn_cast<llm::CacheType>(type); cache && !cache.getElementType().isF32())
      peak = std::max(peak, device.halves);
  return peak;
}

// "linear_many 32x8": blocks across, and down the rows.
static std::string describe(const tk_launch &launch, int64_t rows) {
  if (launch.product.cols)
    return "cuBLASLt";
  StringRef name = launch.function;
  name.consume_front("tk_");
  return (name + " " + Twine(launch.columns) + "x" + Twine(tenon_grid_height(&launch, rows))).str();
}

StepEstimate estimateStep(sched::ProgramOp program, const DeviceProgram &launches,
                          const Workload &workload, int64_t sequences, const tk_device &device) {
  auto rowsOf = [&](bool isScored) {
    return sequences * (isScored ? workload.scored : workload.tokens);
  };
  std::vector<SmallVector<std::string>> launchesOf; // of each stage
  for (const DeviceLaunch &launch : launches.getLaunches(program.getSymName())) {
    const tk_launch &grid = launches.getKernels()[launch.kernel].launch;
    launchesOf.resize(launch.stage + 1);
    if (tenon_is_launched(&grid, rowsOf(grid.rows), /*has_library=*/1))
      launchesOf[launch.stage].push_back(describe(grid, rowsOf(grid.rows)));
  }

  llvm::MapVector<StringRef, KernelEstimate> kernels;
  StepEstimate step;
  for (auto [i, stage] : llvm::enumerate(program.getOps<sched::StageOp>())) {
    sched::KernelOp kernel = sched::getKernel(stage);
    KernelCost cost = getKernelCost(kernel.getBody());
    int64_t rows = rowsOf(sched::isScored(stage));
    KernelEstimate &entry = kernels[stage.getKernel()];
    int64_t bytes = cost.weightBytes + cost.contextBytes * sequences * workload.context;
    int64_t flops = cost.rowFlops * rows + cost.pairFlops * sequences * workload.pairs;
    double reading = double(bytes) / device.memory;
    double computing = double(flops) / getPeak(kernel, device);
    ++entry.stages;
    entry.launches += launchesOf[i].size();
    if (entry.stages == 1)
      entry.how = llvm::join(launchesOf[i], ", ");
    entry.bytes += bytes;
    entry.flops += flops;
    entry.memoryBound = reading >= computing;
    entry.seconds += std::max(reading, computing) + double(launchesOf[i].size()) * device.launch;
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
