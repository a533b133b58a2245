// llm-insert-kv-cache: attention over the batch's own tokens becomes attention over the cached
// context, and attention over an encoder's rows one over what the encoder has cached of them.
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Graph.h"
#include "passes/Passes.h"
#include "llvm/ADT/StringSwitch.h"

namespace tenon {
#define GEN_PASS_DEF_LLMINSERTKVCACHE
#include "passes/Passes.h.inc"

using namespace mlir;
using namespace tenon::llm;

namespace {

// Keys or values as attention reads them, and as the cache should keep them.
struct Rows {
  Value stored;      // before repeat_kv
  RepeatKVOp repeat; // null when heads are not shared
  int64_t heads;     // of `stored`
};

// The cache has as many heads of keys as of values: where they were copied unequally, the copies
// are stored.
std::pair<Rows, Rows> getStoredRows(AttentionOp op) {
  auto rows = [&](Value value, RepeatKVOp repeat) -> Rows {
    if (repeat)
      return {repeat.getInput(), repeat, int64_t(repeat.getHeads())};
    return {value, nullptr, int64_t(op.getNumKvHeads())};
  };
  auto [keys, values] = getRepeatedHeads(op);
  return {rows(op.getKey(), keys), rows(op.getValue(), values)};
}

// Whether the values are the first columns of the only key: storing that is enough.
bool areInKeys(Value values, const Rows &keys) {
  auto slice = values.getDefiningOp<SliceOp>();
  return slice && keys.heads == 1 && slice.getInput() == keys.stored && slice.getBegin() == 0;
}

struct InsertKVCache : impl::LLMInsertKVCacheBase<InsertKVCache> {
  using LLMInsertKVCacheBase::LLMInsertKVCacheBase;

  Promise getPromise() const override {
    double tolerance = llvm::StringSwitch<double>(dtype)
                           .Case("bf16", 1.5e-2)
                           .Case("f16", 2e-3)
                           .Case("int8", 3e-2)
                           .Default(sameNumbers);
    return {Promise::phaseMap, tolerance};
  }

  void runOnOperation() override {
    Type element = llvm::StringSwitch<Type>(dtype)
                       .Case("f32", Float32Type::get(&getContext()))
                       .Case("bf16", BFloat16Type::get(&getContext()))
                       .Case("f16", Float16Type::get(&getContext()))
                       .Case("int8", IntegerType::get(&getContext(), 8))
                       .Default(nullptr);
    if (!element) {
      getOperation().emitError() << "unknown cache dtype '" << dtype
                                 << "'; accepted: f32, bf16, f16, int8";
      return signalPassFailure();
    }
    auto encoder = getOperation().lookupSymbol<func::FuncOp>("encoder");
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(insert(function, element)) || failed(insertMemory(function, encoder, element)))
        return signalPassFailure();
  }

  LogicalResult insert(func::FuncOp function, Type element) {
    SmallVector<AttentionOp> attentions;
    function.walk([&](AttentionOp op) {
      if (op.getKeys() == KeyRows::tokens && op.isCausal())
        attentions.push_back(op);
    });
    if (attentions.empty())
      return success();
    CacheType type = getCacheType(attentions, element, /*isMemory=*/false);
    if (!type)
      return failure();

    // The cache is the last argument and the last result.
    if (failed(function.insertArgument(function.getNumArguments(), type, {}, function.getLoc())) ||
        failed(function.insertResult(function.getNumResults(), type, {})))
      return failure();
    Value cache = function.getArguments().back();
    for (auto [layer, op] : llvm::enumerate(attentions))
      cache = rewrite(op, cache, layer);
    auto terminator = cast<func::ReturnOp>(function.getBody().front().getTerminator());
    terminator.getOperandsMutable().append(cache);
    return success();
  }

  // The cache of these layers; null, with an error, if they cannot share one.
  static CacheType getCacheType(ArrayRef<AttentionOp> attentions, Type element, bool isMemory) {
    CacheType type;
    for (AttentionOp op : attentions) {
      auto [keys, values] = getStoredRows(op);
      auto rows = CacheType::get(op.getContext(), attentions.size(), keys.heads,
                                 getColumns(keys.stored) / keys.heads,
                                 getColumns(values.stored) / values.heads,
                                 areInKeys(values.stored, keys), element, isMemory);
      if (type && rows != type) {
        op.emitError() << "layers with different rows cannot share a cache: " << rows << " after "
                       << type;
        return nullptr;
      }
      type = rows;
    }
    return type;
  }

