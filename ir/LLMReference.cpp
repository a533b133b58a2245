// The meaning of the llm operations in plain MLIR, in the order of LLMOps.td. Attention and the
// cache are in LLMReferenceAttention.cpp.
#include "ir/LLM.h"
#include "ir/ReferenceBuilder.h"

using namespace mlir;

namespace tenon {

LogicalResult decomposeBlock(Block &block, OpBuilder &builder, ReferenceMapping &mapping) {
  for (Operation &op : block.without_terminator()) {
    if (op.getNumResults() &&
        llvm::all_of(op.getResults(), [&](Value v) { return mapping.contains(v); }))
      continue;
    if (auto fused = dyn_cast<llm::FusedOp>(op)) {
      Block &body = fused.getBody().front();
      if (failed(decomposeBlock(body, builder, mapping)))
        return failure();
      for (auto [result, yielded] :
           llvm::zip(fused.getResults(), body.getTerminator()->getOperands()))
        mapping.mapAs(result, yielded);
      continue;
    }
    auto reference = dyn_cast<ReferenceOpInterface>(op);
    if (!reference)
      return op.emitOpError() << "has no reference decomposition";
    for (Value operand : op.getOperands())
      if (!mapping.contains(operand))
        return op.emitOpError() << "reads a value that has no reference decomposition";
    if (failed(reference.decompose(builder, mapping)))
      return failure();
  }
  return success();
}

namespace llm {

//===----------------------------------------------------------------------===//
// Embedding, norms, linear
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value ids = mapping.lookupBatch(getBatch()).ids, table = mapping.lookup(getTable());
  Value out = e.empty({e.rowsOf(ids), e.size(getColumns(getResult()))});
  mapping.map(getResult(), e.generic("tc: t -> tc", {ids}, out, [&](ValueRange v) {
    Value row = e.create<arith::IndexCastOp>(builder.getIndexType(), v[0]);
    return e.at(table, {row, e.loop(1)});
  }));
  return success();
}

LogicalResult PositionEmbeddingOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value positions = mapping.lookupBatch(getBatch()).positions, table = mapping.lookup(getTable());
  Value out = e.empty({e.rowsOf(positions), e.size(getColumns(getResult()))});
  mapping.map(getResult(), e.generic("tc: t -> tc", {positions}, out, [&](ValueRange v) {
    Value position = e.create<arith::IndexCastOp>(builder.getIndexType(), v[0]);
    return e.at(table, {e.add(position, e.index(getOffset())), e.loop(1)});
  }));
  return success();
}

LogicalResult TypeEmbeddingOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value types = mapping.lookupBatch(getBatch()).types, table = mapping.lookup(getTable());
  Value out = e.empty({e.rowsOf(types), e.size(getColumns(getResult()))});
  mapping.map(getResult(), e.generic("tc: t -> tc", {types}, out, [&](ValueRange v) {
    Value row = e.create<arith::IndexCastOp>(builder.getIndexType(), v[0]);
    return e.at(table, {row, e.loop(1)});
  }));
  return success();
}

LogicalResult RMSNormOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  int64_t heads = getHeads();
  Value x = e.splitColumns(mapping.lookup(getInput()), {heads, getHeadDim()});
  Value weight = mapping.lookup(getWeight());
  Value squares = e.generic("thi: thi -> th", {x}, e.filled(0, {e.rowsOf(x), e.size(heads)}),
                            [&](ValueRange v) { return e.mulAdd(v[1], v[0], v[0]); });
  double width = getHeadDim(), eps = getEps().convertToDouble(),
         offset = getOffset().convertToDouble();
  Value normed = e.generic("thi: thi, th, i -> thi", {x, squares, weight}, e.empty(e.shapeOf(x)),
                           [&](ValueRange v) {
                             Value mean = e.div(v[1], e.f32(width));
                             Value root = e.create<math::SqrtOp>(e.add(mean, e.f32(eps)));
                             Value factor = offset != 0 ? e.add(v[2], e.f32(offset)) : v[2];
                             return e.mul(e.mul(v[0], e.div(e.f32(1), root)), factor);
                           });
  mapping.map(getResult(), e.joinColumns(normed));
  return success();
}

