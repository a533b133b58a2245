// Verifiers, inferred types and folds of the llm operations, in the order of LLMOps.td.
#include "ir/LLM.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;

// Nothing is printed when the second is of the same type as the first.
static ParseResult parseOtherType(OpAsmParser &parser, Type &type, Type same) {
  if (failed(parser.parseOptionalKeyword("values"))) {
    type = same;
    return success();
  }
  return parser.parseType(type);
}

static void printOtherType(OpAsmPrinter &printer, Operation *, Type type, Type same) {
  if (type != same)
    printer << " values " << type;
}

#define GET_OP_CLASSES
#include "ir/LLMOps.cpp.inc"

namespace tenon::llm {

// `'llm.rms_norm' op weight has 64 elements, the rows have 576 columns`.
static LogicalResult verifyVector(Operation *op, StringRef name, Value weight, int64_t columns) {
  auto type = cast<WeightType>(weight.getType());
  if (type.getRank() != 1 || type.getColumns() != columns)
    return op->emitOpError() << name << " must be a vector of " << columns << " elements, got "
                             << type;
  return success();
}

static LogicalResult verifyMatrix(Operation *op, StringRef name, WeightType type) {
  if (type.getRank() != 2)
    return op->emitOpError() << name << " must be a matrix, got " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

LogicalResult WeightConcatOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                               Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (adaptor.getInputs().empty())
    return emitOptionalError(loc, "'llm.weight_concat' op needs at least one input");
  auto first = cast<WeightType>(adaptor.getInputs().front().getType());
  SmallVector<int64_t> shape(first.getShape());
  shape[0] = 0;
  for (Value input : adaptor.getInputs()) {
    auto type = cast<WeightType>(input.getType());
    if (type.getShape().drop_front() != first.getShape().drop_front() ||
        type.getStorage() != first.getStorage() || type.getLayout() != Layout::plain)
      return emitOptionalError(
          loc, "'llm.weight_concat' op inputs must have equal columns and storage, got ", first,
          " and ", type);
    shape[0] += type.getShape()[0];
  }
  types.push_back(WeightType::get(context, shape, first.getStorage()));
  return success();
}

// The slices of one weight, in order and all of it, are that weight.
OpFoldResult WeightConcatOp::fold(FoldAdaptor) {
  Value whole;
  int64_t next = 0;
  for (Value input : getInputs()) {
    auto slice = input.getDefiningOp<WeightSliceOp>();
    if (!slice || slice.getEvery() || (whole && slice.getInput() != whole) ||
        int64_t(slice.getBegin()) != next)
      return {};
    whole = slice.getInput();
    next = slice.getEnd();
  }
  return whole.getType() == getType() ? OpFoldResult(whole) : OpFoldResult();
}

OpFoldResult WeightSliceOp::fold(FoldAdaptor) {
  return getInput().getType() == getType() ? OpFoldResult(getInput()) : OpFoldResult();
}

LogicalResult WeightDeinterleaveOp::verify() {
  int64_t rows = getInput().getType().getShape()[0];
  if (rows % (2 * getHeads()))
    return emitOpError() << "heads (" << getHeads() << ") do not divide " << rows
                         << " rows into pairs";
  return success();
}

LogicalResult WeightSliceOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                              Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = cast<WeightType>(adaptor.getInput().getType());
  unsigned dimension = type.getRank() == 1 ? 0 : type.getRank() - 2;
  int64_t begin = adaptor.getBegin(), end = adaptor.getEnd(), rows = type.getShape()[dimension];
  int64_t group = adaptor.getEvery().value_or(rows);
  if (type.getLayout() != Layout::plain || (type.getRank() == 1 && isQuantised(type.getStorage())))
    return emitOptionalError(loc, "'llm.weight_slice' op cannot take a part of ", type);
  if (group < 1 || rows % group)
    return emitOptionalError(loc, "'llm.weight_slice' op groups of ", group,
                             " rows do not make up ", rows, " rows");
  if (begin < 0 || begin >= end || end > group)
    return emitOptionalError(loc, "'llm.weight_slice' op rows ", begin, " to ", end,
                             " are not within ", group);
  SmallVector<int64_t> shape(type.getShape());
  shape[dimension] = rows / group * (end - begin);
  types.push_back(WeightType::get(context, shape, type.getStorage()));
  return success();
}

