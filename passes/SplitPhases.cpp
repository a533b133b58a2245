// llm-split-phases: @prefill and @decode from one graph.
#include "passes/Passes.h"

namespace tenon {
#define GEN_PASS_DEF_LLMSPLITPHASES
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

struct SplitPhases : impl::LLMSplitPhasesBase<SplitPhases> {
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main)
      return;
    func::FuncOp decode = main.clone();
    main.setName("prefill");
    decode.setName("decode");
    decode->setAttr("llm.phase", StringAttr::get(&getContext(), "decode"));
    main->getBlock()->getOperations().insertAfter(Block::iterator(main), decode);
  }
};

} // namespace
} // namespace tenon
