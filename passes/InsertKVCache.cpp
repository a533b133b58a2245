// llm-insert-kv-cache: attention over the batch's own tokens becomes attention over the cached
// context.
#include "mlir/IR/Builders.h"
#include "passes/Graph.h"
#include "passes/Passes.h"

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
    return {Promise::phaseMap, dtype == "bf16" ? 1.5e-2 : dtype == "f16" ? 2e-3 : sameNumbers};
  }

  void runOnOperation() override {
    Type element = llvm::StringSwitch<Type>(dtype)
                       .Case("f32", Float32Type::get(&getContext()))
                       .Case("bf16", BFloat16Type::get(&getContext()))
                       .Case("f16", Float16Type::get(&getContext()))
                       .Default(nullptr);
    if (!element) {
      getOperation().emitError() << "unknown cache dtype '" << dtype
                                 << "'; accepted: f32, bf16, f16";
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(insert(function, element)))
        return signalPassFailure();
  }

  LogicalResult insert(func::FuncOp function, Type element) {
    SmallVector<AttentionOp> attentions;
    function.walk([&](AttentionOp op) {
      if (op.getKeys() == KeyRows::tokens)
        attentions.push_back(op);
    });
    if (attentions.empty())
      return success();

    CacheType type;
    for (AttentionOp op : attentions) {
      auto [keys, values] = getStoredRows(op);
      int64_t layers = attentions.size();
      auto rows = CacheType::get(
          &getContext(), layers, keys.heads, getColumns(keys.stored) / keys.heads,
          getColumns(values.stored) / values.heads, areInKeys(values.stored, keys), element);
      if (type && rows != type)
        return op.emitError() << "layers with different rows cannot share a cache: " << rows
                              << " after " << type;
      type = rows;
    }

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

  // Returns the updated cache.
  Value rewrite(AttentionOp op, Value cache, int64_t layer) {
    OpBuilder builder(op);
    Location loc = op.getLoc();
    auto [keys, values] = getStoredRows(op);
    Value updated = KVAppendOp::create(builder, loc, cache.getType(), cache, keys.stored,
                                       values.stored, op.getBatch(), layer);
    auto read = KVReadOp::create(builder, loc, updated, op.getBatch(), layer);
    auto repeat = [&](Value context, Rows rows) -> Value {
      if (!rows.repeat)
        return context;
      return RepeatKVOp::create(builder, loc, context, rows.repeat.getHeads(),
                                rows.repeat.getTimes());
    };
    op.getKeyMutable().assign(repeat(read.getKey(), keys));
    op.getValueMutable().assign(repeat(read.getValue(), values));
    op.setKeys(KeyRows::context);
    eraseUnused({keys.repeat, values.repeat});
    return updated;
  }
};

} // namespace
} // namespace tenon