int64_t WeightSliceOp::getSourceRow(int64_t row) {
  int64_t taken = getEnd() - getBegin();
  WeightType type = getInput().getType();
  int64_t group = getEvery().value_or(type.getRank() > 2 ? type.getMatrixRows() : 0);
  return row / taken * group + getBegin() + row % taken;
}

LogicalResult WeightReshapeOp::verify() {
  WeightType from = getInput().getType(), to = getResult().getType();
  if (from.getNumElements() != to.getNumElements() || from.getStorage() != to.getStorage() ||
      from.getLayout() != Layout::plain || to.getLayout() != Layout::plain)
    return emitOpError() << "keeps the elements and their storage: " << from << " to " << to;
  if (from.getColumns() != to.getColumns() && (to.getRank() > 1 || isQuantised(to.getStorage())))
    return emitOpError() << "keeps rows, or makes a vector of single elements: " << from << " to "
                         << to;
  return success();
}

// Nothing, or a reshape undone.
OpFoldResult WeightReshapeOp::fold(FoldAdaptor) {
  Value source = getInput();
  if (source.getType() == getType())
    return source;
  auto before = source.getDefiningOp<WeightReshapeOp>();
  return before && before.getInput().getType() == getType() ? OpFoldResult(before.getInput())
                                                            : OpFoldResult();
}

LogicalResult WeightTransposeOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                                  Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = cast<WeightType>(adaptor.getInput().getType());
  if (type.getRank() < 2 || type.getLayout() != Layout::plain || isQuantised(type.getStorage()))
    return emitOptionalError(
        loc, "'llm.weight_transpose' op needs a plain matrix that is not stored in groups, got ",
        type);
  SmallVector<int64_t> shape(type.getShape());
  std::swap(shape[shape.size() - 2], shape.back());
  types.push_back(WeightType::get(context, shape, type.getStorage()));
  return success();
}

OpFoldResult WeightTransposeOp::fold(FoldAdaptor) {
  auto before = getInput().getDefiningOp<WeightTransposeOp>();
  return before ? OpFoldResult(before.getInput()) : OpFoldResult();
}

LogicalResult WeightConvertOp::verify() {
  WeightType from = getInput().getType(), to = getResult().getType();
  if (from.getShape() != to.getShape())
    return emitOpError() << "cannot change the shape: " << from << " to " << to;
  if (from.getLayout() != Layout::plain || to.getLayout() != Layout::plain)
    return emitOpError() << "converts plain weights only";
  return success();
}

OpFoldResult WeightConvertOp::fold(FoldAdaptor) {
  return getInput().getType() == getResult().getType() ? OpFoldResult(getInput()) : OpFoldResult();
}

LogicalResult WeightPackOp::verify() {
  WeightType from = getInput().getType(), to = getResult().getType();
  if (from.getLayout() != Layout::plain || to.getLayout() == Layout::plain)
    return emitOpError() << "packs a plain weight into a packed one";
  if (from.getRank() < 2 || from.getShape() != to.getShape() ||
      from.getStorage() != to.getStorage())
    return emitOpError() << "changes the layout of a matrix only: " << from << " to " << to;
  return success();
}

LogicalResult RopeFrequenciesOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                                  Adaptor adaptor, SmallVectorImpl<Type> &types) {
  SmallVector<int64_t> shape{std::max<int64_t>(adaptor.getDim() / 2, 1)};
  if (DictionaryAttr scaling = adaptor.getScalingAttr(); scaling && scaling.get("long"))
    shape.insert(shape.begin(), 2); // up to the original context, and beyond
  types.push_back(WeightType::get(context, shape, Storage::F64));
  return success();
}

LogicalResult SinusoidalOp::verify() {
  WeightType type = getResult().getType();
  if (type.getRank() != 2 || type.getStorage() != Storage::F32 || type.getLayout() != Layout::plain)
    return emitOpError() << "must be a plain f32 matrix of positions, got " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// Embedding, norms, linear
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(
      getRowsType(context, cast<WeightType>(adaptor.getTable().getType()).getColumns()));
  return success();
}

