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
    unsigned requantised = 0;
    getOperation().walk([&](WeightOp op) {
      WeightType type = op.getResult().getType();
      Storage storage = type.getRank() == 1 ? Storage::F32 : matrix.value_or(type.getStorage());
      if (storage == type.getStorage())
        return;
      requantised += isQuantised(storage) && isQuantised(type.getStorage());
      OpBuilder builder(op->getContext());
      builder.setInsertionPointAfter(op);
      auto convert =
          WeightConvertOp::create(builder, op.getLoc(), type.withStorage(storage), op.getResult());
      op.getResult().replaceAllUsesExcept(convert.getResult(), convert);
      retype(convert.getResult());
    });
    if (requantised)
      getOperation().emitWarning()
          << requantised << " tensors are quantised already and are quantised again to "
          << precision;
  }

  // Weight operations between the conversion and its reader keep the storage of their input.
  static void retype(Value weight) {
    for (Operation *user : weight.getUsers()) {
      if (!isa<WeightSliceOp, WeightDeinterleaveOp, WeightConcatOp>(user))
        continue;
      auto result = cast<TypedValue<WeightType>>(user->getResult(0));
      result.setType(result.getType().withStorage(cast<WeightType>(weight.getType()).getStorage()));
      retype(result);
    }
  }
};

} // namespace
} // namespace tenon
