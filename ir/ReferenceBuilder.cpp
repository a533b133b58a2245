// The notation that reference decompositions are written in; see ReferenceBuilder.h.
#include "ir/ReferenceBuilder.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace tenon {

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value ReferenceBuilder::constant(double value, Type type) {
  return create<arith::ConstantOp>(builder.getFloatAttr(type, value));
}

Value ReferenceBuilder::toFloat(Value value, Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
  if (from < to)
    return create<arith::ExtFOp>(type, value);
  return from > to ? create<arith::TruncFOp>(type, value) : value;
}

Value ReferenceBuilder::add(Value a, Value b) {
  return a.getType().isIndex() ? Value(create<arith::AddIOp>(a, b)) : create<arith::AddFOp>(a, b);
}

Value ReferenceBuilder::sub(Value a, Value b) {
  return a.getType().isIndex() ? Value(create<arith::SubIOp>(a, b)) : create<arith::SubFOp>(a, b);
}

Value ReferenceBuilder::mul(Value a, Value b) {
  return a.getType().isIndex() ? Value(create<arith::MulIOp>(a, b)) : create<arith::MulFOp>(a, b);
}

Value ReferenceBuilder::div(Value a, Value b) { return create<arith::DivFOp>(a, b); }

// Lets LLVM keep partial sums in vectors and use fused multiply-add.
static constexpr arith::FastMathFlags freeOrder =
    arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;

Value ReferenceBuilder::softcap(Value a, double cap) {
  return mul(create<math::TanhOp>(div(a, f32(cap))), f32(cap));
}

Value ReferenceBuilder::accumulate(Value sum, Value a) {
  return create<arith::AddFOp>(sum, a, freeOrder);
}

Value ReferenceBuilder::mulAdd(Value sum, Value a, Value b) {
  return accumulate(sum, create<arith::MulFOp>(a, b, freeOrder));
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Value ReferenceBuilder::empty(const Shape &shape, Type type) {
  return create<tensor::EmptyOp>(shape, type);
}

Value ReferenceBuilder::filled(double value, const Shape &shape) {
  return create<linalg::FillOp>(f32(value), empty(shape)).getResult(0);
}

Value ReferenceBuilder::indexAt(Value tensor, ValueRange indices) {
  return create<arith::IndexCastOp>(builder.getIndexType(), at(tensor, indices));
}

// {0}, ..., {kept, kept + 1, ...}
static SmallVector<ReassociationIndices> groupFrom(int64_t kept, int64_t rank) {
  SmallVector<ReassociationIndices> groups(kept + 1);
  for (int64_t i = 0; i < rank; ++i)
    groups[std::min(i, kept)].push_back(i);
  return groups;
}

Value ReferenceBuilder::splitColumns(Value rows, ArrayRef<int64_t> extents) {
  auto type = cast<RankedTensorType>(rows.getType());
  SmallVector<int64_t> shape{type.getDimSize(0)};
  shape.append(extents.begin(), extents.end());
  Shape sizes = getAsIndexOpFoldResult(builder.getContext(), shape);
  sizes[0] = rowsOf(rows);
  return create<tensor::ExpandShapeOp>(RankedTensorType::get(shape, type.getElementType()), rows,
                                       groupFrom(1, shape.size()), sizes);
}

Value ReferenceBuilder::joinColumns(Value tensor, int64_t kept) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  return create<tensor::CollapseShapeOp>(tensor, groupFrom(kept, rank));
}

ReferenceBuilder::Shape ReferenceBuilder::withLast(Value tensor, int64_t last) {
  Shape shape = shapeOf(tensor);
  shape.back() = size(last);
  return shape;
}

Value ReferenceBuilder::take(Value tensor, int64_t begin, int64_t count, int64_t stride) {
  Shape sizes = withLast(tensor, count);
  Shape offsets(sizes.size(), size(0)), strides(sizes.size(), size(1));
  offsets.back() = size(begin);
  strides.back() = size(stride);
  return create<tensor::ExtractSliceOp>(tensor, offsets, sizes, strides);
}

Value ReferenceBuilder::put(Value part, Value tensor, int64_t begin, int64_t stride) {
  Shape sizes = shapeOf(part);
  Shape offsets(sizes.size(), size(0)), strides(sizes.size(), size(1));
  offsets.back() = size(begin);
  strides.back() = size(stride);
  return create<tensor::InsertSliceOp>(part, tensor, offsets, sizes, strides);
}

Value ReferenceBuilder::takeRow(Value tensor, Value i) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Shape sizes = shapeOf(tensor);
  sizes.front() = size(1);
  Shape offsets(sizes.size(), size(0)), strides(sizes.size(), size(1));
  offsets.front() = i;
  auto row = RankedTensorType::get(type.getShape().drop_front(), type.getElementType());
  return create<tensor::ExtractSliceOp>(row, tensor, offsets, sizes, strides);
}

Value ReferenceBuilder::putRow(Value row, Value tensor, Value i) {
  Shape sizes = shapeOf(tensor);
  sizes.front() = size(1);
  Shape offsets(sizes.size(), size(0)), strides(sizes.size(), size(1));
  offsets.front() = i;
  return create<tensor::InsertSliceOp>(row, tensor, offsets, sizes, strides);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

Value ReferenceBuilder::generic(StringRef notation, ValueRange inputs, Value output,
                                function_ref<Value(ValueRange)> body) {
  auto [loops, accesses] = notation.split(": ");
  auto [sources, target] = accesses.split("-> ");
  auto mapOf = [&, loops = loops](StringRef dims) {
    SmallVector<unsigned> positions;
    for (char dim : dims.trim())
      positions.push_back(loops.find(dim));
    return AffineMap::getMultiDimMapWithTargets(loops.size(), positions, builder.getContext());
  };
  SmallVector<AffineMap> maps;
  SmallVector<StringRef> parts;
  sources.split(parts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef part : parts)
    if (!part.trim().empty())
      maps.push_back(mapOf(part));
  maps.push_back(mapOf(target));
  assert(maps.size() == inputs.size() + 1 && "one access for each input");

  SmallVector<utils::IteratorType> iterators;
  for (char dim : loops)
    iterators.push_back(target.contains(dim) ? utils::IteratorType::parallel
                                             : utils::IteratorType::reduction);
  return create<linalg::GenericOp>(TypeRange{output.getType()}, inputs, ValueRange{output}, maps,
                                   iterators,
                                   [&](OpBuilder &, Location, ValueRange elements) {
                                     create<linalg::YieldOp>(body(elements));
                                   })
      .getResult(0);
}

ValueRange ReferenceBuilder::forEach(OpFoldResult count, ValueRange initial,
                                     function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  Value end = getValueOrCreateConstantIndexOp(builder, loc, count);
  return create<scf::ForOp>(index(0), end, index(1), initial,
                            [&](OpBuilder &, Location, Value i, ValueRange values) {
                              create<scf::YieldOp>(body(i, values));
                            })
      .getResults();
}

} // namespace tenon