LogicalResult EmbeddingOp::verify() { return verifyMatrix(*this, "table", getTable().getType()); }

LogicalResult PositionEmbeddingOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                                    Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(
      getRowsType(context, cast<WeightType>(adaptor.getTable().getType()).getColumns()));
  return success();
}

LogicalResult PositionEmbeddingOp::verify() {
  WeightType table = getTable().getType();
  if (failed(verifyMatrix(*this, "table", table)))
    return failure();
  if (int64_t(getOffset()) >= table.getRows())
    return emitOpError() << "offset (" << getOffset() << ") leaves no position in a table of "
                         << table.getRows() << " rows";
  return success();
}

LogicalResult TypeEmbeddingOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                                Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(
      getRowsType(context, cast<WeightType>(adaptor.getTable().getType()).getColumns()));
  return success();
}

LogicalResult TypeEmbeddingOp::verify() {
  return verifyMatrix(*this, "table", getTable().getType());
}

LogicalResult RMSNormOp::verify() {
  if (!(getEps().convertToDouble() >= 0))
    return emitOpError() << "eps must not be negative";
  if (int64_t columns = getColumns(getInput()); columns % getHeads())
    return emitOpError() << "heads (" << getHeads() << ") do not divide " << columns << " columns";
  return verifyVector(*this, "weight", getWeight(), getHeadDim());
}

LogicalResult LayerNormOp::verify() {
  if (!(getEps().convertToDouble() >= 0))
    return emitOpError() << "eps must not be negative";
  int64_t columns = getColumns(getInput());
  if (failed(verifyVector(*this, "weight", getWeight(), columns)))
    return failure();
  return getBias() ? verifyVector(*this, "bias", getBias(), columns) : success();
}

LogicalResult LinearOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(
      getRowsType(context, cast<WeightType>(adaptor.getWeight().getType()).getShape()[0]));
  return success();
}

LogicalResult LinearOp::verify() {
  WeightType weight = getWeight().getType();
  if (failed(verifyMatrix(*this, "weight", weight)))
    return failure();
  if (weight.getColumns() != getColumns(getInput()))
    return emitOpError() << "weight has " << weight.getColumns() << " columns, the rows have "
                         << getColumns(getInput());
  return getBias() ? verifyVector(*this, "bias", getBias(), weight.getRows()) : success();
}

static LogicalResult verifyStack(Operation *op, WeightType type) {
  if (type.getRank() != 3)
    return op->emitOpError() << "weight must be a stack of matrices, got " << type;
  return success();
}

LogicalResult HeadLinearOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                             Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(getRowsType(context, cast<WeightType>(adaptor.getWeight().getType()).getRows()));
  return success();
}

LogicalResult HeadLinearOp::verify() {
  WeightType weight = getWeight().getType();
  if (failed(verifyStack(*this, weight)))
    return failure();
  if (getColumns(getInput()) != weight.getShape()[0] * weight.getColumns())
    return emitOpError() << "weight is for " << weight.getShape()[0] << " heads of "
                         << weight.getColumns() << " columns, the rows have "
                         << getColumns(getInput());
  return success();
}

//===----------------------------------------------------------------------===//
// Mixture of experts
//===----------------------------------------------------------------------===//

LogicalResult TopKOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                       Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(getRowsType(context, adaptor.getCount()));
  return success();
}

LogicalResult TopKOp::verify() {
  int64_t columns = getColumns(getInput()), groups = getGroups(), top = getTopGroups();
  if (columns % groups)
    return emitOpError() << "groups (" << groups << ") do not divide " << columns << " columns";
  if (top > groups)
    return emitOpError() << "top (" << top << ") is more than the groups, " << groups;
  int64_t searched = columns / groups * top;
  if (int64_t(getCount()) > searched)
    return emitOpError() << "count (" << getCount() << ") is more than the " << searched
                         << " columns that are searched";
  if (groups > 1 && getGroupScore() == GroupScore::largest_two && columns / groups < 2)
    return emitOpError() << "groups of one column have no two largest";
  return getBias() ? verifyVector(*this, "bias", getBias(), columns) : success();
}

