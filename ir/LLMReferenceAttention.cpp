// The meaning of attention and of the KV cache in plain MLIR.
//
// The batch is ragged, so the outer loop goes over tokens: each knows how many keys it sees and
// where they lie. Nothing is padded or masked. Heads are [h, g] below: g query heads share key head
// h.
#include "ir/LLM.h"
#include "ir/ReferenceBuilder.h"
#include <limits>

using namespace mlir;

namespace tenon::llm {

namespace {

// What one token attends to: `count` keys, and how to read element d of head h of key or value j.
struct Visible {
  using Element = std::function<Value(Value j, Value h, Value d)>;
  Value count;
  Element key, value;
  Value firstKey, query; // positions of key 0 and of the token itself
};

struct AttentionShape {
  int64_t heads, kvHeads, headDim, valueDim;
  double scale;
  int64_t window; // 0: none
  double softcap; // 0: none
  Value bias;     // [heads, N]; null: none
  BiasIndex biasBy;
  int64_t biasOrigin;
  Value sinks; // [heads], or null
};

} // namespace

// The bias of key j for query head g of key head h.
static Value getBias(ReferenceBuilder &e, const AttentionShape &shape, const Visible &visible,
                     Value h, Value g, Value j) {
  Value entry = e.add(e.add(visible.firstKey, j), e.index(shape.biasOrigin));
  if (shape.biasBy == BiasIndex::distance)
    entry = e.sub(entry, visible.query);
  int64_t length = cast<RankedTensorType>(shape.bias.getType()).getDimSize(1);
  entry = e.create<arith::MaxSIOp>(entry, e.index(0));
  entry = e.create<arith::MinSIOp>(entry, e.index(length - 1));
  Value head = e.add(e.mul(h, e.index(shape.heads / shape.kvHeads)), g);
  return e.at(shape.bias, {head, entry});
}

// softmax(scale q k^T) v of one token: query and result are [h, g, d].
static Value attendToken(ReferenceBuilder &e, Value query, const AttentionShape &shape,
                         const Visible &visible) {
  ReferenceBuilder::Shape queryShape = e.shapeOf(query);
  ReferenceBuilder::Shape headShape{queryShape[0], queryShape[1]};
  ReferenceBuilder::Shape resultShape{queryShape[0], queryShape[1], e.size(shape.valueDim)};
  ReferenceBuilder::Shape scoreShape{queryShape[0], queryShape[1], visible.count};

  Value scaled = e.generic("hgd: hgd -> hgd", {query}, e.empty(queryShape),
                           [&](ValueRange v) { return e.mul(v[0], e.f32(shape.scale)); });
  Value scores =
      e.generic("hgjd: hgd -> hgj", {scaled}, e.filled(0, scoreShape), [&](ValueRange v) {
        return e.mulAdd(v[1], v[0], visible.key(e.loop(2), e.loop(0), e.loop(3)));
      });
  if (shape.softcap != 0)
    scores = e.generic("hgj: hgj -> hgj", {scores}, e.empty(scoreShape),
                       [&](ValueRange v) { return e.softcap(v[0], shape.softcap); });
  if (shape.bias)
    scores = e.generic("hgj: hgj -> hgj", {scores}, e.empty(scoreShape), [&](ValueRange v) {
      return e.add(v[0], getBias(e, shape, visible, e.loop(0), e.loop(1), e.loop(2)));
    });
  // A sink is a score that no value belongs to.
  Value sink;
  if (shape.sinks)
    sink = e.generic("hg: -> hg", {}, e.empty(headShape), [&](ValueRange) {
      Value first = e.mul(e.loop(0), e.index(shape.heads / shape.kvHeads));
      return e.at(shape.sinks, e.add(first, e.loop(1)));
    });
  Value largest =
      e.generic("hgj: hgj -> hg", {scores}, sink ? sink : e.filled(-INFINITY, headShape),
                [&](ValueRange v) { return e.create<arith::MaximumFOp>(v[1], v[0]); });
  Value weights = e.generic("hgj: hg -> hgj", {largest}, scores,
                            [&](ValueRange v) { return e.exp(e.sub(v[1], v[0])); });
  Value first = sink ? e.generic("hg: hg, hg -> hg", {sink, largest}, e.empty(headShape),
                                 [&](ValueRange v) { return e.exp(e.sub(v[0], v[1])); })
                     : e.filled(0, headShape);
  Value sums = e.generic("hgj: hgj -> hg", {weights}, first,
                         [&](ValueRange v) { return e.accumulate(v[1], v[0]); });
  Value mixed =
      e.generic("hgjd: hgj -> hgd", {weights}, e.filled(0, resultShape), [&](ValueRange v) {
        return e.mulAdd(v[1], v[0], visible.value(e.loop(2), e.loop(0), e.loop(3)));
      });
  return e.generic("hgd: hg -> hgd", {sums}, mixed,
                   [&](ValueRange v) { return e.div(v[1], v[0]); });
}

// The last `window` of the visible keys.
static Visible within(ReferenceBuilder &e, const Visible &visible, int64_t window) {
  if (!window)
    return visible;
  Value count = e.create<arith::MinSIOp>(visible.count, e.index(window));
  Value skipped = e.sub(visible.count, count);
  auto shift = [&e, skipped](Visible::Element read) -> Visible::Element {
    return [&e, skipped, read](Value j, Value h, Value d) { return read(e.add(skipped, j), h, d); };
  };
  return {count, shift(visible.key), shift(visible.value), e.add(visible.firstKey, skipped),
          visible.query};
}

// Attention of all tokens; `visibleTo(t)` says what token t could see without a window.
static Value attend(ReferenceBuilder &e, Value query, const AttentionShape &shape,
                    function_ref<Visible(Value)> visibleTo) {
  Value heads = e.splitColumns(query, {shape.kvHeads, shape.heads / shape.kvHeads, shape.headDim});
  Value result = e.empty({e.rowsOf(query), e.size(shape.heads * shape.valueDim)});
  return e.forEach(e.rowsOf(query), result, [&](Value t, ValueRange values) -> SmallVector<Value> {
    Visible visible = within(e, visibleTo(t), shape.window);
    Value row = attendToken(e, e.takeRow(heads, t), shape, visible);
    return {e.putRow(e.joinColumns(row, /*kept=*/0), values[0], t)};
  })[0];
}

// Cached positions of the sequences before `sequence`: where its rows of a context begin.
static Value contextStart(ReferenceBuilder &e, Value lengths, Value sequence) {
  return e.forEach(sequence, e.index(0), [&](Value s, ValueRange sum) -> SmallVector<Value> {
    return {e.add(sum[0], e.indexAt(lengths, s))};
  })[0];
}

// What both kinds of attention say alike; the sizes of heads are the caller's.
template <typename AttentionT>
static AttentionShape getShape(AttentionT op, int64_t kvHeads, int64_t headDim, int64_t valueDim,
                               const ReferenceMapping &mapping) {
  auto lookUp = [&](Value table) { return table ? mapping.lookup(table) : Value(); };
  return {int64_t(op.getNumHeads()),
          kvHeads,
          headDim,
          valueDim,
          op.getScale().convertToDouble(),
          int64_t(op.getWindow()),
          op.getSoftcap().convertToDouble(),
          lookUp(op.getBias()),
          op.getBiasBy(),
          int64_t(op.getBiasOrigin()),
          lookUp(op.getSinks())};
}

LogicalResult AttentionOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  const ReferenceBatch &batch = mapping.lookupBatch(getBatch());
  Value query = mapping.lookup(getQuery()), key = mapping.lookup(getKey()),
        value = mapping.lookup(getValue());
  int64_t kvHeads = getNumKvHeads();
  AttentionShape shape =
      getShape(*this, kvHeads, getHeadDim(), getColumns(getValue()) / kvHeads, mapping);

