// See Graph.h.
#include "passes/Graph.h"

using namespace mlir;
using namespace tenon::llm;

namespace tenon {

std::optional<unsigned> getNamedResult(func::FuncOp function, StringRef name) {
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto attr = function.getResultAttrOfType<StringAttr>(i, "llm.result");
    if (attr && attr.getValue() == name)
      return i;
  }
  return std::nullopt;
}

RepeatedHeads getRepeatedHeads(AttentionOp attention) {
  auto keys = attention.getKey().getDefiningOp<RepeatKVOp>();
  auto values = attention.getValue().getDefiningOp<RepeatKVOp>();
  if (!keys || !values || keys.getHeads() != values.getHeads() ||
      keys.getTimes() != values.getTimes())
    return {};
  return {keys, values};
}

void eraseUnused(RepeatedHeads repeated) {
  if (repeated.values && repeated.values != repeated.keys && repeated.values->use_empty())
    repeated.values.erase();
  if (repeated.keys && repeated.keys->use_empty())
    repeated.keys.erase();
}

Reader getReader(Value projection) {
  while (projection.hasOneUse()) {
    OpOperand &use = *projection.getUses().begin();
    Operation *user = use.getOwner();
    if (isa<AttentionOp>(user))
      return {user, Role(use.getOperandNumber())}; // query, key, value
    if (isa<PagedAttentionOp>(user))
      return {user, Role::query};
    if (isa<KVAppendOp>(user))
      return {user, use.getOperandNumber() == 1 ? Role::key : Role::value};
    if (isa<LinearOp>(user) || !isa<ReferenceOpInterface>(user) || use.getOperandNumber() != 0 ||
        user->getNumResults() != 1)
      return {};
    projection = user->getResult(0);
  }
  return {};
}

bool canStack(ArrayRef<LinearOp> linears, std::string &why) {
  LinearOp first = linears.front();
  for (LinearOp linear : linears.drop_front()) {
    if (linear.getInput() != first.getInput())
      return why = "the projections read different rows", false;
    if (linear.getWeight().getType().getStorage() != first.getWeight().getType().getStorage())
      return why = "the projections are stored as " +
                   getStorageInfo(first.getWeight().getType().getStorage()).name.str() + " and " +
                   getStorageInfo(linear.getWeight().getType().getStorage()).name.str(),
             false;
    if (bool(linear.getBias()) != bool(first.getBias()))
      return why = "some projections have a bias and others none", false;
  }
  return true;
}

StackedLinear stack(OpBuilder &builder, ArrayRef<LinearOp> linears) {
  SmallVector<Value> weights, biases;
  for (LinearOp linear : linears) {
    weights.push_back(linear.getWeight());
    if (linear.getBias())
      biases.push_back(linear.getBias());
  }
  Location loc =
      builder.getFusedLoc(llvm::map_to_vector(linears, [](LinearOp op) { return op.getLoc(); }));
  Operation *anchor = &*builder.getInsertionPoint();
  for (Value weight : llvm::concat<Value>(weights, biases))
    hoistWeight(weight, anchor);
  StackedLinear stacked;
  stacked.weight = WeightConcatOp::create(builder, loc, weights);
  if (!biases.empty())
    stacked.bias = WeightConcatOp::create(builder, loc, biases);
  return stacked;
}

void replaceWithSlices(OpBuilder &builder, ArrayRef<LinearOp> linears, Value stacked) {
  int64_t begin = 0;
  for (LinearOp linear : linears) {
    int64_t end = begin + getColumns(linear);
    linear.replaceAllUsesWith(
        SliceOp::create(builder, linear.getLoc(), stacked, begin, end).getResult());
    begin = end;
  }
  for (LinearOp linear : linears)
    linear.erase();
}

FusedOp createFused(OpBuilder &builder, Location loc, StringRef kind,
                    function_ref<SmallVector<Value>(OpBuilder &)> build) {
  // The body decides the result types, so it is built first.
  Region body;
  Block *block = new Block;
  body.push_back(block);
  OpBuilder inner(builder.getContext());
  inner.setInsertionPointToStart(block);
  SmallVector<Value> results = build(inner);
  YieldOp::create(inner, loc, results);
  auto fused =
      FusedOp::create(builder, loc, TypeRange(ValueRange(results)), builder.getStringAttr(kind));
  fused.getBody().takeBody(body);
  return fused;
}

void hoistWeight(Value weight, Operation *anchor) {
  Operation *op = weight.getDefiningOp();
  if (!op || op->getBlock() != anchor->getBlock() || op->isBeforeInBlock(anchor))
    return;
  for (Value operand : op->getOperands())
    hoistWeight(operand, anchor);
  op->moveBefore(anchor);
}

} // namespace tenon