LogicalResult ExpertLinearOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                               Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(
      getRowsType(context, getColumns(adaptor.getChoice()) *
                               cast<WeightType>(adaptor.getWeight().getType()).getMatrixRows()));
  return success();
}

LogicalResult ExpertLinearOp::verify() {
  WeightType weight = getWeight().getType();
  if (failed(verifyStack(*this, weight)))
    return failure();
  int64_t columns = getColumns(getInput()), expected = weight.getColumns();
  if (columns != expected && columns != getSlots() * expected)
    return emitOpError() << "weight has " << expected << " columns, for rows of as many or of "
                         << getSlots() << " times as many; the rows have " << columns;
  if (weight.getShape()[0] < getSlots())
    return emitOpError() << "chooses " << getSlots() << " of " << weight.getShape()[0]
                         << " experts";
  return getBias() ? verifyVector(*this, "bias", getBias(), weight.getRows()) : success();
}

LogicalResult CombineOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                          Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(
      getRowsType(context, getColumns(adaptor.getInput()) / getColumns(adaptor.getWeights())));
  return success();
}

LogicalResult CombineOp::verify() {
  if (getColumns(getInput()) % getColumns(getWeights()))
    return emitOpError() << getColumns(getWeights()) << " weights do not divide "
                         << getColumns(getInput()) << " columns";
  return success();
}

//===----------------------------------------------------------------------===//
// Positions, attention, cache
//===----------------------------------------------------------------------===//

LogicalResult RopeAnglesOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                             Adaptor adaptor, SmallVectorImpl<Type> &types) {
  int64_t pairs = cast<WeightType>(adaptor.getFrequencies().getType()).getColumns();
  types.push_back(getRowsType(context, 2 * pairs));
  return success();
}

LogicalResult RopeAnglesOp::verify() {
  WeightType frequencies = getFrequencies().getType();
  bool twoRows = frequencies.getRank() == 2 && frequencies.getRows() == 2;
  if (frequencies.getStorage() != Storage::F64 || (frequencies.getRank() != 1 && !twoRows))
    return emitOpError() << "frequencies must be f64 in one row or two, got " << frequencies;
  bool isDynamic = !getDynamic().isZero();
  if (isDynamic && !(getDynamic().convertToDouble() >= 1))
    return emitOpError() << "dynamic must be at least 1";
  if (isDynamic && frequencies.getColumns() < 2)
    return emitOpError() << "dynamic needs two pairs at least";
  if ((getOriginal() != 0) != (twoRows || isDynamic) || (twoRows && isDynamic))
    return emitOpError() << "original goes with either two rows of frequencies or dynamic";
  return success();
}

LogicalResult RopeOp::verify() {
  int64_t columns = getColumns(getInput()), rotated = getColumns(getAngles());
  if (columns % getHeads())
    return emitOpError() << "heads (" << getHeads() << ") do not divide " << columns << " columns";
  if (rotated % 2 || int64_t(getFirst()) > getHeadDim() - rotated)
    return emitOpError() << "angles for " << rotated << " elements from element " << getFirst()
                         << " on do not fit a head of " << getHeadDim();
  return success();
}

LogicalResult JoinHeadsOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(
      getRowsType(context, getColumns(adaptor.getLhs()) + getColumns(adaptor.getRhs())));
  return success();
}

LogicalResult JoinHeadsOp::verify() {
  for (Value side : {getLhs(), getRhs()})
    if (getColumns(side) % getHeads())
      return emitOpError() << "heads (" << getHeads() << ") do not divide " << getColumns(side)
                           << " columns";
  return success();
}

LogicalResult SliceHeadsOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                             Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(getRowsType(context, std::max<int64_t>(adaptor.getEnd() - adaptor.getBegin(), 0) *
                                           adaptor.getHeads()));
  return success();
}

