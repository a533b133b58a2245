// See Reduction.h.
#include "codegen/reference/Reduction.h"
#include "codegen/Error.h"
#include "codegen/reference/NumericalCheck.h"
#include "codegen/reference/Observation.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Reducer/ReductionPatternInterface.h"
#include "llvm/Support/CrashRecoveryContext.h"

using namespace mlir;
using namespace tenon::llm;

namespace tenon {

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

static void updateResults(func::FuncOp function) {
  function.setFunctionType(
      FunctionType::get(function.getContext(), function.getArgumentTypes(),
                        function.getBody().front().getTerminator()->getOperandTypes()));
}

namespace {

// The function gives what a result is made of instead, or one result less.
struct ReturnOperands : OpRewritePattern<func::ReturnOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(func::ReturnOp op, PatternRewriter &rewriter) const override {
    auto function = op->getParentOfType<func::FuncOp>();
    for (OpOperand &result : op->getOpOperands()) {
      Operation *made = result.get().getDefiningOp();
      if (!made || !isa<RankedTensorType>(result.get().getType()))
        continue;
      SmallVector<Value> operands(op.getOperands());
      if (auto fused = dyn_cast<FusedOp>(made); fused && made->getNumResults() > 1)
        continue;
      for (Value operand : made->getOperands())
        if (isa<RankedTensorType>(operand.getType())) {
          operands[result.getOperandNumber()] = operand;
          rewriter.modifyOpInPlace(op, [&] { op->setOperands(operands); });
          rewriter.modifyOpInPlace(function, [&] { updateResults(function); });
          return success();
        }
    }
    return failure();
  }
};

struct ReturnLess : OpRewritePattern<func::ReturnOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(func::ReturnOp op, PatternRewriter &rewriter) const override {
    auto function = op->getParentOfType<func::FuncOp>();
    if (op.getNumOperands() < 2)
      return failure();
    rewriter.modifyOpInPlace(function, [&] {
      return (void)function.eraseResult(op.getNumOperands() - 1);
    });
    rewriter.modifyOpInPlace(op, [&] { op->eraseOperand(op.getNumOperands() - 1); });
    return success();
  }
};

// What fits any operation of the dialect.
struct AnyOperation : RewritePattern {
  explicit AnyOperation(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  static bool isGraph(Operation *op) {
    return isa_and_nonnull<LLMDialect>(op->getDialect()) && op->getNumResults() &&
           isa_and_nonnull<func::FuncOp>(op->getParentOp()) && !isa<WeightOpInterface>(op);
  }
};

struct BecomeOperand : AnyOperation {
  using AnyOperation::AnyOperation;

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isGraph(op))
      return failure();
    SmallVector<Value> values;
    for (Value result : op->getResults())
      for (Value operand : op->getOperands())
        if (operand.getType() == result.getType()) {
          values.push_back(operand);
          break;
        }
    if (values.size() != op->getNumResults())
      return failure();
    rewriter.replaceOp(op, values);
    return success();
  }
};

// Rows become arguments; a cache stays what it was before.
struct BecomeArgument : AnyOperation {
  using AnyOperation::AnyOperation;

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isGraph(op) || op->use_empty() || isa<KVReadOp>(op))
      return failure();
    auto function = cast<func::FuncOp>(op->getParentOp());
    SmallVector<Value> values;
    for (Value result : op->getResults())
      if (isa<CacheType>(result.getType())) {
        Value cache;
        op->walk([&](Operation *inner) {
          for (Value operand : inner->getOperands())
            if (isa<CacheType>(operand.getType()) &&
                !op->isProperAncestor(operand.getParentBlock()->getParentOp()) &&
                operand.getParentBlock() == op->getBlock())
              cache = operand;
        });
        if (!cache)
          return failure();
        values.push_back(cache);
      } else {
        values.push_back(Value());
      }
    if (llvm::all_of(values, [](Value value) { return bool(value); }))
      return failure(); // a cache alone: BecomeOperand
    rewriter.modifyOpInPlace(function, [&] {
      for (auto [value, result] : llvm::zip_equal(values, op->getResults()))
        if (!value) {
          unsigned index = function.getNumArguments();
          (void)function.insertArgument(index, result.getType(), {}, op->getLoc());
          value = function.getArgument(index);
        }
    });
    rewriter.replaceOp(op, values);
    return success();
  }
};

struct BecomeBody : OpRewritePattern<FusedOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(FusedOp op, PatternRewriter &rewriter) const override {
    Operation *yield = op.getBody().front().getTerminator();
    SmallVector<Value> values(yield->getOperands());
    rewriter.eraseOp(yield);
    rewriter.inlineBlockBefore(&op.getBody().front(), op);
    rewriter.replaceOp(op, values);
    return success();
  }
};

struct Reductions : DialectReductionPatternInterface {
  using DialectReductionPatternInterface::DialectReductionPatternInterface;

