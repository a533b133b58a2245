// See DeviceProgram.h.
#include "codegen/cuda/DeviceProgram.h"
#include "codegen/Error.h"
#include "codegen/Operands.h"
#include "codegen/kernels/shapes.h"
#include "passes/Remarks.h"

using namespace mlir;

namespace tenon::cuda {

// Of a block on sm_80; later ones have more.
constexpr int64_t largestSharedBytes = 163 << 10;

llvm::Expected<DeviceProgram> DeviceProgram::build(ModuleOp module) {
  DeviceProgram result;
  for (auto program : module.getOps<sched::ProgramOp>())
    if (llvm::Error error = result.addProgram(program))
      return error;
  if (auto decode = module.lookupSymbol<sched::ProgramOp>("decode"))
    result.addSampling(decode);
  return result;
}

llvm::Error DeviceProgram::addProgram(sched::ProgramOp program) {
  bool isDecode = program.getSymName() == "decode";
  llvm::DenseMap<Value, tenon_operand> operands = locateOperands(program);
  std::vector<DeviceLaunch> &launches = phases[program.getSymName()];
  int32_t number = 0;
  for (auto stage : program.getOps<sched::StageOp>()) {
    sched::KernelOp kernel = sched::getKernel(stage);
    std::optional<Planned> planned = planStage(stage, kernel, isDecode);
    if (!planned)
      return refused("--target cuda: no kernel computes @" + kernel.getSymName() +
                     "; --target cpu runs it as its meaning");
    const auto &[match, plan] = *planned;
    if (match.io.size() > TENON_LAUNCH_OPERANDS)
      return refused("--target cuda: @" + kernel.getSymName() + " has " + Twine(match.io.size()) +
                     " operands, more than " + Twine(TENON_LAUNCH_OPERANDS));
    for (const tk_launch &launch : plan.launches) {
      if (launch.shared_bytes > largestSharedBytes)
        return refused("--target cuda: " + Twine(launch.function) + " for @" + kernel.getSymName() +
                       " needs " + Twine(launch.shared_bytes >> 10) +
                       " KiB of shared memory in a block, and devices have " +
                       Twine(largestSharedBytes >> 10));
      DeviceLaunch made;
      made.kernel = getKernel({"", plan.shapeType, plan.shape, launch}, stage.getKernel());
      made.stage = number;
      for (unsigned operand : match.io)
        made.operands.push_back(operands.lookup(stage.getOperand(operand)));
      launches.push_back(std::move(made));
    }
    ++number;
  }
  return llvm::Error::success();
}

void DeviceProgram::addSampling(sched::ProgramOp decode) {
  for (auto output : decode.getOps<sched::OutputOp>()) {
    if (output.getName() != "logits")
      continue;
    auto logits = output.getBuffer().getDefiningOp<sched::BufferOp>();
    tk_sample_shape shape = {int32_t(sched::getColumns(logits.getType()))};
    auto *bytes = reinterpret_cast<const uint8_t *>(&shape);
    LaunchPlan plan = *planLaunches("tk_sample", {bytes, sizeof shape}, /*isDecode=*/true);
    int32_t kernel = getKernel({"", plan.shapeType, plan.shape, plan.launches[0]}, "sample");
    phases["sample"].push_back({kernel,
                                0,
                                {{TENON_AT_SCORED, int64_t(*logits.getOffset()), 0},
                                 {TENON_AT_DRAWS, 0, 0},
                                 {TENON_AT_DRAWN, 0, 0}}});
  }
}

std::optional<DeviceProgram::Planned>
DeviceProgram::planStage(sched::StageOp stage, sched::KernelOp kernel, bool isDecode) {
  for (const DeviceKernelSet &set : getDeviceKernelSets())
    if (std::optional<KernelMatch> match = set.match(stage, kernel, isDecode)) {
      emitPassed(stage, "cuda-kernels",
                 kernel.getSymName() + " by " + match->function + " of " + set.name);
      if (!llvm::is_contained(sets, &set))
        sets.push_back(&set);
      LaunchPlan plan = set.plan(*match, isDecode);
      return Planned{std::move(*match), std::move(plan)};
    }
  if (std::optional<KernelMatch> match = matchKernel(stage, kernel, isDecode, llm::Layout::x1k8))
    if (std::optional<LaunchPlan> plan = planLaunches(match->function, match->shape, isDecode))
      return Planned{std::move(*match), std::move(*plan)};
  return std::nullopt;
}

int32_t DeviceProgram::getKernel(DeviceKernel kernel, StringRef stage) {
  const tk_launch &launch = kernel.launch;
  std::string key = launch.function;
  for (int64_t part :
       {int64_t(launch.threads), int64_t(launch.columns), int64_t(launch.rows_per_block),
        int64_t(launch.least_rows), int64_t(launch.most_rows), launch.shared_bytes})
    key += " " + std::to_string(part);
  key.append(reinterpret_cast<const char *>(kernel.shape.data()), kernel.shape.size());
  auto [entry, isNew] = known.try_emplace(key, kernels.size());
  if (!isNew)
    return entry->second;
  // Names of fusions may hold anything; those of functions may not.
  std::string name = (stage + "_" + launch.function).str();
  for (char &c : name)
    if (!llvm::isAlnum(c))
      c = '_';
  int32_t &count = symbols[name];
  kernel.symbol = "tenon_" + name + (count ? "_" + std::to_string(count) : "");
  ++count;
  kernels.push_back(std::move(kernel));
  return entry->second;
}

} // namespace tenon::cuda