LogicalResult LayerNormOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value x = mapping.lookup(getInput()), weight = mapping.lookup(getWeight());
  double width = getColumns(getInput()), eps = getEps().convertToDouble();
  ReferenceBuilder::Shape rows{e.rowsOf(x)};
  Value sums = e.generic("ti: ti -> t", {x}, e.filled(0, rows),
                         [&](ValueRange v) { return e.accumulate(v[1], v[0]); });
  Value centred = e.generic("ti: ti, t -> ti", {x, sums}, e.empty(e.shapeOf(x)),
                            [&](ValueRange v) { return e.sub(v[0], e.div(v[1], e.f32(width))); });
  Value squares = e.generic("ti: ti -> t", {centred}, e.filled(0, rows),
                            [&](ValueRange v) { return e.mulAdd(v[1], v[0], v[0]); });
  Value normed = e.generic("ti: ti, t, i -> ti", {centred, squares, weight}, e.empty(e.shapeOf(x)),
                           [&](ValueRange v) {
                             Value variance = e.div(v[1], e.f32(width));
                             Value root = e.create<math::SqrtOp>(e.add(variance, e.f32(eps)));
                             return e.mul(e.mul(v[0], e.div(e.f32(1), root)), v[2]);
                           });
  if (getBias())
    normed = e.generic("ti: ti, i -> ti", {normed, mapping.lookup(getBias())},
                       e.empty(e.shapeOf(x)), [&](ValueRange v) { return e.add(v[0], v[1]); });
  mapping.map(getResult(), normed);
  return success();
}

// The loop over tokens is inside the one over outputs: a row of the weight is read once from
// memory.
LogicalResult LinearOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value x = mapping.lookup(getInput()), weight = mapping.lookup(getWeight());
  ReferenceBuilder::Shape shape{e.rowsOf(x), e.size(getColumns(getResult()))};
  Value initial = getBias() ? e.generic("tn: n -> tn", {mapping.lookup(getBias())}, e.empty(shape),
                                        [](ValueRange v) { return v[0]; })
                            : e.filled(0, shape);
  mapping.map(getResult(), e.generic("ntk: tk, nk -> tn", {x, weight}, initial,
                                     [&](ValueRange v) { return e.mulAdd(v[2], v[0], v[1]); }));
  return success();
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

LogicalResult RopeAnglesOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  const ReferenceBatch &batch = mapping.lookupBatch(getBatch());
  Value frequencies = mapping.lookup(getFrequencies());
  int64_t pairs = getColumns(getResult()) / 2;
  Type f64 = builder.getF64Type();
  bool isDynamic = !getDynamic().isZero();

  // The frequency of pair i for token t.
  auto getFrequency = [&](Value t, Value i) -> Value {
    if (!getOriginal())
      return e.at(frequencies, {i});
    Value length = e.indexAt(batch.lengths, e.indexAt(batch.sequenceOf, t));
    Value original = e.index(getOriginal());
    if (!isDynamic) {
      Value isLonger = e.create<arith::CmpIOp>(arith::CmpIPredicate::sgt, length, original);
      Value row = e.create<arith::SelectOp>(isLonger, e.index(1), e.index(0));
      return e.at(frequencies, {row, i});
    }
    auto number = [&](Value index) -> Value {
      Value integer = e.create<arith::IndexCastOp>(builder.getI64Type(), index);
      return e.create<arith::SIToFPOp>(f64, integer);
    };
    double factor = getDynamic().convertToDouble();
    Value counted = number(e.create<arith::MaxSIOp>(length, original));
    Value stretch = e.add(e.mul(counted, e.constant(factor / double(getOriginal()), f64)),
                          e.constant(1 - factor, f64));
    Value exponent = e.mul(number(i), e.constant(-1 / double(pairs - 1), f64));
    return e.mul(e.at(frequencies, {i}), e.create<math::PowFOp>(stretch, exponent));
  };
  auto table = [&](function_ref<Value(Value)> function) {
    return e.generic("ti: t -> ti", {batch.positions},
                     e.empty({e.rowsOf(batch.positions), e.size(pairs)}), [&](ValueRange v) {
                       Value angle = e.mul(e.create<arith::SIToFPOp>(f64, v[0]),
                                           getFrequency(e.loop(0), e.loop(1)));
                       Value scaled =
                           e.mul(function(angle), e.constant(getFactor().convertToDouble(), f64));
                       return e.toFloat(scaled, builder.getF32Type());
                     });
  };
  Value cos = table([&](Value angle) { return e.create<math::CosOp>(angle); });
  Value sin = table([&](Value angle) { return e.create<math::SinOp>(angle); });
  Value out = e.empty({e.rowsOf(batch.positions), e.size(2 * pairs)});
  mapping.map(getResult(), e.put(sin, e.put(cos, out, 0), pairs));
  return success();
}