LogicalResult SliceHeadsOp::verify() {
  if (getColumns(getInput()) % getHeads())
    return emitOpError() << "heads (" << getHeads() << ") do not divide " << getColumns(getInput())
                         << " columns";
  int64_t begin = getBegin(), end = getEnd();
  if (begin < 0 || begin >= end || end > getHeadDim())
    return emitOpError() << "columns " << begin << " to " << end << " are not within a head of "
                         << getHeadDim();
  return success();
}

LogicalResult RepeatKVOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                           Adaptor adaptor, SmallVectorImpl<Type> &types) {
  types.push_back(getRowsType(context, getColumns(adaptor.getInput()) * adaptor.getTimes()));
  return success();
}

LogicalResult RepeatKVOp::verify() {
  if (getColumns(getInput()) % getHeads())
    return emitOpError() << "heads (" << getHeads() << ") do not divide " << getColumns(getInput())
                         << " columns";
  return success();
}

OpFoldResult RepeatKVOp::fold(FoldAdaptor) {
  return getTimes() == 1 ? OpFoldResult(getInput()) : OpFoldResult();
}

static LogicalResult verifyHeads(Operation *op, int64_t columns, int64_t heads, int64_t keyColumns,
                                 int64_t kvHeads) {
  if (heads <= 0 || kvHeads <= 0)
    return op->emitOpError() << "num_heads and num_kv_heads must be positive";
  if (heads % kvHeads)
    return op->emitOpError() << "num_heads (" << heads << ") is not a multiple of num_kv_heads ("
                             << kvHeads << ")";
  if (columns % heads)
    return op->emitOpError() << "num_heads (" << heads << ") does not divide " << columns
                             << " query columns";
  if (keyColumns != columns / heads * kvHeads)
    return op->emitOpError() << "keys must have " << columns / heads * kvHeads << " columns ("
                             << kvHeads << " heads of " << columns / heads << "), got "
                             << keyColumns;
  return success();
}

// Heads of values may have a width of their own.
static LogicalResult verifyValues(Operation *op, int64_t columns, int64_t kvHeads) {
  if (columns % kvHeads)
    return op->emitOpError() << "num_kv_heads (" << kvHeads << ") does not divide " << columns
                             << " value columns";
  return success();
}

static LogicalResult verifySoftcap(Operation *op, const APFloat &cap) {
  if (!cap.isFinite() || cap.isNegative())
    return op->emitOpError() << "softcap must be a positive number, or 0 for none";
  return success();
}

static LogicalResult verifyBias(Operation *op, Value bias, int64_t heads) {
  if (!bias)
    return success();
  auto type = cast<WeightType>(bias.getType());
  if (type.getRank() != 2 || type.getRows() != heads || type.getStorage() != Storage::F32 ||
      type.getLayout() != Layout::plain)
    return op->emitOpError() << "bias must be a plain f32 table with a row for each of " << heads
                             << " heads, got " << type;
  return success();
}

LogicalResult AttentionOp::verify() {
  if (getBidirectional() && getKeys() != KeyRows::tokens)
    return emitOpError() << "bidirectional attention is over the tokens of the batch, not keys "
                         << stringifyKeyRows(getKeys());
  if (!isCausal() && getWindow())
    return emitOpError() << "a window (" << getWindow() << ") needs causal attention";
  if (failed(verifySoftcap(*this, getSoftcap())) ||
      failed(verifyHeads(*this, getColumns(getQuery()), getNumHeads(), getColumns(getKey()),
                         getNumKvHeads())) ||
      failed(verifyValues(*this, getColumns(getValue()), getNumKvHeads())) ||
      failed(verifyBias(*this, getBias(), getNumHeads())))
    return failure();
  return getSinks() ? verifyVector(*this, "sinks", getSinks(), getNumHeads()) : success();
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  int64_t kvHeads = std::max<int64_t>(adaptor.getNumKvHeads(), 1);
  types.push_back(getRowsType(context, getColumns(adaptor.getValue()) / kvHeads *
                                           int64_t(adaptor.getNumHeads())));
  return success();
}

