// The qk dialect: what qk.norm_rope means, and how an architecture file builds it.
#include "Qk.h"
#include "ir/ReferenceBuilder.h"

#include "QkDialect.cpp.inc"
#define GET_OP_CLASSES
#include "QkOps.cpp.inc"

using namespace mlir;
using namespace tenon;
using namespace tenon::llm;

namespace qk {

void QkDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "QkOps.cpp.inc"
      >();
}

LogicalResult NormRopeOp::verify() {
  int64_t columns = getColumns(getInput()), rotated = getColumns(getAngles());
  if (columns % getHeads())
    return emitOpError() << "heads (" << getHeads() << ") do not divide " << columns << " columns";
  if (rotated % 2 || rotated > getHeadDim())
    return emitOpError() << "angles for " << rotated << " elements do not fit a head of "
                         << getHeadDim();
  if (getWeight().getType().getShape() != ArrayRef(getHeadDim()))
    return emitOpError() << "weight must be a vector of " << getHeadDim() << " elements, got "
                         << getWeight().getType();
  return success();
}

// x [t, h, i] is normed over i; then elements a and b of each pair are turned by the token's angle.
LogicalResult NormRopeOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  int64_t heads = getHeads(), dim = getHeadDim(), pairs = getColumns(getAngles()) / 2;
  Value x = e.splitColumns(mapping.lookup(getInput()), {heads, dim});
  Value squares = e.generic("thi: thi -> th", {x}, e.filled(0, {e.rowsOf(x), e.size(heads)}),
                            [&](ValueRange v) { return e.mulAdd(v[1], v[0], v[0]); });
  Value normed = e.generic("thi: thi, th, i -> thi", {x, squares, mapping.lookup(getWeight())},
                           e.empty(e.shapeOf(x)), [&](ValueRange v) {
                             Value mean =
                                 e.add(e.div(v[1], e.f32(dim)), e.f32(getEps().convertToDouble()));
                             return e.mul(e.div(v[0], e.create<math::SqrtOp>(mean)), v[2]);
                           });

  bool half = getStyle() == RopeStyle::half;
  int64_t distance = half ? pairs : 1, stride = half ? 1 : 2;
  Value a = e.take(normed, 0, pairs, stride), b = e.take(normed, distance, pairs, stride);
  Value angles = mapping.lookup(getAngles());
  Value cos = e.take(angles, 0, pairs), sin = e.take(angles, pairs, pairs);
  auto combine = [&](function_ref<Value(ValueRange)> body) {
    return e.generic("thi: thi, thi, ti, ti -> thi", {a, b, cos, sin}, e.empty(e.shapeOf(a)), body);
  };
  Value first = combine([&](ValueRange v) { return e.sub(e.mul(v[0], v[2]), e.mul(v[1], v[3])); });
  Value second = combine([&](ValueRange v) { return e.add(e.mul(v[1], v[2]), e.mul(v[0], v[3])); });
  Value rotated = e.put(second, e.put(first, normed, 0, stride), distance, stride);
  mapping.map(getResult(), e.joinColumns(rotated));
  return success();
}

// qk.norm_rope: {weight: NAME, eps: E} and the arguments of `rope`, which reads them itself and
// makes the angles
FailureOr<Value> NormRopeOp::buildFromTemplate(TemplateArgs &args) {
  FailureOr<Value> rotated = RopeOp::buildFromTemplate(args);
  if (failed(rotated))
    return failure();
  auto rope = rotated->getDefiningOp<RopeOp>();
  FailureOr<double> eps = args.getNumber("eps");
  FailureOr<Value> weight = args.getWeight("weight", ".weight", {rope.getHeadDim()});
  if (failed(eps) || failed(weight))
    return failure();
  Value result =
      NormRopeOp::create(args.getBuilder(), args.getLoc(), rope.getType(), rope.getInput(), *weight,
                         rope.getAngles(), rope.getHeads(), rope.getStyle(), APFloat(*eps));
  rope.erase();
  return result;
}

std::optional<NormRope> NormRope::match(Value value) {
  if (auto op = value.getDefiningOp<NormRopeOp>())
    return NormRope{op.getInput(),
                    op.getWeight(),
                    op.getAngles(),
                    int64_t(op.getHeads()),
                    op.getHeadDim(),
                    op.getStyle(),
                    op.getEps().convertToDouble(),
                    1};
  auto rope = value.getDefiningOp<RopeOp>();
  auto norm = rope ? rope.getInput().getDefiningOp<RMSNormOp>() : RMSNormOp();
  if (!norm || !norm->hasOneUse() || norm.getHeads() != rope.getHeads() ||
      !norm.getOffset().isZero())
    return std::nullopt;
  return NormRope{norm.getInput(),
                  norm.getWeight(),
                  rope.getAngles(),
                  int64_t(rope.getHeads()),
                  rope.getHeadDim(),
                  rope.getStyle(),
                  norm.getEps().convertToDouble(),
                  2};
}

} // namespace qk