  mapping.map(getResult(), attend(e, query, shape, [&](Value t) -> Visible {
                Value sequence = e.indexAt(batch.sequenceOf, t), first, count;
                if (getKeys() == KeyRows::memory) {
                  first = contextStart(e, batch.memoryLengths, sequence);
                  count = e.indexAt(batch.memoryLengths, sequence);
                } else if (getKeys() == KeyRows::tokens) {
                  first = e.indexAt(batch.starts, sequence);
                  Value last =
                      getBidirectional()
                          ? e.sub(e.indexAt(batch.starts, e.add(sequence, e.index(1))), e.index(1))
                          : t;
                  count = e.add(e.sub(last, first), e.index(1));
                } else {
                  first = contextStart(e, batch.lengths, sequence);
                  count = e.add(e.indexAt(batch.positions, t), e.index(1));
                }
                auto read = [&e, first](Value rows, int64_t dim) -> Visible::Element {
                  return [&e, first, dim, rows](Value j, Value h, Value d) {
                    return e.at(rows, {e.add(first, j), e.add(e.mul(h, e.index(dim)), d)});
                  };
                };
                return {count, read(key, shape.headDim), read(value, shape.valueDim), e.index(0),
                        e.indexAt(batch.positions, t)};
              }));
  return success();
}

//===----------------------------------------------------------------------===//
// Cache: position j of sequence s is slot j % B of block table[s, j / B]
//===----------------------------------------------------------------------===//

namespace {

struct Place {
  Value block, slot;
};

} // namespace