static LogicalResult verifyLayer(Operation *op, CacheType cache, int64_t layer) {
  if (layer >= cache.getLayers())
    return op->emitOpError() << "layer " << layer << " is not in a cache of " << cache.getLayers()
                             << " layers";
  return success();
}

LogicalResult KVAppendOp::verify() {
  if (getColumns(getKey()) != getCache().getType().getWidth())
    return emitOpError() << "keys have " << getColumns(getKey())
                         << " columns, the cache's rows have " << getCache().getType().getWidth();
  if (getColumns(getValue()) != getCache().getType().getValueWidth())
    return emitOpError() << "values have " << getColumns(getValue())
                         << " columns, the cache's rows have "
                         << getCache().getType().getValueWidth();
  return verifyLayer(*this, getCache().getType(), getLayer());
}

LogicalResult KVReadOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto cache = cast<CacheType>(adaptor.getCache().getType());
  types.assign(
      {getRowsType(context, cache.getWidth()), getRowsType(context, cache.getValueWidth())});
  return success();
}

LogicalResult KVReadOp::verify() { return verifyLayer(*this, getCache().getType(), getLayer()); }

LogicalResult PagedAttentionOp::verify() {
  CacheType cache = getCache().getType();
  if (cache.getMemory() && getWindow())
    return emitOpError() << "a window (" << getWindow() << ") needs causal attention";
  if (failed(verifyHeads(*this, getColumns(getQuery()), getNumHeads(), cache.getWidth(),
                         cache.getHeads())) ||
      failed(verifySoftcap(*this, getSoftcap())) ||
      failed(verifyBias(*this, getBias(), getNumHeads())))
    return failure();
  if (getSinks() && failed(verifyVector(*this, "sinks", getSinks(), getNumHeads())))
    return failure();
  return verifyLayer(*this, cache, getLayer());
}

LogicalResult PagedAttentionOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                                                 Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto cache = cast<CacheType>(adaptor.getCache().getType());
  types.push_back(getRowsType(context, cache.getValueDim() * int64_t(adaptor.getNumHeads())));
  return success();
}

//===----------------------------------------------------------------------===//
// Elementwise and row selection
//===----------------------------------------------------------------------===//

OpFoldResult ScaleOp::fold(FoldAdaptor) {
  return getFactor().isExactlyValue(1.0) ? OpFoldResult(getInput()) : OpFoldResult();
}

OpFoldResult ShiftOp::fold(FoldAdaptor) {
  return getValue().isZero() ? OpFoldResult(getInput()) : OpFoldResult();
}

LogicalResult ClampOp::verify() {
  if (!(getLow().convertToDouble() <= getHigh().convertToDouble()))
    return emitOpError() << "the lower bound must not exceed the upper one";
  return success();
}

LogicalResult SoftcapOp::verify() {
  if (!getCap().isFinite() || !(getCap().convertToDouble() > 0))
    return emitOpError() << "cap must be a positive number";
  return success();
}

LogicalResult SliceOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                        Adaptor adaptor, SmallVectorImpl<Type> &types) {
  int64_t begin = adaptor.getBegin(), end = adaptor.getEnd(),
          columns = getColumns(adaptor.getInput());
  if (begin < 0 || begin >= end || end > columns)
    return emitOptionalError(loc, "'llm.slice' op columns ", begin, " to ", end, " are not within ",
                             columns);
  types.push_back(getRowsType(context, end - begin));
  return success();
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  return getInput().getType() == getResult().getType() ? OpFoldResult(getInput()) : OpFoldResult();
}

//===----------------------------------------------------------------------===//
// Fusion
//===----------------------------------------------------------------------===//

LogicalResult FusedOp::verify() {
  auto yield = dyn_cast<YieldOp>(getBody().front().getTerminator());
  if (!yield || !llvm::equal(yield.getOperandTypes(), getResultTypes()))
    return emitOpError() << "must yield its results";
  for (Operation &op : getBody().front().without_terminator())
    if (op.getDialect() != getOperation()->getDialect() && !isa<ReferenceOpInterface>(op))
      return emitOpError() << "joins operations that have a reference decomposition, not '"
                           << op.getName() << "'";
  return success();
}

} // namespace tenon::llm
