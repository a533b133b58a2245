// See DevicePlan.h.
#include "tools/DevicePlan.h"
#include "ir/Sched.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tenon {

llvm::Expected<DevicePlan> planOnDevice(ModuleOp module, const CompileOptions &options,
                                        int64_t batch, int64_t prompt) {
  if (llvm::Error error = runPasses(module, options, Phase::schedule))
    return error;
  llvm::Expected<cuda::DeviceProgram> launches = cuda::DeviceProgram::build(module);
  if (!launches)
    return launches.takeError();
  DevicePlan plan{tk_h200(), options.precision, {}};
  auto add = [&](StringRef name, const Workload &workload) {
    if (auto program = module.lookupSymbol<sched::ProgramOp>(name))
      plan.phases.push_back({name.str(), workload.tokens, workload.context, batch,
                             estimateStep(program, *launches, workload, batch, plan.device)});
  };
  bool encodes = module.lookupSymbol<sched::ProgramOp>("encode") != nullptr;
  int64_t own = encodes ? 1 : prompt;
  add("encode", {prompt, prompt, prompt * prompt, prompt});
  add("prefill", Workload::prefill(own));
  add("decode", Workload::decode(own + 1));
  return plan;
}

void printText(const DevicePlan &plan) {
  auto &out = llvm::outs();
  out << llvm::formatv("\non {0} (on paper: {1:f1} TB/s, {2:f0} TFLOP/s bf16, {3:f1} us a launch), "
                       "precision {4}\n",
                       plan.device.name, plan.device.memory / 1e12, plan.device.halves / 1e12,
                       plan.device.launch * 1e6, plan.precision);
  for (const DevicePhase &phase : plan.phases) {
    const cuda::StepEstimate &step = phase.step;
    out << '\n'
        << phase.name << ", batch " << phase.batch << ", " << phase.tokens
        << " tokens each, cache length " << phase.length << '\n';
    for (const cuda::KernelEstimate &kernel : step.kernels)
      out << "  " << llvm::left_justify(kernel.kernel, 24)
          << llvm::format("%5lld stages %5lld launches %10.1f us  %10.1f MB %10.1f GFLOP  ",
                          (long long)kernel.stages, (long long)kernel.launches,
                          kernel.seconds * 1e6, double(kernel.bytes) / 1e6,
                          double(kernel.flops) / 1e9)
          << llvm::left_justify(kernel.memoryBound ? "memory" : "arithmetic", 12) << kernel.how
          << '\n';
    out << llvm::format("  %.1f us, %lld launches take %.1f us of them; %.0f tokens/s, %.0f %% of "
                        "what reading alone would allow\n",
                        step.seconds * 1e6, (long long)step.launches,
                        double(step.launches) * plan.device.launch * 1e6,
                        phase.getTokensPerSecond(), 100 * step.streaming / step.seconds);
  }
}

void printJson(const DevicePlan &plan, llvm::json::OStream &json) {
  json.attribute("name", plan.device.name);
  json.attribute("precision", plan.precision);
  json.attribute("memory_bytes_per_second", plan.device.memory);
  json.attributeArray("phases", [&] {
    for (const DevicePhase &phase : plan.phases)
      json.object([&] {
        json.attribute("name", phase.name);
        json.attribute("batch", phase.batch);
        json.attribute("tokens", phase.tokens);
        json.attribute("cache_length", phase.length);
        json.attribute("bytes", phase.step.bytes);
        json.attribute("flops", phase.step.flops);
        json.attribute("launches", phase.step.launches);
        json.attribute("seconds", phase.step.seconds);
        json.attribute("launch_seconds", double(phase.step.launches) * plan.device.launch);
        json.attribute("tokens_per_second", phase.getTokensPerSecond());
      });
  });
}

} // namespace tenon
