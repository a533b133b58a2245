// See Timing.h.
#include "tools/Timing.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "tools/graph/GraphModel.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tenon {

// Passes run one at a time: the context has no threads.
class Timing::Instrumentation : public PassInstrumentation {
public:
  explicit Instrumentation(Timing &timing) : timing(timing) {}

  void runBeforePass(Pass *, Operation *) override { starts.push_back(Clock::now()); }
  void runAfterPass(Pass *pass, Operation *) override { stop(pass); }
  void runAfterPassFailed(Pass *pass, Operation *) override { stop(pass); }

private:
  void stop(Pass *pass) {
    std::chrono::duration<double> seconds = Clock::now() - starts.pop_back_val();
    // Adaptors that only run other passes have no name; those that look on are not of the pipeline.
    StringRef name = pass->getArgument();
    if (name.empty() || name == "tenon-look")
      return;
    Spent &spent = timing.passes[name];
    spent.seconds += seconds.count();
    ++spent.runs;
  }

  Timing &timing;
  SmallVector<Clock::time_point> starts;
};

void Timing::begin(StringRef step) {
  end();
  steps.push_back({step.str(), 0});
  stepStart = Clock::now();
  isRunning = true;
}

void Timing::end() {
  if (isRunning)
    steps.back().second += std::chrono::duration<double>(Clock::now() - stepStart).count();
  isRunning = false;
}

void Timing::attach(CompileOptions &options, int64_t tokens) {
  options.beforePasses = [this](PassManager &manager) {
    manager.addInstrumentation(std::make_unique<Instrumentation>(*this));
  };
  options.atPoint = [this, tokens](StringRef point, ModuleOp module) {
    if (point == "after-weights")
      estimate(module, tokens);
  };
}

void Timing::estimate(ModuleOp module, int64_t tokens) {
  if (auto decode = module.lookupSymbol<func::FuncOp>("decode")) {
    cacheBytesPerToken = getCacheBytesPerToken(decode);
    estimates.push_back({llvm::formatv("decode, 1 token with {0} cached", tokens),
                         estimateCost(decode, Workload::decode(tokens))});
  }
  if (auto prefill = module.lookupSymbol<func::FuncOp>("prefill"))
    estimates.push_back({llvm::formatv("prefill, {0} tokens", tokens),
                         estimateCost(prefill, Workload::prefill(tokens))});
}

static std::string formatCount(int64_t count) {
  const char *units[] = {"", " k", " M", " G", " T", " P"};
  double value = count;
  int unit = 0;
  for (; value >= 1000 && unit < 5; ++unit)
    value /= 1000;
  return unit ? llvm::formatv("{0:f2}{1}", value, units[unit]).str() : std::to_string(count);
}

void Timing::printCost(const Estimate &estimate, raw_ostream &out) {
  auto line = [&](StringRef name, const Cost &cost) {
    auto bytes = [](int64_t count) { return count ? graph::formatBytes(count) : "-"; };
    out << "  " << llvm::left_justify(name, 20)
        << llvm::right_justify(std::to_string(cost.operations), 6)
        << llvm::right_justify(bytes(cost.weightBytes), 12)
        << llvm::right_justify(bytes(cost.cacheBytes), 12)
        << llvm::right_justify(cost.flops ? formatCount(cost.flops) : "-", 12) << '\n';
  };
  out << '\n'
      << estimate.heading << '\n'
      << llvm::left_justify("", 22) << llvm::right_justify("ops", 6)
      << llvm::right_justify("weights", 12) << llvm::right_justify("KV cache", 12)
      << llvm::right_justify("FLOPs", 12) << '\n';
  for (const auto &[name, cost] : estimate.table)
    line(name, cost);
  line("total", getTotal(estimate.table));
}

void Timing::print(raw_ostream &out) const {
  out << "step                       ms\n";
  double total = 0;
  for (const auto &[name, seconds] : steps) {
    out << "  " << llvm::left_justify(name, 18) << llvm::format("%9.1f\n", seconds * 1e3);
    total += seconds;
  }
  out << "  " << llvm::left_justify("total", 18) << llvm::format("%9.1f\n", total * 1e3);
  out << "\npass                               runs       ms\n";
  for (const auto &[name, spent] : passes)
    out << "  " << llvm::left_justify(name, 30)
        << llvm::format("%7d%9.2f\n", spent.runs, spent.seconds * 1e3);
  if (cacheBytesPerToken)
    out << "\nKV cache: " << graph::formatBytes(cacheBytesPerToken) << " a token\n";
  for (const Estimate &estimate : estimates)
    printCost(estimate, out);
}

} // namespace tenon
