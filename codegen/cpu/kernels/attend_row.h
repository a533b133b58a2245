// Attention of one token (decode): the queries of one kv head's group over the token's own context.
//
// The context is cut into spans of TK_SPAN positions. A span's scores all lie in scratch, so its
// softmax needs one pass; K and V are read once for the whole group:
//
//   scores[g][j] = scale · q[g] · k[j]
//   max[g], p[j] = exp(score - max), sum[g], out[g] = Σ p[j] v[j]
//
// With bf16 instructions and a bf16 cache (heads of whole vectors) q and p are rounded to bf16 too,
// and both products take pairs: of d, and of neighbouring positions. The scales of an int8 cache
// are multiplied with sums of 32 elements of 16 keys, and with p, so that its elements need only
// become floats.
//
// Spans are merged in order, whoever computed them: the result is the same bits for any cut of the
// work.
#ifndef TENON_KERNELS_ATTEND_ROW_H
#define TENON_KERNELS_ATTEND_ROW_H

#include "cache.h"
#include "pairs.h"
#include "score_bias.h"
#include "vmath.h"

namespace {

constexpr float NegativeInfinity = -__builtin_inff();

template <int N> struct Constant {
  static constexpr int value = N;
};

// Adds neighbouring halves: the sums of `Width` lanes in each chunk of a and b become sums of Width
// / 2.
template <int Width> TK_INLINE Vec foldHalves(Vec a, Vec b) {
  return lowHalves<Width>(a, b) + highHalves<Width>(a, b);
}

// Nothing is read before this that stands behind it. Keys and values come from memory as fast as it
// gives them only where they are read in the order in which they lie: the hardware then asks for
// the next lines by itself, and better than prefetch instructions do.
TK_INLINE void inOrder() { __asm__ volatile("" ::: "memory"); }

// Dot products of q with 16 / Width consecutive rows of k, `length` floats each (or pairs of bf16),
// as Width partial sums.
template <int Width>
TK_INLINE Vec dotRows(bool pairs, const float *q, const float *k, int64_t length) {
  if constexpr (Width == 16) {
    Vec acc = 0;
    for (int64_t d = 0; d < length; d += 16)
      acc = pairs ? addPairs(acc, load(q + d), load(k + d)) : acc + load(q + d) * load(k + d);
    inOrder();
    return acc;
  } else {
    constexpr int Rows = 16 / Width;
    return foldHalves<2 * Width>(dotRows<2 * Width>(pairs, q, k, length),
                                 dotRows<2 * Width>(pairs, q, k + Rows / 2 * length, length));
  }
}

// What one row needs of its shape, and its part of scratch.
struct RowAttention {
  const tk_attention_shape &s;
  const float *bias; // null: none
  Cache cache;
  const int32_t *blocks;
  int64_t head;            // kv head
  int64_t firstQuery;      // head of query 0
  int64_t group, dim;      // queries; head_dim rounded up to 16
  int64_t valueDim;        // rounded up likewise
  int64_t first, position; // the first visible position, and the last
  bool pairs;
  float *q; // [group][dim], scaled, zeros behind head_dim; with `pairs` [group][dim / 2]
  float *acc, *max, *sum; // the merged result: [group][valueDim], [group], [group]
  float *spanAcc, *spanMax, *spanSum;
  float *keys;    // [TENON_BLOCK_TOKENS][dim]
  float *scores;  // [group][TK_SPAN], then exp(score - max); with `pairs` the latter in bf16
  float *weights; // int8: p times scales, of a block; see addValues
};

TK_INLINE RowAttention rowAttention(const tk_attention_shape &s, void *pool, const float *bias,
                                    const tenon_env *env, int64_t row, int64_t head) {
  const tenon_batch &batch = *env->batch;
  int64_t group = s.heads / s.kv_heads, dim = tk_round_up(s.head_dim, 16);
  int64_t width = tk_value_dim(s.head_dim, s.value_dim), valueDim = tk_round_up(width, 16);
  int64_t position = tk_last_visible(&s, &batch, row);
  int64_t first = tk_first_visible(&s, position);
  Cache cache = {(char *)pool, keyBlockCount(s, env), s.kv_heads, s.head_dim, s.kv_dtype,
                 width,        s.values_in_keys};
  float *q = (float *)env->scratch;
  float *acc = q + group * dim, *spanAcc = acc + group * valueDim;
  float *keys = spanAcc + group * valueDim;
  float *scores = keys + TENON_BLOCK_TOKENS * dim;
  float *max = scores + group * TK_SPAN;
  return {s,
          bias,
          cache,
          tk_key_blocks_of(&s, &batch, batch.sequence_of[row]),
          head,
          head * group,
          group,
          dim,
          valueDim,
          first,
          position,
          HasPairs && s.kv_dtype == TENON_BF16 && s.head_dim % 32 == 0 && width % 32 == 0,
          q,
          acc,
          max,
          max + group,
          spanAcc,
          max + 2 * group,
          max + 3 * group,
          keys,
          scores,
          max + 4 * group};
}

// Query i of the group, scaled.
TK_INLINE void setQuery(const RowAttention &a, int64_t i, const float *q) {
  for (int64_t d = 0; d < a.dim; d += 16) {
    Vec scaled = load(q + d, least(16, a.s.head_dim - d)) * a.s.scale;
    if (a.pairs)
      storeElements(TENON_BF16, (char *)a.q + (i * a.dim + d) * 2, scaled);
    else
      store(a.q + i * a.dim + d, scaled);
  }
}

// out[i] = Σ_j p[i][j] v[j] for Rows queries and the 16 · Chunks elements at column d.
template <int Rows, int Chunks>
TK_INLINE void addValues(const RowAttention &a, int64_t begin, int64_t end, const float *p,
                         int64_t d, float *out) {
  const Cache &cache = a.cache;
  bool isScaled = cache.dtype == TENON_I8;
  Vec acc[Rows][Chunks];
#pragma unroll
  for (int i = 0; i < Rows; ++i)
#pragma unroll
    for (int c = 0; c < Chunks; ++c)
      acc[i][c] = 0;
  for (int64_t j = begin; j < end;) {
    int64_t block = j / TENON_BLOCK_TOKENS, stop = least(end, (block + 1) * TENON_BLOCK_TOKENS);
    BlockRows v = cache.values(a.blocks[block], a.head);
    int64_t first = block * TENON_BLOCK_TOKENS, slots = TK_SPAN;
    const float *weights = p + first % TK_SPAN; // [Rows][slots]
    if (isScaled) {                             // times the scales, for each two chunks
      slots = TENON_BLOCK_TOKENS;
#pragma unroll
      for (int c = 0; c < Chunks; c += 2)
#pragma unroll
        for (int i = 0; i < Rows; ++i)
          store(a.weights + (c / 2 * Rows + i) * slots,
                load(weights + i * TK_SPAN) * v.loadScales(d + 16 * c));
      weights = a.weights;
    }
    for (; j < stop; ++j)
#pragma unroll
      for (int c = 0; c < Chunks; ++c) {
        Vec x = v.loadCodes(j - first, d + 16 * c, least(16, cache.valueDim - d - 16 * c));
        int group = isScaled ? c / 2 : 0;
#pragma unroll
        for (int i = 0; i < Rows; ++i)
          acc[i][c] = acc[i][c] + x * weights[(group * Rows + i) * slots + j - first];
      }
  }
#pragma unroll
  for (int i = 0; i < Rows; ++i)
#pragma unroll
    for (int c = 0; c < Chunks; ++c)
      store(out + i * a.valueDim + d + 16 * c, acc[i][c]);
}

// The same for pairs of positions and 32 · Chunks elements; p holds bf16.
template <int Rows, int Chunks>
TK_INLINE void addValuePairs(const RowAttention &a, int64_t begin, int64_t end, const float *p,
                             int64_t d, float *out) {
  const Cache &cache = a.cache;
  Vec acc[Rows][2 * Chunks];
#pragma unroll
  for (int i = 0; i < Rows; ++i)
#pragma unroll
    for (int c = 0; c < 2 * Chunks; ++c)
      acc[i][c] = 0;
  for (int64_t j = begin / 2 * 2; j < end;) {
    int64_t block = j / TENON_BLOCK_TOKENS, stop = least(end, (block + 1) * TENON_BLOCK_TOKENS);
    BlockRows rows = cache.values(a.blocks[block], a.head);
    const char *v = rows.row(j % TENON_BLOCK_TOKENS) + d * 2;
    for (; j < stop; j += 2, v += 2 * rows.rowBytes()) {
      bool hasLow = j >= begin, hasHigh = j + 1 < end; // what was never written may be NaN
      PairVec low[Chunks], high[Chunks];
#pragma unroll
      for (int c = 0; c < Chunks; ++c)
        low[c] = hasLow ? loadAs<PairVec>(v + 64 * c) : (PairVec)0;
#pragma unroll
      for (int c = 0; c < Chunks; ++c)
        high[c] = hasHigh ? loadAs<PairVec>(v + rows.rowBytes() + 64 * c) : (PairVec)0;
      inOrder();
#pragma unroll
      for (int c = 0; c < Chunks; ++c) {
        Vec x = pairLow(low[c], high[c]), y = pairHigh(low[c], high[c]);
#pragma unroll
        for (int i = 0; i < Rows; ++i) {
          Vec weight = p[i * TK_SPAN + j % TK_SPAN / 2];
          acc[i][2 * c] = addPairs(acc[i][2 * c], x, weight);
          acc[i][2 * c + 1] = addPairs(acc[i][2 * c + 1], y, weight);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < Rows; ++i)
#pragma unroll
    for (int c = 0; c < 2 * Chunks; ++c)
      store(out + i * a.valueDim + d + 16 * c, acc[i][c]);
}

// Σ p v of queries i .. i + Rows - 1, as many columns at a time as the registers hold.
template <int Rows>
TK_INLINE void spanValues(const RowAttention &a, int64_t i, int64_t begin, int64_t end) {
  constexpr int Wide = TK_LANES == 16 ? 4 : 1;
  const float *p = a.scores + i * TK_SPAN;
  int64_t dim = a.valueDim, d = 0;
  float *out = a.spanAcc + i * dim;
  if (a.pairs) {
    for (; d + 64 <= dim; d += 64)
      addValuePairs<Rows, 2>(a, begin, end, p, d, out);
    for (; d < dim; d += 32)
      addValuePairs<Rows, 1>(a, begin, end, p, d, out);
    return;
  }
  for (; d + 16 * Wide <= dim; d += 16 * Wide)
    addValues<Rows, Wide>(a, begin, end, p, d, out);
  for (; d < dim; d += 16)
    addValues<Rows, 1>(a, begin, end, p, d, out);
}

// Dot products of queries i .. i + Rows - 1 with 16 keys that lie by element.
template <int Rows>
TK_INLINE void scoreByElement(const RowAttention &a, const BlockRows &k, int64_t i, float *scores) {
  const float *q = a.q + i * a.dim;
  Vec total[Rows];
#pragma unroll
  for (int r = 0; r < Rows; ++r)
    total[r] = 0;
  for (int64_t d = 0; d < k.dim; d += TENON_CACHE_GROUP) {
    Vec even[Rows], odd[Rows]; // sums that do not wait for each other
#pragma unroll
    for (int r = 0; r < Rows; ++r)
      even[r] = odd[r] = 0;
    int64_t end = least(d + TENON_CACHE_GROUP, k.dim);
    for (int64_t e = d; e < end; e += 2) {
      Vec x = k.loadCodes(e), y = e + 1 < end ? k.loadCodes(e + 1) : (Vec)0.0f;
#pragma unroll
      for (int r = 0; r < Rows; ++r) {
        even[r] = even[r] + x * q[r * a.dim + e];
        odd[r] = odd[r] + y * q[r * a.dim + e + 1];
      }
    }
    Vec scale = k.loadScales(d);
#pragma unroll
    for (int r = 0; r < Rows; ++r)
      total[r] = total[r] + (even[r] + odd[r]) * scale;
  }
#pragma unroll
  for (int r = 0; r < Rows; ++r)
    store(scores + (i + r) * TK_SPAN, total[r]);
}

// Calls f(i, rows) for the queries of a group, four at a time and then the others; `rows` is a
// constant.
template <class F> TK_INLINE void forQueries(int64_t group, F f) {
  int64_t i = 0;
  for (; i + 4 <= group; i += 4)
    f(i, Constant<4>());
  if (group % 4 == 3)
    f(i, Constant<3>());
  if (group % 4 == 2)
    f(i, Constant<2>());
  if (group % 4 == 1)
    f(i, Constant<1>());
}

// One span into spanAcc (not divided by the sum), spanMax, spanSum.
TK_INLINE void attendSpan(const RowAttention &a, int64_t span) {
  const Cache &cache = a.cache;
  int64_t begin = most(a.first, span * TK_SPAN), end = least(a.position + 1, (span + 1) * TK_SPAN);
  const IVec lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  int64_t firstBlock = begin / TENON_BLOCK_TOKENS, lastBlock = (end - 1) / TENON_BLOCK_TOKENS;

  for (int64_t b = firstBlock; b <= lastBlock; ++b) {
    BlockRows k = cache.keys(a.blocks[b], a.head);
    int64_t at = b * TENON_BLOCK_TOKENS;
    if (k.byElement)
      forQueries(a.group, [&](int64_t i, auto rows) __attribute__((always_inline)) {
        scoreByElement<rows.value>(a, k, i, a.scores + at % TK_SPAN);
      });
    else if (!a.pairs)
      for (int64_t j = 0; j < TENON_BLOCK_TOKENS; ++j)
        for (int64_t d = 0; d < a.dim; d += 16)
          store(a.keys + j * a.dim + d, k.load(j, d, least(16, a.s.head_dim - d)));
    IVec position = lane + (int32_t)at;
    for (int64_t i = 0; i < a.group; ++i) {
      Vec score = k.byElement ? load(a.scores + i * TK_SPAN + at % TK_SPAN)
                  : a.pairs
                      ? dotRows<1>(true, a.q + i * a.dim / 2, (const float *)k.row(0), a.dim / 2)
                      : dotRows<1>(false, a.q + i * a.dim, a.keys, a.dim);
      if (a.s.softcap != 0)
        score = a.s.softcap * hyperbolicTangent(score / a.s.softcap);
      if (a.s.bias)
        score = score + biasOfKeys(a.s, a.bias, a.firstQuery + i, at, a.position);
      score = position >= (int32_t)begin ? score : NegativeInfinity;
      score = position < (int32_t)end ? score : NegativeInfinity;
      store(a.scores + i * TK_SPAN + at % TK_SPAN, score);
    }
  }

  int64_t from = firstBlock * TENON_BLOCK_TOKENS % TK_SPAN;
  int64_t to = from + (lastBlock - firstBlock + 1) * TENON_BLOCK_TOKENS;
  for (int64_t i = 0; i < a.group; ++i) {
    float *scores = a.scores + i * TK_SPAN;
    Vec largest = NegativeInfinity, total = 0;
    for (int64_t j = from; j < to; j += 16)
      largest = greater(load(scores + j), largest);
    float max = __builtin_reduce_max(largest);
    for (int64_t j = from; j < to; j += 16) {
      Vec p = exponential(load(scores + j) - max);
      total = total + p;
      if (a.pairs)
        storeElements(TENON_BF16, (char *)scores + j * 2, p);
      else
        store(scores + j, p);
    }
    a.spanMax[i] = max;
    a.spanSum[i] = sum(total);
  }

  forQueries(a.group, [&](int64_t i, auto rows) __attribute__((always_inline)) {
    spanValues<rows.value>(a, i, begin, end);
  });
}

// acc, max, sum of one query joined with those of the next span.
TK_INLINE void mergeSpan(int64_t headDim, float *acc, float &max, float &sum, const float *spanAcc,
                         float spanMax, float spanSum) {
  float newMax = max > spanMax ? max : spanMax;
  Vec differences = 0;
  differences[0] = max - newMax;
  differences[1] = spanMax - newMax;
  Vec weights = exponential(differences);
  for (int64_t d = 0; d < headDim; d += 16) {
    int64_t n = least(16, headDim - d);
    Vec mine = load(acc + d, n) * weights[0];
    store(acc + d, mine + load(spanAcc + d, n) * weights[1], n);
  }
  sum = sum * weights[0] + spanSum * weights[1];
  max = newMax;
}

TK_INLINE void beginMerge(int64_t headDim, float *acc, float &max, float &sum) {
  for (int64_t d = 0; d < headDim; ++d)
    acc[d] = 0;
  max = NegativeInfinity;
  sum = 0;
}

TK_INLINE void writeResult(int64_t headDim, const float *acc, float sum, float *out) {
  for (int64_t d = 0; d < headDim; d += 16) {
    int64_t n = least(16, headDim - d);
    store(out + d, load(acc + d, n) / sum, n);
  }
}

// The softmax's denominator: a sink is one more score.
TK_INLINE float addSink(const float *sinks, int64_t head, float max, float sum) {
  return sinks ? sum + exponential((Vec)(sinks[head] - max))[0] : sum;
}

// Spans in order, on this thread alone. `out` is row 0 of the group's first head.
TK_INLINE void attendRow(const RowAttention &a, const float *sinks, float *out) {
  int64_t width = a.cache.valueDim;
  for (int64_t i = 0; i < a.group; ++i)
    beginMerge(width, a.acc + i * a.valueDim, a.max[i], a.sum[i]);
  for (int64_t span = a.first / TK_SPAN; span <= a.position / TK_SPAN; ++span) {
    attendSpan(a, span);
    for (int64_t i = 0; i < a.group; ++i)
      mergeSpan(width, a.acc + i * a.valueDim, a.max[i], a.sum[i], a.spanAcc + i * a.valueDim,
                a.spanMax[i], a.spanSum[i]);
  }
  for (int64_t i = 0; i < a.group; ++i)
    writeResult(width, a.acc + i * a.valueDim, addSink(sinks, a.firstQuery + i, a.max[i], a.sum[i]),
                out + i * width);
}

// ── sharing out ────────────────────────────────────────────────────────────────────────────────

// How many queries of a group one thread takes, if several may read a key head at once: fewer where
// there are fewer key heads than threads.
TK_INLINE int64_t queriesOfThread(const tk_attention_shape &s, const tenon_env *env) {
  int64_t group = s.heads / s.kv_heads, items = env->batch->tokens * s.kv_heads;
  if (items >= env->threads)
    return group;
  return least(group, tk_round_up((group * items + env->threads - 1) / env->threads, 4));
}

// The spans of the whole batch in the order (row, kv head, span): what attention's work is counted
// in.
struct Spans {
  const tk_attention_shape &s;
  const tenon_env *env;

  __attribute__((always_inline)) int64_t first(int64_t row) const {
    return tk_first_visible(&s, tk_last_visible(&s, env->batch, row)) / TK_SPAN;
  }
  // Of one head.
  __attribute__((always_inline)) int64_t count(int64_t row) const {
    return tk_last_visible(&s, env->batch, row) / TK_SPAN - first(row) + 1;
  }
  __attribute__((always_inline)) int64_t total() const {
    int64_t spans = 0;
    for (int64_t row = 0; row < env->batch->tokens; ++row)
      spans += count(row) * s.kv_heads;
    return spans;
  }
  // Where a thread that works on span `item` left its result: a row of value_dim sums, then max and
  // sum, for each query of the group. Scratches lie one after another.
  __attribute__((always_inline)) float *partials(int64_t item, int64_t total) const {
    int64_t owner = ((item + 1) * env->threads - 1) / total;
    char *scratch = env->scratch + (owner - env->thread) * env->scratch_stride;
    int64_t slot = item - total * owner / env->threads;
    return (float *)(scratch + tk_attention_row_bytes(&s) + slot * tk_attention_span_bytes(&s));
  }
};

// Rows and heads that are few are cut between spans, so that all threads have as much to do.
template <class F>
TK_INLINE void attendSplit(const Spans &spans, int64_t total, void *pool, const float *bias,
                           const float *sinks, float *out, F prepare) {
  const tk_attention_shape &s = spans.s;
  const tenon_env *env = spans.env;
  int64_t rows = env->batch->tokens, group = s.heads / s.kv_heads;
  int64_t width = tk_value_dim(s.head_dim, s.value_dim);
  Range share = shareOf(total, env);
  int64_t item = 0;
  for (int64_t row = 0; row < rows && item < share.end; ++row) {
    int64_t count = spans.count(row), firstSpan = spans.first(row);
    int64_t from = most(share.begin - item, 0), to = least(share.end - item, count * s.kv_heads);
    for (int64_t i = from; i < to; ++i) {
      RowAttention a = rowAttention(s, pool, bias, env, row, i / count);
      int64_t span = firstSpan + i % count;
      // The owner of the last span is the only one that reads the new key.
      prepare(a, row, span == a.position / TK_SPAN);
      attendSpan(a, span);
      float *to = spans.partials(item + i, total);
      for (int64_t q = 0; q < group; ++q, to += width + 2) {
        for (int64_t d = 0; d < width; d += 16) {
          int64_t n = least(16, width - d);
          store(to + d, load(a.spanAcc + q * a.valueDim + d, n), n);
        }
        to[width] = a.spanMax[q];
        to[width + 1] = a.spanSum[q];
      }
    }
    item += count * s.kv_heads;
  }
  env->services->barrier(env);
  Range heads = shareOf(rows * s.heads, env);
  item = 0;
  for (int64_t row = 0; row < rows && row * s.heads < heads.end; ++row) {
    int64_t count = spans.count(row);
    int64_t from = most(heads.begin - row * s.heads, 0);
    int64_t to = least(heads.end - row * s.heads, s.heads);
    for (int64_t head = from; head < to; ++head) {
      float *acc = (float *)env->scratch, max, sum;
      beginMerge(width, acc, max, sum);
      for (int64_t span = 0; span < count; ++span) {
        const float *p =
            spans.partials(item + head / group * count + span, total) + head % group * (width + 2);
        mergeSpan(width, acc, max, sum, p, p[width], p[width + 1]);
      }
      writeResult(width, acc, addSink(sinks, head, max, sum),
                  out + row * s.out_stride + head * width);
    }
    item += count * s.kv_heads;
  }
}

// Decode attention of the whole batch, at least `queries` of a group at a time. prepare(attention,
// row, appends) loads the queries, and appends the new key and value if asked to.
template <class F>
TK_INLINE void attendBatch(const tk_attention_shape &s, void *pool, const float *bias,
                           const float *sinks, float *out, const tenon_env *env, int64_t queries,
                           F prepare) {
  Spans spans = {s, env};
  int64_t rows = env->batch->tokens, pairs = rows * s.kv_heads, total = spans.total();
  if (s.context && total > pairs && env->threads > 1 && pairs < TK_SPLIT_PAIRS * env->threads)
    return attendSplit(spans, total, pool, bias, sinks, out, prepare);
  int64_t group = s.heads / s.kv_heads, runs = (group + queries - 1) / queries;
  // A pair of row and kv head belongs to whose share its first span lies in.
  Range share = shareOf(total * runs, env);
  int64_t item = 0;
  for (int64_t row = 0; row < rows && item < share.end; ++row) {
    int64_t count = spans.count(row);
    for (int64_t i = 0; i < s.kv_heads * runs; ++i, item += count) {
      if (item < share.begin || item >= share.end)
        continue;
      int64_t first = i % runs * queries;
      RowAttention a = rowAttention(s, pool, bias, env, row, i / runs);
      a.firstQuery += first;
      a.group = least(queries, group - first);
      prepare(a, row, true);
      attendRow(a, sinks, out + row * s.out_stride + a.firstQuery * a.cache.valueDim);
    }
  }
}

} // namespace

#endif // TENON_KERNELS_ATTEND_ROW_H