  //===--------------------------------------------------------------------===//
  // Cross-attention
  //===--------------------------------------------------------------------===//

  // The keys and values of every layer move to the encoder, which appends them to the memory's
  // cache. That takes the place of its result, and of the decoder's argument.
  LogicalResult insertMemory(func::FuncOp decoder, func::FuncOp encoder, Type element) {
    SmallVector<AttentionOp> attentions;
    decoder.walk([&](AttentionOp op) {
      if (op.getKeys() == KeyRows::memory)
        attentions.push_back(op);
    });
    if (attentions.empty())
      return success();
    BlockArgument memory;
    for (BlockArgument argument : decoder.getArguments())
      if (isa<RankedTensorType>(argument.getType()))
        memory = argument;
    if (!memory || !encoder)
      return attentions.front().emitError() << "attends to a memory, which needs a function "
                                               "@encoder and its result as an argument";
    std::optional<unsigned> result = getNamedResult(encoder, "memory");
    if (!result)
      return encoder.emitError() << "has no result named \"memory\"";
    CacheType type = getCacheType(attentions, element, /*isMemory=*/true);
    if (!type ||
        failed(encoder.insertArgument(encoder.getNumArguments(), type, {}, encoder.getLoc())) ||
        failed(decoder.insertArgument(decoder.getNumArguments(), type, {}, decoder.getLoc())))
      return failure();

    auto terminator = cast<func::ReturnOp>(encoder.getBody().front().getTerminator());
    OpBuilder builder(terminator);
    IRMapping moved;
    moved.map(memory, terminator.getOperand(*result));
    Value written = encoder.getArguments().back(), cached = decoder.getArguments().back();
    for (auto [layer, op] : llvm::enumerate(attentions)) {
      auto [keys, values] = getStoredRows(op);
      Value key = move(builder, keys.stored, moved), value = move(builder, values.stored, moved);
      if (!key || !value)
        return op.emitError() << "keys and values over a memory must follow from it alone";
      written = KVAppendOp::create(builder, op.getLoc(), type, written, key, value,
                                   encoder.getArgument(0), layer);
      SmallVector<Value> old{op.getKey(), op.getValue()};
      readFromCache(op, cached, layer);
      for (Value rows : old)
        eraseDead(rows);
    }
    if (!memory.use_empty())
      return decoder.emitError() << "reads the memory otherwise than by attention";
    terminator.getOperandsMutable().append(written);
    terminator.getOperandsMutable().erase(*result);
    return success(succeeded(encoder.insertResult(encoder.getNumResults(), type, {})) &&
                   succeeded(encoder.eraseResult(*result)) &&
                   succeeded(decoder.eraseArgument(memory.getArgNumber())));
  }

  // A copy of what computes `value`; null if that reads what is not mapped.
  static Value move(OpBuilder &builder, Value value, IRMapping &mapping) {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (!op)
      return nullptr;
    for (Value operand : op->getOperands())
      if (!move(builder, operand, mapping))
        return nullptr;
    builder.clone(*op, mapping);
    return mapping.lookup(value);
  }

  static void eraseDead(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !isOpTriviallyDead(op))
      return;
    SmallVector<Value> operands(op->getOperands());
    op->erase();
    for (Value operand : operands)
      eraseDead(operand);
  }

  // Returns the updated cache.
  Value rewrite(AttentionOp op, Value cache, int64_t layer) {
    OpBuilder builder(op);
    Location loc = op.getLoc();
    auto [keys, values] = getStoredRows(op);
    Value updated = KVAppendOp::create(builder, loc, cache.getType(), cache, keys.stored,
                                       values.stored, op.getBatch(), layer);
    readFromCache(op, updated, layer);
    op.setKeys(KeyRows::context);
    eraseUnused({keys.repeat, values.repeat});
    return updated;
  }

  static void readFromCache(AttentionOp op, Value cache, int64_t layer) {
    OpBuilder builder(op);
    Location loc = op.getLoc();
    auto [keys, values] = getStoredRows(op);
    auto read = KVReadOp::create(builder, loc, cache, op.getBatch(), layer);
    auto repeat = [&](Value context, Rows rows) -> Value {
      if (!rows.repeat)
        return context;
      return RepeatKVOp::create(builder, loc, context, rows.repeat.getHeads(),
                                rows.repeat.getTimes());
    };
    op.getKeyMutable().assign(repeat(read.getKey(), keys));
    op.getValueMutable().assign(repeat(read.getValue(), values));
  }
};

} // namespace
} // namespace tenon
