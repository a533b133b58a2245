// See NumericalCheck.h.
#include "codegen/reference/NumericalCheck.h"
#include "codegen/reference/Observation.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "passes/Promise.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"
#include <cmath>

using namespace mlir;

namespace tenon {

namespace {

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

// Row `i` of what both have, in each of them. A pass that maps phases may leave out rows that are
// not scored.
struct RowPairs {
  int64_t count = 0;
  const std::vector<int32_t> *before = nullptr, *after = nullptr; // null: row i itself
};

std::optional<RowPairs> pairRows(const HostRows &before, const HostRows &after,
                                 const ObservedRun &run, bool mayGather) {
  if (before.kind == after.kind && before.count == after.count)
    return RowPairs{before.count};
  int64_t scored = int64_t(run.scoredRows.size());
  if (mayGather && before.kind == RowKind::tokens && after.kind == RowKind::scored &&
      after.count == scored)
    return RowPairs{scored, &run.scoredRows};
  if (mayGather && before.kind == RowKind::scored && after.kind == RowKind::tokens &&
      before.count == scored)
    return RowPairs{scored, nullptr, &run.scoredRows};
  return std::nullopt;
}

// The largest difference between two results.
struct Difference {
  int64_t row = 0, column = 0;
  double before = 0, after = 0, error = 0, allowed = 0;

  bool isTooLarge() const { return !(error <= allowed); }
};

Difference compare(const HostRows &before, const HostRows &after, const RowPairs &pairs,
                   double tolerance) {
  Difference worst;
  double largest = 0;
  for (int64_t i = 0; i < pairs.count; ++i)
    for (int64_t c = 0; c < before.columns; ++c) {
      double was = before.at(pairs.before ? (*pairs.before)[i] : i, c);
      double is = after.at(pairs.after ? (*pairs.after)[i] : i, c);
      if (std::isfinite(was))
        largest = std::max(largest, std::fabs(was));
      double error = was == is || (std::isnan(was) && std::isnan(is)) ? 0 : std::fabs(was - is);
      error = std::isnan(error) ? INFINITY : error;
      if (error > worst.error)
        worst = {i, c, was, is, error, 0};
    }
  worst.allowed = tolerance * largest;
  return worst;
}

//===----------------------------------------------------------------------===//
// The instrumentation
//===----------------------------------------------------------------------===//

class NumericalCheck : public PassInstrumentation {
public:
  explicit NumericalCheck(NumericalCheckOptions options)
      : options(std::move(options)), observer(this->options.observer) {
    if (!observer)
      observer = std::make_shared<Observer>(this->options.seed);
  }

  void runBeforePass(Pass *pass, Operation *op) override {
    ModuleOp module = getModule(pass, op);
    if (!module || getDigest(module) == digest)
      return;
    look(module);
    listUnchecked(module, *pass);
  }

  void runAfterPass(Pass *pass, Operation *op) override {
    ModuleOp module = getModule(pass, op);
    if (!module || getDigest(module) == digest)
      return;
    Observation before = std::move(current);
    look(module);
    if (succeeded(check(before, *pass, module)))
      return listUnchecked(module, *pass);
    hasFailed = true;
    signalPassFailure(pass);
  }

private:
  // The module to be observed; null for passes that only run others.
  ModuleOp getModule(Pass *pass, Operation *op) const {
    if (hasFailed || pass->getName().contains("PassAdaptor"))
      return nullptr;
    auto module = dyn_cast<ModuleOp>(op);
    return module ? module : op->getParentOfType<ModuleOp>();
  }

  static uint64_t getDigest(ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream, OpPrintingFlags().useLocalScope());
    return llvm::xxh3_64bits(StringRef(text)) | 1;
  }

  void look(ModuleOp module) {
    digest = getDigest(module);
    current = observer->observe(module);
  }

  void listUnchecked(ModuleOp module, const Pass &pass) {
    for (const ObservedModel &model : current.models)
      if (!model.unchecked.empty())
        skip(module, pass, model.name, model.unchecked);
  }

  // Each reason once.
  void skip(ModuleOp module, const Pass &pass, StringRef name, StringRef why) {
    std::string text = ("@" + name + " is not checked: " + why).str();
    if (skipped.insert(text).second)
      emitWarning(getLoc(module, name)) << getName(pass) << ": " << text;
  }

