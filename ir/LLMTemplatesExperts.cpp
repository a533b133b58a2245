// How architecture files build the operations of a mixture of experts, and parts of tensors.
#include "ir/TemplateParts.h"

using namespace mlir;

namespace tenon::llm {

FailureOr<TensorPart> TensorPart::read(TemplateArgs &args, int64_t out, int64_t stack) {
  TENON_READ(transposed, args.getFlag("transposed", false));
  TENON_READ(rows, args.getInteger("rows", out));
  TENON_READ(first, args.getInteger("first", 0));
  TENON_READ(every, args.getInteger("every", rows));
  if (out < 1 || rows < 1 || every < 1 || rows % every || out % (rows / every))
    return args.error("", Twine(out) + " outputs are not an equal part of each " + Twine(every) +
                              " of " + Twine(rows) + " rows");
  int64_t count = out / (rows / every);
  if (first < 0 || first > every - count)
    return args.error("first", Twine(count) + " rows from row " + Twine(first) +
                                   " on are not within " + Twine(every));
  if (stack < 1 || rows % stack)
    return args.error("stack", "must divide " + Twine(rows) + " rows, got " + Twine(stack));
  return TensorPart{rows, first, count, every, transposed, stack};
}

SmallVector<int64_t> TensorPart::getShape(int64_t in) const {
  SmallVector<int64_t> shape = {rows / stack, in};
  if (transposed)
    std::swap(shape[0], shape[1]);
  if (stack > 1)
    shape.insert(shape.begin(), stack);
  return shape;
}

Value TensorPart::takeMatrix(TemplateArgs &args, Value tensor) const {
  OpBuilder &builder = args.getBuilder();
  auto type = cast<WeightType>(tensor.getType());
  if (transposed) {
    // Groups of columns do not stay together.
    if (isQuantised(type.getStorage()))
      tensor =
          WeightConvertOp::create(builder, args.getLoc(), type.withStorage(Storage::F32), tensor);
    tensor = WeightTransposeOp::create(builder, args.getLoc(), tensor);
    type = cast<WeightType>(tensor.getType());
  }
  if (stack > 1)
    tensor = WeightReshapeOp::create(
        builder, args.getLoc(),
        WeightType::get(builder.getContext(), {rows, type.getColumns()}, type.getStorage()),
        tensor);
  return take(args, tensor);
}

Value TensorPart::take(TemplateArgs &args, Value tensor) const {
  if (count == every)
    return tensor;
  OpBuilder &builder = args.getBuilder();
  auto type = cast<WeightType>(tensor.getType());
  // The biases of all experts are one vector: groups are then those of each.
  bool isWhole = every == rows && (type.getRank() > 1 || type.getColumns() == rows);
  IntegerAttr group = isWhole ? IntegerAttr() : builder.getI64IntegerAttr(every);
  return WeightSliceOp::create(builder, args.getLoc(), tensor, builder.getI64IntegerAttr(first),
                               builder.getI64IntegerAttr(first + count), group);
}

// softmax: {}
FailureOr<Value> SoftmaxOp::buildFromTemplate(TemplateArgs &args) {
  return SoftmaxOp::create(args.getBuilder(), args.getLoc(), args.getStream()).getResult();
}

// normalise: {}
FailureOr<Value> NormaliseOp::buildFromTemplate(TemplateArgs &args) {
  return NormaliseOp::create(args.getBuilder(), args.getLoc(), args.getStream()).getResult();
}

// top_k: {count: K, bias: NAME, groups: 1, top_groups: groups, by: largest}
FailureOr<Value> TopKOp::buildFromTemplate(TemplateArgs &args) {
  Value stream = args.getStream();
  int64_t columns = getColumns(stream);
  TENON_READ(count, args.getInteger("count"));
  TENON_READ(groups, args.getInteger("groups", 1));
  TENON_READ(top, args.getInteger("top_groups", groups));
  TENON_READ(by, args.getString("by", "largest"));
  std::optional<GroupScore> score = symbolizeGroupScore(by);
  if (!score)
    return args.error("by", "unknown score '" + by + "'; accepted: largest, largest_two");
  if (groups < 1 || columns % groups)
    return args.error("groups",
                      Twine(groups) + " groups do not divide " + Twine(columns) + " columns");
  if (top < 1 || top > groups)
    return args.error("top_groups", "must be from 1 to " + Twine(groups) + ", got " + Twine(top));
  if (groups > 1 && *score == GroupScore::largest_two && columns / groups < 2)
    return args.error("groups", "groups of one column have no two largest");
  if (count < 1 || count > columns / groups * top)
    return args.error("count", "must be from 1 to " + Twine(columns / groups * top) + ", got " +
                                   Twine(count));
  Value bias;
  if (args.has("bias")) {
    TENON_READ(vector, args.getWeight("bias", "", {columns}));
    bias = vector;
  }
  return TopKOp::create(args.getBuilder(), args.getLoc(), stream, bias, count, groups, top, *score)
      .getResult();
}

// gather_columns: {at: [...]}
FailureOr<Value> GatherColumnsOp::buildFromTemplate(TemplateArgs &args) {
  Value stream = args.getStream();
  TENON_READ(indices, args.getBranch("at"));
  return GatherColumnsOp::create(args.getBuilder(), args.getLoc(), indices.getType(), stream,
                                 indices)
      .getResult();
}

// expert_linear: {weight: NAME, bias: NAME, experts: E, out: N, choice: [...], split: false,
//                 transposed: false, rows: out, first: 0, every: rows}
FailureOr<Value> ExpertLinearOp::buildFromTemplate(TemplateArgs &args) {
  Value stream = args.getStream();
  TENON_READ(experts, args.getInteger("experts"));
  TENON_READ(out, args.getInteger("out"));
  TENON_READ(choice, args.getBranch("choice"));
  TENON_READ(split, args.getFlag("split", false));
  TENON_READ(part, TensorPart::read(args, out));
  int64_t slots = getColumns(choice), in = getColumns(stream);
  if (experts < slots)
    return args.error("experts", Twine(slots) + " of " + Twine(experts) + " cannot be chosen");
  if (split && in % slots)
    return args.error("split", Twine(in) + " columns are not " + Twine(slots) + " equal parts");
  if (split)
    in /= slots;
  TENON_READ(stack, args.getStack("weight", ".weight", experts, part.getShape(in)));
  Value weight = part.takeMatrix(args, stack);
  Value bias;
  if (args.has("bias")) {
    TENON_READ(stacked, args.getStack("bias", ".bias", experts, {part.rows}));
    auto type = cast<WeightType>(stacked.getType());
    if (isQuantised(type.getStorage()))
      return args.error("bias", "is stored in groups of columns");
    bias = stacked;
    if (type.getRank() > 1)
      bias = WeightReshapeOp::create(
          args.getBuilder(), args.getLoc(),
          WeightType::get(type.getContext(), {type.getNumElements()}, type.getStorage()), bias);
    bias = part.take(args, bias);
  }
  return ExpertLinearOp::create(args.getBuilder(), args.getLoc(), stream, choice, weight, bias)
      .getResult();
}

// combine: {weights: [...]}
FailureOr<Value> CombineOp::buildFromTemplate(TemplateArgs &args) {
  Value stream = args.getStream();
  TENON_READ(weights, args.getBranch("weights"));
  if (getColumns(stream) % getColumns(weights))
    return args.error("weights", Twine(getColumns(weights)) + " weights do not divide " +
                                     Twine(getColumns(stream)) + " columns");
  return CombineOp::create(args.getBuilder(), args.getLoc(), stream, weights).getResult();
}

} // namespace tenon::llm