// Elements a and b of a pair lie `dim / 2` apart (half) or side by side (interleaved).
LogicalResult RopeOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value angles = mapping.lookup(getAngles());
  Value x = e.splitColumns(mapping.lookup(getInput()), {int64_t(getHeads()), getHeadDim()});
  int64_t pairs = getColumns(getAngles()) / 2, begin = getFirst();
  bool half = getStyle() == RopeStyle::half;
  int64_t partner = begin + (half ? pairs : 1), stride = half ? 1 : 2;

  Value cos = e.take(angles, 0, pairs), sin = e.take(angles, pairs, pairs);
  Value a = e.take(x, begin, pairs, stride), b = e.take(x, partner, pairs, stride);
  auto combine = [&](function_ref<Value(ValueRange)> body) {
    return e.generic("thi: thi, thi, ti, ti -> thi", {a, b, cos, sin}, e.empty(e.shapeOf(a)), body);
  };
  Value first = combine([&](ValueRange v) { return e.sub(e.mul(v[0], v[2]), e.mul(v[1], v[3])); });
  Value second = combine([&](ValueRange v) { return e.add(e.mul(v[1], v[2]), e.mul(v[0], v[3])); });
  Value rotated = e.put(second, e.put(first, x, begin, stride), partner, stride);
  mapping.map(getResult(), e.joinColumns(rotated));
  return success();
}

LogicalResult JoinHeadsOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  int64_t heads = getHeads(), left = getColumns(getLhs()) / heads,
          right = getColumns(getRhs()) / heads;
  Value lhs = e.splitColumns(mapping.lookup(getLhs()), {heads, left});
  Value rhs = e.splitColumns(mapping.lookup(getRhs()), {heads, right});
  Value out = e.empty({e.rowsOf(lhs), e.size(heads), e.size(left + right)});
  mapping.map(getResult(), e.joinColumns(e.put(rhs, e.put(lhs, out, 0), left)));
  return success();
}

LogicalResult SliceHeadsOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value x = e.splitColumns(mapping.lookup(getInput()), {int64_t(getHeads()), getHeadDim()});
  Value part = e.take(x, getBegin(), getEnd() - getBegin());
  Value out = e.empty(e.shapeOf(part));
  mapping.map(getResult(), e.joinColumns(e.generic("thd: thd -> thd", {part}, out,
                                                   [](ValueRange v) { return v[0]; })));
  return success();
}

LogicalResult RepeatKVOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  int64_t heads = getHeads(), dim = getColumns(getInput()) / heads;
  Value x = e.splitColumns(mapping.lookup(getInput()), {heads, dim});
  Value out = e.empty({e.rowsOf(x), e.size(heads), e.size(getTimes()), e.size(dim)});
  mapping.map(getResult(), e.joinColumns(e.generic("thrd: thd -> thrd", {x}, out,
                                                   [](ValueRange v) { return v[0]; })));
  return success();
}

//===----------------------------------------------------------------------===//
// Elementwise and row selection
//===----------------------------------------------------------------------===//

static Value sigmoid(ReferenceBuilder &e, Value x) {
  Value negative = e.create<arith::NegFOp>(x);
  return e.div(e.f32(1), e.add(e.f32(1), e.exp(negative)));
}