// `table` is the block table of the cache; `cache` any tensor of it.
static Place placeOf(ReferenceBuilder &e, Value table, Value cache, Value sequence,
                     Value position) {
  Value slots = e.index(cast<RankedTensorType>(cache.getType()).getDimSize(2));
  Value entry = e.create<arith::DivUIOp>(position, slots);
  return {e.indexAt(table, {sequence, entry}), e.create<arith::RemUIOp>(position, slots)};
}

static Value groupOf(ReferenceBuilder &e, Value element) {
  return e.create<arith::DivUIOp>(element, e.index(CacheType::groupSize));
}

static Value readCache(ReferenceBuilder &e, Value table, const ReferenceRows &cache, Value sequence,
                       Value position, Value head, Value element) {
  Type f32 = Float32Type::get(table.getContext());
  Place place = placeOf(e, table, cache.elements, sequence, position);
  Value stored = e.at(cache.elements, {place.block, head, place.slot, element});
  if (!cache.scales)
    return e.toFloat(stored, f32);
  Value scale = e.at(cache.scales, {place.block, head, place.slot, groupOf(e, element)});
  return e.mul(e.create<arith::SIToFPOp>(f32, stored), e.toFloat(scale, f32));
}

// Rows [t, h, d] in 8 bits: each group has 127 steps to its largest magnitude. The step is what its
// own rounding leaves of that. A NaN makes the scale one, and so is kept; a group below the
// smallest normal number is zero.
static ReferenceRows quantise(ReferenceBuilder &e, Value rows) {
  MLIRContext *context = rows.getContext();
  Type f32 = Float32Type::get(context), scaleType = CacheType::getScaleType(context);
  ReferenceBuilder::Shape shape = e.shapeOf(rows);
  int64_t dim = cast<RankedTensorType>(rows.getType()).getDimSize(2);
  ReferenceBuilder::Shape scaleShape{shape[0], shape[1], e.size(CacheType::getGroups(dim))};
  ReferenceBuilder::Shape groupShape = scaleShape;
  groupShape.push_back(e.size(CacheType::groupSize));

  // [t, h, g, i]; a group that is not full repeats the last element.
  Value grouped = e.generic("thgi: -> thgi", {}, e.empty(groupShape), [&](ValueRange) {
    Value d = e.add(e.mul(e.loop(2), e.index(CacheType::groupSize)), e.loop(3));
    d = e.create<arith::MinUIOp>(d, e.index(dim - 1));
    return e.at(rows, {e.loop(0), e.loop(1), d});
  });
  Value largest =
      e.generic("thgi: thgi -> thg", {grouped}, e.filled(0, scaleShape), [&](ValueRange v) {
        return e.create<arith::MaximumFOp>(v[1], e.create<math::AbsFOp>(v[0]));
      });
  Value scales =
      e.generic("thg: thg -> thg", {largest}, e.empty(scaleShape, scaleType),
                [&](ValueRange v) { return e.toFloat(e.mul(v[0], e.f32(1.0f / 127)), scaleType); });
  Value elements = e.generic(
      "thd: thd -> thd", {rows}, e.empty(shape, IntegerType::get(context, 8)), [&](ValueRange v) {
        Value scale = e.toFloat(e.at(scales, {e.loop(0), e.loop(1), groupOf(e, e.loop(2))}), f32);
        Value normal = e.create<arith::CmpFOp>(arith::CmpFPredicate::OGE, scale,
                                               e.f32(std::numeric_limits<float>::min()));
        Value inverse =
            e.create<arith::SelectOp>(normal, e.div(e.f32(1), scale), e.f32(0)).getResult();
        Value code = e.create<math::RoundEvenOp>(e.mul(v[0], inverse));
        code = e.create<arith::MinNumFOp>(e.create<arith::MaxNumFOp>(code, e.f32(-127)),
                                          e.f32(127)); // a NaN becomes a number
        return e.create<arith::FPToSIOp>(IntegerType::get(context, 8), code).getResult();
      });
  return {elements, scales};
}

