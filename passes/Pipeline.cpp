// The pipeline: read it top-down. Every line is a pass of Passes.td or a point for plugins.
#include "passes/Pipeline.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tenon {

// "NAME" or "NAME{options}", nested where the pass is for functions, as parsePassPipeline would
// not.
static LogicalResult addInsertion(StringRef pass, OpPassManager &manager, raw_ostream &errors) {
  auto [name, options] = pass.split('{');
  options.consume_back("}");
  const PassInfo *info = PassInfo::lookup(name);
  auto report = [&](const Twine &message) {
    errors << message;
    return failure();
  };
  OpPassManager probe; // takes a pass over any operation
  if (!info || failed(info->addToPipeline(probe, options, report)))
    return failure();
  std::optional<StringRef> over = probe.begin()->getOpName();
  bool isNested = over && *over != ModuleOp::getOperationName();
  return info->addToPipeline(isNested ? manager.nest(*over) : manager, options, report);
}

namespace {

class Builder {
public:
  Builder(OpPassManager &manager, const PipelineOptions &options, Phase last)
      : manager(manager), options(options), last(last) {}

  bool begin(Phase phase) const { return phase <= last; }

  void add(std::unique_ptr<Pass> pass) {
    if (!isDisabled(pass->getArgument()))
      manager.addPass(std::move(pass));
  }

  // For passes over one phase's function.
  void addNested(std::unique_ptr<Pass> pass) {
    if (!isDisabled(pass->getArgument()))
      manager.addNestedPass<func::FuncOp>(std::move(pass));
  }

  void point(StringRef name) {
    for (const Insertion &insertion : options.insertions)
      if (insertion.point == name && !isDisabled(StringRef(insertion.pass).split('{').first))
        (void)addInsertion(insertion.pass, manager, llvm::errs()); // parsed before
    if (options.atPoint)
      options.atPoint(name, manager);
  }

private:
  bool isDisabled(StringRef name) const { return llvm::is_contained(options.disabled, name); }

  OpPassManager &manager;
  const PipelineOptions &options;
  Phase last;
};

} // namespace

void buildPipeline(OpPassManager &manager, const PipelineOptions &options, Phase last) {
  Builder build(manager, options, last);

  // simplify
  build.add(createCanonicalizerPass());
  build.add(createCSEPass());
  build.point("after-simplify");

  if (build.begin(Phase::cache)) {
    build.addNested(createLLMAbsorbLatent());
    build.add(createLLMInsertKVCache({options.cacheType}));
    build.point("after-cache");
  }
  if (build.begin(Phase::specialise)) {
    build.add(createLLMSplitPhases());
    build.add(createLLMGatherScoredRows());
    build.point("after-specialise");
  }
  if (build.begin(Phase::fuse)) {
    build.addNested(createLLMFuseNormQKV());
    build.addNested(createLLMStackQKV());
    build.addNested(createLLMMHAToGQA());
    build.addNested(createLLMFuseGatedMLP());
    build.addNested(createLLMFuseGatedExperts());
    build.addNested(createLLMFuseResidualNorm());
    build.addNested(createLLMFuseLinearResidual());
    build.point("after-fuse");
  }
  if (build.begin(Phase::attention)) {
    build.addNested(createLLMPagedAttention());
    build.addNested(createLLMFuseRope());
    build.point("after-attention");
  }
  if (build.begin(Phase::weights)) {
    build.add(createLLMQuantize({options.precision}));
    build.add(createCanonicalizerPass());
    build.add(createCSEPass());
    if (options.pack)
      build.add(createLLMPackWeights({options.keepRows}));
    build.point("after-weights");
  }
  if (build.begin(Phase::schedule)) {
    build.add(createLLMToSched());
    build.add(createSchedPlanBuffers());
    build.point("after-schedule");
  }
}

std::vector<StringRef> getExtensionPoints() {
  std::vector<StringRef> points;
  PipelineOptions options;
  options.atPoint = [&](StringRef point, OpPassManager &) { points.push_back(point); };
  OpPassManager manager(ModuleOp::getOperationName());
  buildPipeline(manager, options);
  return points;
}

llvm::Expected<Insertion> parseInsertion(StringRef text) {
  auto refuse = [&](const Twine &message) {
    return llvm::createStringError(std::make_error_code(std::errc::invalid_argument),
                                   ("'" + text + "': " + message).str());
  };
  auto [point, pass] = text.split(':');
  std::vector<StringRef> points = getExtensionPoints();
  if (!llvm::is_contained(points, point))
    return refuse("unknown extension point '" + point + "'; accepted: " + llvm::join(points, ", "));
  if (pass.empty())
    return refuse("expected POINT:PASS");
  if (!PassInfo::lookup(pass.split('{').first))
    return refuse("unknown pass '" + pass.split('{').first +
                  "'; accepted: a pass of Tenon or of a loaded plugin");
  OpPassManager scratch(ModuleOp::getOperationName());
  std::string reason;
  llvm::raw_string_ostream os(reason);
  if (failed(addInsertion(pass, scratch, os)))
    return refuse(StringRef(reason).trim().split('\n').first);
  return Insertion{point.str(), pass.str()};
}

std::vector<std::string> getOptionalPasses() {
  return {"canonicalize",           "cse",
          "llm-absorb-latent",      "llm-fuse-norm-qkv",
          "llm-stack-qkv",          "llm-mha-to-gqa",
          "llm-fuse-gated-mlp",     "llm-fuse-gated-experts",
          "llm-fuse-residual-norm", "llm-fuse-linear-residual",
          "llm-paged-attention",    "llm-fuse-rope"};
}

void registerAllPasses() {
  registerTenonPasses();
  registerCanonicalizerPass();
  registerCSEPass();
}

} // namespace tenon