  // Of the function where there is one.
  static Location getLoc(ModuleOp module, StringRef function) {
    Operation *op = module.lookupSymbol(function);
    return op ? op->getLoc() : module.getLoc();
  }

  static StringRef getName(const Pass &pass) {
    return pass.getArgument().empty() ? pass.getName() : pass.getArgument();
  }

  LogicalResult check(const Observation &before, const Pass &pass, ModuleOp module) {
    Promise promise = tenon::getPromise(pass);
    bool isChecked = false;
    for (const ObservedModel &was : before.models) {
      const ObservedModel *is = current.find(was.name);
      if (!is) {
        skip(module, pass, was.name, "it is gone");
        continue;
      }
      if (is->isWrong && was.unchecked.empty())
        return fail(pass, module, was.name, "makes @" + was.name + " wrong: " + is->unchecked);
      if (!was.unchecked.empty() || !is->unchecked.empty())
        continue;
      if (promise.kind == Promise::sameIO && was.signature != is->signature)
        return fail(pass, module, was.name,
                    "changes the arguments or results of @" + was.name +
                        ", which it does not declare (passes/Promise.h)");
      if (failed(checkModel(was, *is, promise, pass, module)))
        return failure();
      isChecked = true;
    }
    if (isChecked && options.progress)
      options.progress("checked " + getName(pass).str());
    return success();
  }

  LogicalResult checkModel(const ObservedModel &before, const ObservedModel &after,
                           const Promise &promise, const Pass &pass, ModuleOp module) {
    bool mayMap = promise.kind == Promise::phaseMap;
    if (before.runs.size() != after.runs.size())
      return fail(pass, module, after.name, "changes how @" + after.name + " is called");
    for (auto [was, is] : llvm::zip_equal(before.runs, after.runs)) {
      // A cache that another form lacks or keeps otherwise cannot be compared.
      auto select = [&](const ObservedRun &run) {
        std::vector<const ObservedRows *> results;
        for (const ObservedRows &rows : run.results)
          if (!mayMap || !rows.isCache)
            results.push_back(&rows);
        return results;
      };
      std::vector<const ObservedRows *> wanted = select(was), given = select(is);
      if (wanted.size() != given.size())
        return fail(pass, module, is.function,
                    "changes how many results @" + is.function + " gives");
      for (auto [b, a] : llvm::zip_equal(wanted, given)) {
        std::optional<RowPairs> pairs = pairRows(b->rows, a->rows, is, mayMap);
        if (!pairs || b->rows.columns != a->rows.columns)
          return fail(pass, module, is.function,
                      "changes which rows or columns @" + is.function + " gives as \"" + b->name +
                          "\"");
        Difference worst = compare(b->rows, a->rows, *pairs, promise.tolerance);
        if (worst.isTooLarge())
          return fail(pass, module, is.function, describe(worst, is, b->name));
      }
    }
    return success();
  }

  std::string describe(const Difference &worst, const ObservedRun &run, StringRef result) const {
    return llvm::formatv("changes what @{0} computes: result \"{1}\" row {2} column {3}: "
                         "{4:f6} before, {5:f6} after (error {6:e1} of {7:e1} allowed; seed {8}, "
                         "{9})",
                         run.function, result, worst.row, worst.column, worst.before, worst.after,
                         worst.error, worst.allowed, options.seed, run.batch);
  }

  LogicalResult fail(const Pass &pass, ModuleOp module, StringRef function,
                     const llvm::Twine &what) const {
    std::string message = (getName(pass) + ": " + what).str();
    if (options.broken)
      options.broken(message);
    return emitError(getLoc(module, function)) << message;
  }

  NumericalCheckOptions options;
  std::shared_ptr<Observer> observer;
  uint64_t digest = 0;
  Observation current; // of the module with that digest
  llvm::StringSet<> skipped;
  bool hasFailed = false;
};

} // namespace

void addNumericalCheck(PassManager &manager, NumericalCheckOptions options) {
  MLIRContext *context = manager.getContext();
  context->disableMultithreading();
  context->loadDialect<sched::SchedDialect>(); // for kernels
  manager.addInstrumentation(std::make_unique<NumericalCheck>(std::move(options)));
}

} // namespace tenon