LogicalResult KVAppendOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  const ReferenceBatch &batch = mapping.lookupBatch(getBatch());
  const ReferenceCache &cache = mapping.lookupCache(getCache());
  CacheType type = getCache().getType();
  int64_t heads = type.getHeads();

  // Rows as the cache stores them: [t, h, d], and scales [t, h, g].
  auto stored = [&](Value rows, int64_t dim) -> ReferenceRows {
    Value x = e.splitColumns(mapping.lookup(rows), {heads, dim});
    if (type.isQuantised())
      return quantise(e, x);
    return {e.generic("thd: thd -> thd", {x}, e.empty(e.shapeOf(x), type.getElementType()),
                      [&](ValueRange v) { return e.toFloat(v[0], type.getElementType()); }),
            Value()};
  };
  SmallVector<Value> rows, tensors; // what is written, and what to
  auto add = [&](const ReferenceRows &made, const ReferenceRows &into) {
    rows.push_back(made.elements);
    tensors.push_back(into.elements);
    if (made.scales) {
      rows.push_back(made.scales);
      tensors.push_back(into.scales);
    }
  };
  add(stored(getKey(), type.getHeadDim()), cache.key);
  if (!type.getValuesInKeys())
    add(stored(getValue(), type.getValueDim()), cache.value);
  ValueRange updated =
      e.forEach(e.rowsOf(rows[0]), tensors, [&](Value t, ValueRange caches) -> SmallVector<Value> {
        Place place = placeOf(e, batch.blockTable, caches[0], e.indexAt(batch.sequenceOf, t),
                              e.indexAt(batch.positions, t));
        ReferenceBuilder::Shape offsets{place.block, e.size(0), place.slot, e.size(0)};
        ReferenceBuilder::Shape strides(4, e.size(1));
        SmallVector<Value> inserted;
        for (auto [part, into] : llvm::zip(rows, caches)) {
          ReferenceBuilder::Shape sizes{e.size(1), e.size(heads), e.size(1), e.shapeOf(part)[2]};
          inserted.push_back(
              e.create<tensor::InsertSliceOp>(e.takeRow(part, t), into, offsets, sizes, strides));
        }
        return inserted;
      });
  auto take = [&]() -> ReferenceRows {
    ReferenceRows half{updated.front(), type.isQuantised() ? updated[1] : Value()};
    updated = updated.drop_front(type.isQuantised() ? 2 : 1);
    return half;
  };
  ReferenceRows key = take();
  mapping.map(getResult(), ReferenceCache{key, updated.empty() ? key : take()});
  return success();
}

LogicalResult KVReadOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  const ReferenceBatch &batch = mapping.lookupBatch(getBatch());
  const ReferenceCache &cache = mapping.lookupCache(getCache());
  CacheType type = getCache().getType();
  OpFoldResult heads = e.size(type.getHeads());
  auto [lengths, table] = type.getMemory() ? std::pair(batch.memoryLengths, batch.memoryTable)
                                           : std::pair(batch.lengths, batch.blockTable);
  Value sequences = getValueOrCreateConstantIndexOp(builder, getLoc(), e.rowsOf(lengths));

  auto gather = [&, lengths = lengths, table = table](const ReferenceRows &source,
                                                      int64_t width) -> Value {
    OpFoldResult dim = e.size(width);
    Value all = e.empty({contextStart(e, lengths, sequences), heads, dim});
    Value rows = e.forEach(
        sequences, {all, e.index(0)}, [&](Value s, ValueRange values) -> SmallVector<Value> {
          OpFoldResult length = e.indexAt(lengths, s);
          Value own = e.generic("jhd: -> jhd", {}, e.empty({length, heads, dim}), [&](ValueRange) {
            return readCache(e, table, source, s, e.loop(0), e.loop(1), e.loop(2));
          });
          ReferenceBuilder::Shape offsets{values[1], e.size(0), e.size(0)},
              sizes{length, heads, dim};
          ReferenceBuilder::Shape strides(3, e.size(1));
          return {e.create<tensor::InsertSliceOp>(own, values[0], offsets, sizes, strides),
                  e.add(values[1], e.indexAt(lengths, s))};
        })[0];
    return e.joinColumns(rows);
  };
  mapping.map(getKey(), gather(cache.key, type.getHeadDim()));
  mapping.map(getValue(), gather(cache.value, type.getValueDim()));
  return success();
}

LogicalResult PagedAttentionOp::decompose(OpBuilder &builder, ReferenceMapping &mapping) {
  ReferenceBuilder e(builder, getLoc());
  const ReferenceBatch &batch = mapping.lookupBatch(getBatch());
  const ReferenceCache &cache = mapping.lookupCache(getCache());
  CacheType type = getCache().getType();
  AttentionShape shape =
      getShape(*this, type.getHeads(), type.getHeadDim(), type.getValueDim(), mapping);

  mapping.map(getResult(), attend(e, mapping.lookup(getQuery()), shape, [&](Value t) -> Visible {
                Value sequence = e.indexAt(batch.sequenceOf, t);
                Value table = type.getMemory() ? batch.memoryTable : batch.blockTable;
                auto read = [&, table, sequence](ReferenceRows source) -> Visible::Element {
                  return [&, table, sequence, source](Value j, Value h, Value d) {
                    return readCache(e, table, source, sequence, j, h, d);
                  };
                };
                Value position = e.indexAt(batch.positions, t);
                Value count = type.getMemory() ? e.indexAt(batch.memoryLengths, sequence)
                                               : e.add(position, e.index(1));
                return {count, read(cache.key), read(cache.value), e.index(0), position};
              }));
  return success();
}

} // namespace tenon::llm
