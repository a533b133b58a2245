// The meaning of the operations of a mixture of experts in plain MLIR, in the order of LLMOps.td.
#include "ir/LLM.h"
#include "ir/ReferenceBuilder.h"

using namespace mlir;

namespace tenon::llm {

LogicalResult HeadLinearOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  WeightType weight = getWeight().getType();
  int64_t heads = weight.getShape()[0];
  Value x = e.splitColumns(mapping.lookup(getInput()), {heads, weight.getColumns()});
  Value out = e.filled(0, {e.rowsOf(x), e.size(heads), e.size(weight.getMatrixRows())});
  mapping.map(getResult(), e.joinColumns(e.generic(
                               "hntk: thk, hnk -> thn", {x, mapping.lookup(getWeight())}, out,
                               [&](ValueRange v) { return e.mulAdd(v[2], v[0], v[1]); })));
  return success();
}

LogicalResult SoftmaxOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value x = mapping.lookup(getInput());
  ReferenceBuilder::Shape rows{e.rowsOf(x)};
  Value largest = e.generic("tc: tc -> t", {x}, e.filled(-INFINITY, rows),
                            [&](ValueRange v) { return e.create<arith::MaximumFOp>(v[1], v[0]); });
  Value powers = e.generic("tc: tc, t -> tc", {x, largest}, e.empty(e.shapeOf(x)),
                           [&](ValueRange v) { return e.exp(e.sub(v[0], v[1])); });
  Value sums = e.generic("tc: tc -> t", {powers}, e.filled(0, rows),
                         [&](ValueRange v) { return e.accumulate(v[1], v[0]); });
  mapping.map(getResult(), e.generic("tc: tc, t -> tc", {powers, sums}, e.empty(e.shapeOf(x)),
                                     [&](ValueRange v) { return e.div(v[0], v[1]); }));
  return success();
}

//===----------------------------------------------------------------------===//
// The largest columns: an element's rank is the number of those that come before it
//===----------------------------------------------------------------------===//

// Whether element a at i comes before b at j: it is larger, or equal and further left.
static Value comesBefore(ReferenceBuilder &e, Value a, Value i, Value b, Value j) {
  Value larger = e.create<arith::CmpFOp>(arith::CmpFPredicate::OGT, a, b);
  Value equal = e.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, a, b);
  Value left = e.create<arith::CmpIOp>(arith::CmpIPredicate::slt, i, j);
  return e.create<arith::OrIOp>(larger, e.create<arith::AndIOp>(equal, left));
}

static Value select(ReferenceBuilder &e, Value condition, Value yes, Value no) {
  return e.create<arith::SelectOp>(condition, yes, no);
}

// The rank of each element of x along its last dimension, as f32.
static Value rank(ReferenceBuilder &e, Value x) {
  bool grouped = cast<RankedTensorType>(x.getType()).getRank() == 3;
  return e.generic(grouped ? "tgij: tgi, tgj -> tgi" : "tij: ti, tj -> ti", {x, x},
                   e.filled(0, e.shapeOf(x)), [&](ValueRange v) {
                     Value i = e.loop(grouped ? 2 : 1), j = e.loop(grouped ? 3 : 2);
                     Value before = comesBefore(e, v[1], j, v[0], i);
                     return e.add(v[2], select(e, before, e.f32(1), e.f32(0)));
                   });
}

// The scores, with -inf in all but the best groups.
static Value maskGroups(ReferenceBuilder &e, Value scores, TopKOp op) {
  int64_t groups = op.getGroups(), size = getColumns(op.getInput()) / groups;
  int64_t judged = op.getGroupScore() == GroupScore::largest ? 1 : 2;
  Value x = e.splitColumns(scores, {groups, size});
  Value sums = e.generic("tgi: tgi, tgi -> tg", {x, rank(e, x)},
                         e.filled(0, {e.rowsOf(x), e.size(groups)}), [&](ValueRange v) {
                           Value counts = e.create<arith::CmpFOp>(arith::CmpFPredicate::OLT, v[1],
                                                                  e.f32(double(judged)));
                           return e.accumulate(v[2], select(e, counts, v[0], e.f32(0)));
                         });
  double top = double(op.getTopGroups());
  Value masked = e.generic(
      "tgi: tgi, tg -> tgi", {x, rank(e, sums)}, e.empty(e.shapeOf(x)), [&](ValueRange v) {
        Value searched = e.create<arith::CmpFOp>(arith::CmpFPredicate::OLT, v[1], e.f32(top));
        return select(e, searched, v[0], e.f32(-INFINITY));
      });
  return e.joinColumns(masked);
}

