// llm-split-phases: @encode, @prefill and @decode from the functions of the graph.
#include "passes/Passes.h"

namespace tenon {
#define GEN_PASS_DEF_LLMSPLITPHASES
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

struct SplitPhases : impl::LLMSplitPhasesBase<SplitPhases> {
  void runOnOperation() override {
    if (auto encoder = getOperation().lookupSymbol<func::FuncOp>("encoder"))
      become(encoder, "encode");
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main)
      return;
    bool looksAhead = false, isCached = false;
    main.walk([&](llm::AttentionOp op) {
      looksAhead |= op.getBidirectional();
      isCached |= op.isCausal();
    });
    if (looksAhead && isCached) {
      main.emitError() << "mixes causal and bidirectional attention: it can neither be run token "
                          "by token nor as an encoder";
      return signalPassFailure();
    }
    if (looksAhead)
      return become(main, "encode");
    func::FuncOp decode = main.clone();
    main.setName("prefill");
    become(decode, "decode");
    main->getBlock()->getOperations().insertAfter(Block::iterator(main), decode);
  }

  void become(func::FuncOp function, StringRef phase) {
    function.setName(phase);
    function->setAttr("llm.phase", StringAttr::get(&getContext(), phase));
  }
};

} // namespace
} // namespace tenon