  void populateReductionPatterns(RewritePatternSet &patterns) const override {
    for (std::unique_ptr<RewritePattern> &pattern : makeReductions(patterns.getContext()))
      patterns.add(std::move(pattern));
  }
  explicit Reductions(Dialect *dialect) : DialectReductionPatternInterface(dialect) {}
};

} // namespace

// The boldest first.
std::vector<std::unique_ptr<RewritePattern>> makeReductions(MLIRContext *context) {
  std::vector<std::unique_ptr<RewritePattern>> patterns;
  patterns.push_back(std::make_unique<ReturnOperands>(context));
  patterns.push_back(std::make_unique<ReturnLess>(context));
  patterns.push_back(std::make_unique<BecomeArgument>(context));
  patterns.push_back(std::make_unique<BecomeOperand>(context));
  patterns.push_back(std::make_unique<BecomeBody>(context));
  return patterns;
}

void registerReductions(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, LLMDialect *dialect) {
    dialect->addInterfaces<Reductions>();
  });
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

// Erases what nothing reads, also arguments; the batch stays.
static void sweep(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
    for (unsigned i = function.getNumArguments(); i-- > 0;)
      if (function.getArgument(i).use_empty() && !isa<BatchType>(function.getArgument(i).getType()))
        (void)function.eraseArgument(i);
  }
}

static std::vector<Operation *> list(ModuleOp module) {
  std::vector<Operation *> ops;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  return ops;
}

namespace {

class Reducer {
public:
  Reducer(MLIRContext *context, StringRef pipeline)
      : context(context), pipeline(pipeline), patterns(makeReductions(context)),
        observer(std::make_shared<Observer>(/*seed=*/1)) {
    this->pipeline.consume_front("builtin.module(") && this->pipeline.consume_back(")");
  }

  llvm::Expected<std::string> run(OwningOpRef<ModuleOp> &module) {
    llvm::CrashRecoveryContext::Enable();
    std::string message = check(*module);
    if (message.empty())
      return refused(other.empty() ? "the pipeline keeps what the module computes"
                                   : "the pipeline fails otherwise: " + other);
    wanted = message.substr(0, message.find(':'));
    while (shrink(module)) {
    }
    return check(*module);
  }

private:
  // The error by which the pipeline breaks its promise on a copy; empty: it does not. A pass that
  // crashes on what is left of a module is not what is looked for.
  std::string check(ModuleOp module) {
    OwningOpRef<ModuleOp> copy = module.clone();
    std::string message;
    other.clear();
    llvm::CrashRecoveryContext recovery;
    recovery.RunSafely([&] {
      ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error && other.empty())
          other = diagnostic.str();
        return success();
      });
      PassManager manager(context);
      NumericalCheckOptions options;
      options.observer = observer;
      options.broken = [&](StringRef text) { message = text.str(); };
      addNumericalCheck(manager, std::move(options));
      if (succeeded(verify(*copy)) && succeeded(parsePassPipeline(pipeline, manager)))
        (void)manager.run(*copy);
    });
    return StringRef(message).starts_with(wanted + ":") || wanted.empty() ? message : "";
  }

  // Keeps `variant` if it fails in the same way.
  bool accept(OwningOpRef<ModuleOp> &module, OwningOpRef<ModuleOp> variant) {
    sweep(*variant);
    if (check(*variant).empty())
      return false;
    module = std::move(variant);
    return true;
  }

  // One round over all operations; whether any step was kept.
  bool shrink(OwningOpRef<ModuleOp> &module) {
    bool isSmaller = false;
    for (size_t i = list(*module).size(); i-- > 0;) {
      if (i >= list(*module).size())
        continue;
      Operation *op = list(*module)[i];
      if (isa<func::FuncOp>(op)) {
        OwningOpRef<ModuleOp> variant = module->clone();
        list(*variant)[i]->erase();
        isSmaller |= accept(module, std::move(variant));
        continue;
      }
      for (const std::unique_ptr<RewritePattern> &pattern : patterns) {
        std::optional<OperationName> root = pattern->getRootKind();
        if (root && *root != op->getName())
          continue;
        OwningOpRef<ModuleOp> variant = module->clone();
        Operation *target = list(*variant)[i];
        PatternRewriter rewriter(context);
        rewriter.setInsertionPoint(target);
        if (succeeded(pattern->matchAndRewrite(target, rewriter)) &&
            accept(module, std::move(variant))) {
          isSmaller = true;
          break;
        }
      }
    }
    return isSmaller;
  }

  MLIRContext *context;
  StringRef pipeline;
  std::vector<std::unique_ptr<RewritePattern>> patterns;
  std::shared_ptr<Observer> observer; // keeps the code of kernels from variant to variant
  std::string wanted;                 // the pass that breaks its promise
  std::string other;                  // the first error that was no broken promise
};

} // namespace

llvm::Expected<std::string> reduceNumerically(OwningOpRef<ModuleOp> &module, StringRef pipeline) {
  return Reducer(module->getContext(), pipeline).run(module);
}

} // namespace tenon
