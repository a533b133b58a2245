// See Reduction.h.
#include "codegen/reference/Reduction.h"
#include "codegen/Error.h"
#include "codegen/reference/NumericalCheck.h"
#include "codegen/reference/Observation.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassRegistry.h"
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

// The function gives what a result is made of instead: the first, second or third of that.
struct ReturnOperand : OpRewritePattern<func::ReturnOp> {
  ReturnOperand(MLIRContext *context, unsigned which) : OpRewritePattern(context), which(which) {}

  LogicalResult matchAndRewrite(func::ReturnOp op, PatternRewriter &rewriter) const override {
    auto function = op->getParentOfType<func::FuncOp>();
    for (OpOperand &result : op->getOpOperands()) {
      Operation *made = result.get().getDefiningOp();
      if (!made || made->getNumResults() > 1 || made->getNumOperands() <= which ||
          !isa<RankedTensorType>(result.get().getType()) ||
          !isa<RankedTensorType>(made->getOperand(which).getType()))
        continue;
      rewriter.modifyOpInPlace(op, [&] { result.set(made->getOperand(which)); });
      rewriter.modifyOpInPlace(function, [&] { updateResults(function); });
      return success();
    }
    return failure();
  }

private:
  unsigned which;
};

// One result less.
struct ReturnLess : OpRewritePattern<func::ReturnOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(func::ReturnOp op, PatternRewriter &rewriter) const override {
    auto function = op->getParentOfType<func::FuncOp>();
    if (op.getNumOperands() < 2)
      return failure();
    rewriter.modifyOpInPlace(function,
                             [&] { return (void)function.eraseResult(op.getNumOperands() - 1); });
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
  BecomeOperand(MLIRContext *context, unsigned which) : AnyOperation(context), which(which) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isGraph(op) || op->getNumResults() > 1 || op->getNumOperands() <= which ||
        op->getOperand(which).getType() != op->getResult(0).getType())
      return failure();
    rewriter.replaceOp(op, op->getOperand(which));
    return success();
  }

private:
  unsigned which;
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

} // namespace

// The boldest first.
static std::vector<std::unique_ptr<RewritePattern>> makeReductions(MLIRContext *context) {
  std::vector<std::unique_ptr<RewritePattern>> patterns;
  for (unsigned which : {0, 1, 2})
    patterns.push_back(std::make_unique<ReturnOperand>(context, which));
  patterns.push_back(std::make_unique<ReturnLess>(context));
  patterns.push_back(std::make_unique<BecomeArgument>(context));
  for (unsigned which : {0, 1, 2})
    patterns.push_back(std::make_unique<BecomeOperand>(context, which));
  patterns.push_back(std::make_unique<BecomeBody>(context));
  return patterns;
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

// Keeps `variant` if it is interesting.
static bool accept(OwningOpRef<ModuleOp> &module, OwningOpRef<ModuleOp> variant,
                   function_ref<bool(ModuleOp)> isInteresting) {
  sweep(*variant);
  // What is asked about may be invalid; that is nobody's business.
  ScopedDiagnosticHandler quiet(module->getContext(), [](Diagnostic &) { return success(); });
  if (failed(verify(*variant)) || !isInteresting(*variant))
    return false;
  module = std::move(variant);
  return true;
}

void reduceModule(OwningOpRef<ModuleOp> &module, function_ref<bool(ModuleOp)> isInteresting) {
  MLIRContext *context = module->getContext();
  std::vector<std::unique_ptr<RewritePattern>> patterns = makeReductions(context);

  // The variant in which `change` was made to operation i, if it is kept.
  auto attempt = [&](size_t i, function_ref<LogicalResult(Operation *)> change) {
    OwningOpRef<ModuleOp> variant = module->clone();
    return succeeded(change(list(*variant)[i])) &&
           accept(module, std::move(variant), isInteresting);
  };
  bool isSmaller = true;
  while (isSmaller) {
    isSmaller = false;
    for (size_t i = list(*module).size(); i-- > 0;) {
      if (i >= list(*module).size())
        continue; // the last step erased several
      Operation *op = list(*module)[i];
      if (isa<func::FuncOp>(op))
        isSmaller |= attempt(i, [](Operation *function) { return function->erase(), success(); });
      for (const std::unique_ptr<RewritePattern> &pattern : patterns) {
        std::optional<OperationName> root = pattern->getRootKind();
        if (i >= list(*module).size() || (root && *root != list(*module)[i]->getName()))
          continue;
        isSmaller |= attempt(i, [&](Operation *target) {
          PatternRewriter rewriter(context);
          rewriter.setInsertionPoint(target);
          return pattern->matchAndRewrite(target, rewriter);
        });
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Numerically
//===----------------------------------------------------------------------===//

namespace {

// What became of a pipeline.
struct Verdict {
  std::string broken; // the promise of a pass, and which; empty: all kept theirs
  std::string other;  // another error
};

Verdict runPipeline(ModuleOp module, StringRef pipeline, std::shared_ptr<Observer> observer) {
  Verdict verdict;
  OwningOpRef<ModuleOp> copy = module.clone();
  // A pass that crashes on what is left of a module is not what is looked for.
  llvm::CrashRecoveryContext recovery;
  recovery.RunSafely([&] {
    ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && verdict.other.empty())
        verdict.other = diagnostic.str();
      return success();
    });
    PassManager manager(module.getContext());
    NumericalCheckOptions options;
    options.observer = std::move(observer);
    options.broken = [&](StringRef message) { verdict.broken = message.str(); };
    addNumericalCheck(manager, std::move(options));
    llvm::raw_string_ostream stream(verdict.other);
    if (succeeded(parsePassPipeline(pipeline, manager, stream)))
      (void)manager.run(*copy);
  });
  return verdict;
}

} // namespace

llvm::Expected<std::string> reduceNumerically(OwningOpRef<ModuleOp> &module, StringRef pipeline) {
  // A module's pass manager takes what is inside.
  pipeline.consume_front("builtin.module(") && pipeline.consume_back(")");
  llvm::CrashRecoveryContext::Enable();
  // Keeps the code of kernels from variant to variant.
  auto observer = std::make_shared<Observer>(/*seed=*/1);
  Verdict verdict = runPipeline(*module, pipeline, observer);
  if (verdict.broken.empty())
    return refused(verdict.other.empty() ? "the pipeline keeps what the module computes"
                                         : "the pipeline fails otherwise: " +
                                               StringRef(verdict.other).split('\n').first);
  std::string pass = StringRef(verdict.broken).split(": ").first.str() + ": ";
  reduceModule(module, [&](ModuleOp variant) {
    return StringRef(runPipeline(variant, pipeline, observer).broken).starts_with(pass);
  });
  return runPipeline(*module, pipeline, observer).broken;
}

} // namespace tenon