static Value activate(ReferenceBuilder &e, ActivationKind kind, Value x) {
  switch (kind) {
  case ActivationKind::silu:
    return e.mul(x, sigmoid(e, x));
  case ActivationKind::gelu: { // x / 2 (1 + erf(x / sqrt 2))
    Value erf = e.create<math::ErfOp>(e.mul(x, e.f32(0.70710678118654752)));
    return e.mul(e.mul(x, e.f32(0.5)), e.add(e.f32(1), erf));
  }
  case ActivationKind::gelu_tanh: { // x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
    Value cubic = e.mul(e.mul(e.mul(x, x), x), e.f32(0.044715));
    Value tanh = e.create<math::TanhOp>(e.mul(e.add(x, cubic), e.f32(0.79788456080286536)));
    return e.mul(e.mul(x, e.f32(0.5)), e.add(e.f32(1), tanh));
  }
  case ActivationKind::quick_gelu:
    return e.mul(x, sigmoid(e, e.mul(x, e.f32(1.702))));
  case ActivationKind::relu:
    return e.create<arith::MaximumFOp>(x, e.f32(0));
  case ActivationKind::sigmoid:
    return sigmoid(e, x);
  }
  llvm_unreachable("all kinds are handled");
}

LogicalResult ActivationOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value x = mapping.lookup(getInput());
  mapping.map(getResult(), e.generic("tc: tc -> tc", {x}, e.empty(e.shapeOf(x)),
                                     [&](ValueRange v) { return activate(e, getKind(), v[0]); }));
  return success();
}

LogicalResult AddOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value lhs = mapping.lookup(getLhs()), rhs = mapping.lookup(getRhs());
  mapping.map(getResult(), e.generic("tc: tc, tc -> tc", {lhs, rhs}, e.empty(e.shapeOf(lhs)),
                                     [&](ValueRange v) { return e.add(v[0], v[1]); }));
  return success();
}

LogicalResult MulOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value lhs = mapping.lookup(getLhs()), rhs = mapping.lookup(getRhs());
  mapping.map(getResult(), e.generic("tc: tc, tc -> tc", {lhs, rhs}, e.empty(e.shapeOf(lhs)),
                                     [&](ValueRange v) { return e.mul(v[0], v[1]); }));
  return success();
}

LogicalResult ScaleOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value x = mapping.lookup(getInput()), factor = e.f32(getFactor().convertToDouble());
  mapping.map(getResult(), e.generic("tc: tc -> tc", {x}, e.empty(e.shapeOf(x)),
                                     [&](ValueRange v) { return e.mul(v[0], factor); }));
  return success();
}

LogicalResult ShiftOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value x = mapping.lookup(getInput()), value = e.f32(getValue().convertToDouble());
  mapping.map(getResult(), e.generic("tc: tc -> tc", {x}, e.empty(e.shapeOf(x)),
                                     [&](ValueRange v) { return e.add(v[0], value); }));
  return success();
}

LogicalResult ClampOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value x = mapping.lookup(getInput());
  Value low = e.f32(getLow().convertToDouble()), high = e.f32(getHigh().convertToDouble());
  mapping.map(getResult(), e.generic("tc: tc -> tc", {x}, e.empty(e.shapeOf(x)), [&](ValueRange v) {
    return e.create<arith::MinimumFOp>(e.create<arith::MaximumFOp>(v[0], low), high);
  }));
  return success();
}

LogicalResult SoftcapOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value x = mapping.lookup(getInput());
  double cap = getCap().convertToDouble();
  mapping.map(getResult(), e.generic("tc: tc -> tc", {x}, e.empty(e.shapeOf(x)),
                                     [&](ValueRange v) { return e.softcap(v[0], cap); }));
  return success();
}

LogicalResult SliceOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  mapping.map(getResult(), e.take(mapping.lookup(getInput()), getBegin(), getEnd() - getBegin()));
  return success();
}

LogicalResult GatherRowsOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value x = mapping.lookup(getInput()), rows = mapping.lookupBatch(getBatch()).scoredRows;
  Value out = e.empty({e.rowsOf(rows), e.size(getColumns(getResult()))});
  mapping.map(getResult(), e.generic("rc: r -> rc", {rows}, out, [&](ValueRange v) {
    Value row = e.create<arith::IndexCastOp>(builder.getIndexType(), v[0]);
    return e.at(x, {row, e.loop(1)});
  }));
  return success();
}

} // namespace llm
} // namespace tenon
