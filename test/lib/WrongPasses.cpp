// Passes that are wrong on purpose, each in a way that a fusion could be: what
// --verify-each-numerically must find. A plugin that only tests load.
#include "ir/Sched.h"
#include "mlir/IR/Builders.h"
#include "mlir/Pass/Pass.h"
#include "passes/Promise.h"
#include "plugin/TenonPlugin.h"

using namespace mlir;
using namespace tenon;
using namespace tenon::llm;

namespace {

// Query head h reads key head h % heads instead of h / group: right only where groups have one
// head.
struct PairHeads : PassWrapper<PairHeads, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PairHeads)
  StringRef getArgument() const override { return "wrong-pair-heads"; }

  void runOnOperation() override {
    getOperation().walk([](RepeatKVOp op) {
      int64_t heads = op.getHeads(), times = op.getTimes(), dim = getColumns(op.getInput()) / heads;
      // Copies of the whole row, one behind another, by way of one head that is as wide as the row.
      OpBuilder builder(op);
      Value row = RepeatKVOp::create(builder, op.getLoc(), op.getInput(), 1, times);
      (void)dim;
      op.replaceAllUsesWith(row);
      op.erase();
    });
  }
};

bool isDecode(func::FuncOp function) {
  auto phase = function->getAttrOfType<StringAttr>("llm.phase");
  return phase && phase.getValue() == "decode";
}

// Scales scores of @decode by a little too much.
struct ScaleDecode : PassWrapper<ScaleDecode, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ScaleDecode)
  StringRef getArgument() const override { return "wrong-scale-decode"; }

  void runOnOperation() override {
    if (!isDecode(getOperation()))
      return;
    getOperation().walk(
        [](PagedAttentionOp op) { op.setScale(APFloat(op.getScale().convertToDouble() * 1.1)); });
  }
};

// Stores values in the place of keys: what @prefill gives is right, what comes after it is not.
struct StoreValues : PassWrapper<StoreValues, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(StoreValues)
  StringRef getArgument() const override { return "wrong-store-values"; }

  void runOnOperation() override {
    SmallVector<func::ReturnOp> returns(getOperation().getOps<func::ReturnOp>());
    for (func::ReturnOp op : returns)
      for (OpOperand &operand : op->getOpOperands())
        if (auto append = operand.get().getDefiningOp<KVAppendOp>()) {
          OpBuilder builder(op);
          auto again = cast<KVAppendOp>(builder.clone(*append));
          again.getKeyMutable().assign(append.getValue());
          operand.set(again);
        }
  }
};

// Gives fewer columns than there were.
struct DropColumn : PassWrapper<DropColumn, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DropColumn)
  StringRef getArgument() const override { return "wrong-drop-column"; }

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    auto ret = cast<func::ReturnOp>(function.getBody().front().getTerminator());
    OpBuilder builder(ret);
    Value slice = SliceOp::create(builder, ret.getLoc(), ret.getOperand(0), 0,
                                  getColumns(ret.getOperand(0)) - 1);
    ret.setOperand(0, slice);
    SmallVector<Type> results(ret.getOperandTypes());
    function.setFunctionType(builder.getFunctionType(function.getArgumentTypes(), results));
  }
};

// Half as large a sum, which the pass says it may be.
struct Sloppy : PassWrapper<Sloppy, OperationPass<ModuleOp>>, PromiseInterface {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Sloppy)
  StringRef getArgument() const override { return "wrong-but-lossy"; }
  Promise getPromise() const override { return {Promise::sameIO, 0.9}; }

  void runOnOperation() override {
    getOperation().walk(
        [](AttentionOp op) { op.setScale(APFloat(op.getScale().convertToDouble() * 0.9)); });
  }
};

// Leaves out the barriers of a program.
struct NoBarriers : PassWrapper<NoBarriers, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NoBarriers)
  StringRef getArgument() const override { return "wrong-no-barriers"; }

  void runOnOperation() override {
    SmallVector<Operation *> barriers;
    getOperation().walk([&](sched::BarrierOp op) { barriers.push_back(op); });
    for (Operation *op : barriers)
      op->erase();
  }
};

// Places every buffer at the beginning of the arena.
struct OneBuffer : PassWrapper<OneBuffer, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(OneBuffer)
  StringRef getArgument() const override { return "wrong-one-buffer"; }

  void runOnOperation() override {
    getOperation().walk([&](sched::BufferOp op) { op.setOffset(0); });
  }
};

} // namespace

static void add(PluginRegistry &registry) {
  registry.addPass([] { return std::make_unique<PairHeads>(); });
  registry.addPass([] { return std::make_unique<ScaleDecode>(); });
  registry.addPass([] { return std::make_unique<StoreValues>(); });
  registry.addPass([] { return std::make_unique<DropColumn>(); });
  registry.addPass([] { return std::make_unique<Sloppy>(); });
  registry.addPass([] { return std::make_unique<NoBarriers>(); });
  registry.addPass([] { return std::make_unique<OneBuffer>(); });
}

TENON_PLUGIN("wrong-passes", "1", add)