LogicalResult TopKOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value scores = mapping.lookup(getInput());
  if (getBias())
    scores = e.generic("te: te, e -> te", {scores, mapping.lookup(getBias())},
                       e.empty(e.shapeOf(scores)), [&](ValueRange v) { return e.add(v[0], v[1]); });
  if (getGroups() > 1)
    scores = maskGroups(e, scores, *this);
  Value out = e.filled(0, {e.rowsOf(scores), e.size(getCount())});
  // Column e stands in slot rank(e).
  mapping.map(getResult(), e.generic("tke: te -> tk", {rank(e, scores)}, out, [&](ValueRange v) {
    auto number = [&](int64_t loop) -> Value {
      Value index = e.create<arith::IndexCastOp>(builder.getI32Type(), e.loop(loop));
      return e.create<arith::SIToFPOp>(builder.getF32Type(), index);
    };
    Value here = e.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, v[0], number(1));
    return e.add(v[1], select(e, here, number(2), e.f32(0)));
  }));
  return success();
}

// A column or expert that a row names, of so many; numbers beyond them stand for the nearest one.
static Value toIndex(ReferenceBuilder &e, Value number, int64_t count) {
  Type i32 = IntegerType::get(number.getContext(), 32);
  Value least = e.create<arith::MaxNumFOp>(number, e.f32(0));
  Value bounded = e.create<arith::MinNumFOp>(least, e.f32(double(count - 1)));
  Value integer = e.create<arith::FPToSIOp>(i32, bounded);
  return e.create<arith::IndexCastOp>(IndexType::get(number.getContext()), integer);
}

LogicalResult GatherColumnsOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value x = mapping.lookup(getInput()), indices = mapping.lookup(getIndices());
  int64_t count = getColumns(getInput());
  mapping.map(getResult(),
              e.generic("tk: tk -> tk", {indices}, e.empty(e.shapeOf(indices)), [&](ValueRange v) {
                return e.at(x, {e.loop(0), toIndex(e, v[0], count)});
              }));
  return success();
}

LogicalResult NormaliseOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  Value x = mapping.lookup(getInput());
  Value sums = e.generic("tc: tc -> t", {x}, e.filled(0, {e.rowsOf(x)}),
                         [&](ValueRange v) { return e.accumulate(v[1], v[0]); });
  mapping.map(getResult(), e.generic("tc: tc, t -> tc", {x, sums}, e.empty(e.shapeOf(x)),
                                     [&](ValueRange v) { return e.div(v[0], v[1]); }));
  return success();
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

LogicalResult ExpertLinearOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  WeightType type = getWeight().getType();
  Value x = mapping.lookup(getInput()), choice = mapping.lookup(getChoice()),
        weight = mapping.lookup(getWeight());
  int64_t slots = getSlots(), rows = type.getMatrixRows(), columns = type.getColumns();
  int64_t experts = type.getShape()[0];
  ReferenceBuilder::Shape shape{e.rowsOf(x), e.size(slots), e.size(rows)};
  Value initial = e.filled(0, shape);
  if (getBias()) {
    Value bias = mapping.lookup(getBias());
    initial = e.generic("tsn: ts -> tsn", {choice}, e.empty(shape), [&](ValueRange v) {
      Value first = e.mul(toIndex(e, v[0], experts), e.index(rows));
      return e.at(bias, e.add(first, e.loop(2)));
    });
  }
  Value rowsOfSlots = isShared() ? x : e.splitColumns(x, {slots, columns});
  StringRef notation = isShared() ? "tsnk: ts, tk -> tsn" : "tsnk: ts, tsk -> tsn";
  Value out = e.generic(notation, {choice, rowsOfSlots}, initial, [&](ValueRange v) {
    Value expert = toIndex(e, v[0], experts);
    return e.mulAdd(v[2], v[1], e.at(weight, {expert, e.loop(2), e.loop(3)}));
  });
  mapping.map(getResult(), e.joinColumns(out));
  return success();
}

LogicalResult CombineOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  int64_t slots = getColumns(getWeights()), columns = getColumns(getResult());
  Value x = e.splitColumns(mapping.lookup(getInput()), {slots, columns});
  mapping.map(getResult(), e.generic("tsc: tsc, ts -> tc", {x, mapping.lookup(getWeights())},
                                     e.filled(0, {e.rowsOf(x), e.size(columns)}),
                                     [&](ValueRange v) { return e.mulAdd(v[2], v[0], v[1]); }));
  return success();
}

} // namespace tenon::llm
