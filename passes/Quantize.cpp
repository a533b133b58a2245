// llm-quantize: how weights are stored in the executable.
#include "mlir/IR/Builders.h"
#include "passes/Passes.h"

namespace tenon {
#define GEN_PASS_DEF_LLMQUANTIZE
#include "passes/Passes.h.inc"

using namespace mlir;
using namespace tenon::llm;

namespace {

struct Quantize : impl::LLMQuantizeBase<Quantize> {
  using LLMQuantizeBase::LLMQuantizeBase;

  // About three times (int4: one and a half times) what 1 to 30 layers of random weights were seen
  // to lose.
  Promise getPromise() const override {
    double tolerance = llvm::StringSwitch<double>(precision)
                           .Case("bf16", 1.5e-2)
                           .Case("f16", 2e-3)
                           .Case("int8", 5e-2)
                           .Case("int4", 0.4)
                           .Default(sameNumbers);
    return {Promise::sameIO, tolerance};
  }

  void runOnOperation() override {
    auto matrix = llvm::StringSwitch<std::optional<Storage>>(precision)
                      .Case("f32", Storage::F32)
                      .Case("bf16", Storage::BF16)
                      .Case("f16", Storage::F16)
                      .Case("int8", Storage::Q8_0)
                      .Case("int4", Storage::Q4_1)
                      .Default(std::nullopt);
    if (!matrix && precision != "stored") {
      getOperation().emitError() << "unknown precision '" << precision
                                 << "'; accepted: stored, f32, bf16, f16, int8, int4";
      return signalPassFailure();
    }
    SmallVector<WeightOp> weights;
    getOperation().walk([&](WeightOp op) { weights.push_back(op); });
    unsigned requantised = 0;
    llvm::DenseSet<Value> seen;
    for (WeightOp op : weights) {
      Storage stored = op.getResult().getType().getStorage();
      requantised += matrix && isQuantised(*matrix) && isQuantised(stored);
      convert(op.getResult(), matrix, seen);
    }
    if (requantised)
      getOperation().emitWarning()
          << requantised << " tensors are quantised already and are quantised again to "
          << precision;
  }

  // What is transposed, or read as one vector, is converted as it will lie: in groups of its own
  // rows, or not at all. Whether this happens to what `op` makes.
  static bool changesRows(Operation *op) {
    if (auto reshape = dyn_cast<WeightReshapeOp>(op))
      if (reshape.getResult().getType().getRank() == 1)
        return true;
    if (isa<WeightTransposeOp>(op))
      return true;
    return isa<WeightDeinterleaveOp, WeightConcatOp, WeightSliceOp, WeightReshapeOp,
               WeightConvertOp>(op) &&
           llvm::any_of(op->getUsers(), changesRows);
  }

  // Whether the matrix chooses experts. It is small, and a wrong choice costs more than any
  // rounding, so it is not stored in groups.
  static bool choosesExperts(Value weight) {
    return llvm::any_of(weight.getUsers(), [](Operation *user) {
      auto linear = dyn_cast<LinearOp>(user);
      return linear && llvm::any_of(linear.getResult().getUsers(), [](Operation *scores) {
               if (isa<TopKOp>(scores))
                 return true;
               return isa<SoftmaxOp, ActivationOp>(scores) &&
                      llvm::any_of(scores->getUsers(),
                                   [](Operation *reader) { return isa<TopKOp>(reader); });
             });
    });
  }

  // For every reader at the place from which on rows stay what they are.
  static void convert(TypedValue<WeightType> weight, std::optional<Storage> matrix,
                      llvm::DenseSet<Value> &seen) {
    if (!seen.insert(weight).second)
      return;
    WeightType type = weight.getType();
    Storage storage = type.getRank() == 1 ? Storage::F32 : matrix.value_or(type.getStorage());
    if (isQuantised(storage) && !isQuantised(type.getStorage()) && choosesExperts(weight))
      storage = Storage::F32;
    SmallVector<Operation *> later;
    for (Operation *user : weight.getUsers())
      if (changesRows(user))
        later.push_back(user);
    for (Operation *user : later)
      convert(cast<TypedValue<WeightType>>(user->getResult(0)), matrix, seen);
    auto isConverted = [](OpOperand &use) { return !changesRows(use.getOwner()); };
    if (storage == type.getStorage() || llvm::none_of(weight.getUses(), isConverted))
      return;
    OpBuilder builder(weight.getContext());
    builder.setInsertionPointAfterValue(weight);
    auto converted = WeightConvertOp::create(builder, weight.getLoc(),
                                             weight.getType().withStorage(storage), weight);
    weight.replaceUsesWithIf(converted.getResult(), [&](OpOperand &use) {
      return use.getOwner() != converted && isConverted(use);
    });
    retype(converted.getResult());
  }

  // Weight operations between the conversion and its reader keep the storage of their input.
  static void retype(Value weight) {
    for (Operation *user : weight.getUsers()) {
      if (!isa<WeightDeinterleaveOp, WeightConcatOp, WeightSliceOp, WeightReshapeOp>(user))
        continue;
      auto result = cast<TypedValue<WeightType>>(user->getResult(0));
      result.setType(result.getType().withStorage(cast<WeightType>(weight.getType()).getStorage()));
      retype(result);
    }
  }
};

} // namespace
} // namespace tenon
