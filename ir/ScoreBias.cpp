// The tables behind `llm.alibi` (arXiv:2108.12409) and `llm.relative_bias` (arXiv:1910.10683): a
// row for each head, an entry for each distance or position.
#include "ir/LLM.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;

namespace tenon::llm {

//===----------------------------------------------------------------------===//
// llm.alibi
//===----------------------------------------------------------------------===//

LogicalResult AlibiOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                        Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(WeightType::get(
      context,
      {std::max<int64_t>(adaptor.getHeads(), 1), std::max<int64_t>(adaptor.getLength(), 1)},
      Storage::F32));
  return success();
}

LogicalResult AlibiOp::verify() {
  if (!getLargest().isFinite() || !(getLargest().convertToDouble() > 0))
    return emitOpError() << "largest must be a positive number";
  if (!getScale().isFinite() || !(getScale().convertToDouble() > 0))
    return emitOpError() << "scale must be a positive number";
  return success();
}

// Powers of two have a geometric sequence; other numbers have that of the power below, and then
// every other slope of the power above.
static double getSlope(int64_t head, int64_t heads, double largest) {
  int64_t power = int64_t(llvm::bit_floor(uint64_t(heads)));
  double step = largest / double(power);
  return head < power ? std::exp2(-step * double(head + 1))
                      : std::exp2(-step / 2 * double(2 * (head - power) + 1));
}

static float toBfloat(double value) { return bfloatToFloat(floatToBfloat(float(value))); }

SmallVector<float> AlibiOp::evaluate(int64_t head) {
  double slope = getSlope(head, getHeads(), getLargest().convertToDouble());
  double scale = getScale().convertToDouble();
  SmallVector<float> row(getLength());
  for (auto [n, entry] : llvm::enumerate(row)) {
    double position = double(int64_t(n) - int64_t(getOrigin()));
    double product =
        getBfloat16() ? toBfloat(toBfloat(slope) * toBfloat(position)) : slope * position;
    entry = float(scale * product);
  }
  return row;
}

//===----------------------------------------------------------------------===//
// llm.relative_bias
//===----------------------------------------------------------------------===//

LogicalResult RelativeBiasOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                               Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = cast<WeightType>(adaptor.getInput().getType());
  if (type.getRank() != 2 || type.getLayout() != Layout::plain)
    return emitOptionalError(
        loc, "'llm.relative_bias' op needs a plain matrix of a row for each bucket, got ", type);
  int64_t distances = adaptor.getMaxDistance() * (adaptor.getBidirectional() ? 2 : 1) + 1;
  types.push_back(WeightType::get(context, {type.getColumns(), distances}, Storage::F32));
  return success();
}

LogicalResult RelativeBiasOp::verify() {
  // Half of the buckets of each direction hold one distance each.
  int64_t buckets = getInput().getType().getRows(),
          each = getBidirectional() ? buckets / 2 : buckets;
  if (each < 2 || each % 2 || (getBidirectional() && buckets % 2))
    return emitOpError() << "cannot halve " << buckets << " buckets"
                         << (getBidirectional() ? " for each direction" : "");
  if (int64_t(getMaxDistance()) <= each / 2)
    return emitOpError() << "max_distance (" << getMaxDistance() << ") must be more than "
                         << each / 2 << ", the distances with a bucket of their own";
  return success();
}

int64_t RelativeBiasOp::getBucket(int64_t distance) {
  int64_t buckets = getInput().getType().getRows(), first = 0;
  if (getBidirectional()) {
    buckets /= 2;
    first = distance > 0 ? buckets : 0;
    distance = std::abs(distance);
  } else {
    distance = -std::min<int64_t>(distance, 0);
  }
  int64_t exact = buckets / 2;
  if (distance < exact)
    return first + distance;
  // In single precision, as checkpoints were trained: it decides at the edges of buckets.
  float octaves = std::log(float(distance) / float(exact)) /
                  float(std::log(double(getMaxDistance()) / double(exact)));
  int64_t wide = int64_t(octaves * float(buckets - exact));
  return first + std::min(exact + wide, buckets - 1);
}

} // namespace tenon::llm
