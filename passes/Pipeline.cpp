// The pipeline: read it top-down. Every line is a pass of Passes.td or a point for plugins.
#include "passes/Pipeline.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tenon {

namespace {

class Builder {
public:
  Builder(OpPassManager &manager, const PipelineOptions &options, Phase last)
      : manager(manager), options(options), last(last) {}

  bool begin(Phase phase) const { return phase <= last; }

  void add(std::unique_ptr<Pass> pass) {
    if (!llvm::is_contained(options.disabled, pass->getArgument()))
      manager.addPass(std::move(pass));
  }

  // For passes over one phase's function.
  void addNested(std::unique_ptr<Pass> pass) {
    if (!llvm::is_contained(options.disabled, pass->getArgument()))
      manager.addNestedPass<func::FuncOp>(std::move(pass));
  }

  void point(StringRef name) {
    if (options.atPoint)
      options.atPoint(name, manager);
  }

private:
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
    build.addNested(createLLMMHAToGQA());
    build.addNested(createLLMFuseGatedMLP());
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
      build.add(createLLMPackWeights());
    build.point("after-weights");
  }
  if (build.begin(Phase::schedule)) {
    build.add(createLLMToSched());
    build.add(createSchedPlanBuffers());
    build.point("after-schedule");
  }
}

void registerAllPasses() {
  registerTenonPasses();
  registerCanonicalizerPass();
  registerCSEPass();
}

} // namespace tenon
