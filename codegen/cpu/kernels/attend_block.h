// Attention of many tokens (prefill), in the manner of flash attention: 64 query rows of one kv
// head's group against 64 keys at a time, with a running maximum.
//
// Query rows are the lanes of the vectors, so softmax needs no sums across lanes, and K and V are
// read as they lie in the cache:
//
//   scores[key][row] = Σ_d K[key][d] · q[d][row]
//   result[d][row]  += Σ_key V[key][d] · p[key][row]
//
// Both are the same product C[m][row] = Σ_k A[m][k] · B[k][row] with A's elements broadcast. Query
// rows are (token, head of the group) pairs, 64 of them at a time across tokens. Steps begin at
// multiples of 64 of the position and lanes never mix, so a row's result does not depend on the
// rows beside it.
//
// With bf16 instructions and a bf16 or int8 cache, both products take pairs of bf16 along k: pairs
// of d for the scores, so that K of bf16 is read where it lies, and pairs of keys for the result,
// with V's rows interleaved.
#ifndef TENON_KERNELS_ATTEND_BLOCK_H
#define TENON_KERNELS_ATTEND_BLOCK_H

#include "cache.h"
#include "pairs.h"
#include "score_bias.h"
#include "vmath.h"

namespace {

constexpr int64_t Queries = TK_ATTENTION_QUERIES, Keys = TK_ATTENTION_KEYS;
constexpr int LaneVectors = Queries / 16;

// Four rows of C, `Vectors` vectors wide, `Queries` floats apart. With `scale` (a vector for each
// of B's): C = C · scale + A · B. With `pairs`, a float of A and of B is a pair of bf16.
template <int Vectors>
TK_INLINE void multiplyRows(bool pairs, const float *a, int64_t rowStride, int64_t kStride,
                            int64_t depth, const float *b, float *c, const float *scale) {
  Vec acc[4][Vectors];
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int v = 0; v < Vectors; ++v)
      acc[i][v] = scale ? load(c + i * Queries + 16 * v) * load(scale + 16 * v) : (Vec)0.0f;
  for (int64_t k = 0; k < depth; ++k) {
    Vec x[Vectors];
#pragma unroll
    for (int v = 0; v < Vectors; ++v)
      x[v] = load(b + k * Queries + 16 * v);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float y = a[i * rowStride + k * kStride];
#pragma unroll
      for (int v = 0; v < Vectors; ++v)
        acc[i][v] = pairs ? addPairs(acc[i][v], x[v], y) : acc[i][v] + x[v] * y;
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int v = 0; v < Vectors; ++v)
      store(c + i * Queries + 16 * v, acc[i][v]);
}

// C [rows, 16 · vectors]; rows is a multiple of 4.
TK_INLINE void multiply(bool pairs, const float *a, int64_t rowStride, int64_t kStride,
                        int64_t depth, int64_t rows, const float *b, int vectors, float *c,
                        const float *scale) {
  constexpr int Wide = TK_LANES == 16 ? 4 : 1;
  for (int64_t i = 0; i < rows; i += 4) {
    const float *ai = a + i * rowStride;
    float *ci = c + i * Queries;
    int v = 0;
    for (; v + Wide <= vectors; v += Wide)
      multiplyRows<Wide>(pairs, ai, rowStride, kStride, depth, b + 16 * v, ci + 16 * v,
                         scale ? scale + 16 * v : nullptr);
    if (Wide > 1)
      for (; v < vectors; ++v)
        multiplyRows<1>(pairs, ai, rowStride, kStride, depth, b + 16 * v, ci + 16 * v,
                        scale ? scale + 16 * v : nullptr);
  }
}

// Where keys and values are: in the cache, or in rows of the batch's tokens.
struct KeyRows {
  void *pool;
  const float *rows[2] = {nullptr, nullptr}; // keys, values
};

// 64 positions from `first` on, of which begin .. end - 1 may be read.
struct Step {
  const Cache &cache;
  const int32_t *blocks;
  int64_t head, first, begin, end;
  const float *rows[2]; // of the sequence; null when they are in the cache
  int64_t strides[2];

  __attribute__((always_inline)) bool has(int64_t position) const {
    return position >= begin && position < end;
  }
  __attribute__((always_inline)) BlockRows cached(bool values, int64_t position) const {
    int64_t block = blocks[position / TENON_BLOCK_TOKENS];
    return values ? cache.values(block, head) : cache.keys(block, head);
  }
  // 16 elements from d on; zeros where the position may not be read, and behind the head.
  __attribute__((always_inline)) Vec load(bool values, int64_t position, int64_t d) const {
    int64_t n = least(16, (values ? cache.valueDim : cache.headDim) - d);
    if (!has(position))
      return 0;
    if (rows[0])
      return ::load(rows[values] + position * strides[values] + head * cache.headDim + d, n);
    return cached(values, position).load(position % TENON_BLOCK_TOKENS, d, n);
  }
};

// Keys or values as f32 [64][dim].
TK_INLINE void loadRows(const Step &step, bool values, int64_t dim, float *out) {
  for (int64_t j = 0; j < Keys; ++j)
    for (int64_t d = 0; d < dim; d += 16)
      store(out + j * dim + d, step.load(values, step.first + j, d));
}

// Keys as pairs of d [64][dim / 2].
TK_INLINE void loadKeyPairs(const Step &step, int64_t dim, float *out) {
  for (int64_t j = 0; j < Keys; ++j)
    for (int64_t d = 0; d < dim; d += 16)
      storeElements(TENON_BF16, (char *)(out + (j * dim + d) / 2),
                    step.load(false, step.first + j, d));
}

// Values as pairs of positions [32][dim]. Those of bf16 are interleaved as they lie.
TK_INLINE void loadValuePairs(const Step &step, int64_t dim, float *out) {
  bool asTheyLie = !step.rows[0] && step.cache.dtype == TENON_BF16 && step.cache.valueDim % 32 == 0;
  for (int64_t j = 0; j < Keys; j += 2) {
    int64_t position = step.first + j;
    float *pairs = out + j / 2 * dim;
    if (asTheyLie && step.has(position) && step.has(position + 1)) {
      BlockRows block = step.cached(true, position);
      const char *a = (const char *)block.row(position % TENON_BLOCK_TOKENS),
                 *b = (const char *)block.row(position % TENON_BLOCK_TOKENS + 1);
      for (int64_t d = 0; d < dim; d += 32) {
        PairVec x = loadAs<PairVec>(a + 2 * d), y = loadAs<PairVec>(b + 2 * d);
        store(pairs + d, pairLow(x, y));
        store(pairs + d + 16, pairHigh(x, y));
      }
      continue;
    }
    for (int64_t d = 0; d < dim; d += 16)
      store(pairs + d, pairUp(step.load(true, position, d), step.load(true, position + 1, d)));
  }
}

// 16 keys that lie by element, as f32 [dim][16] or as pairs of d [dim / 2][16].
TK_INLINE void loadByElement(const BlockRows &k, bool pairs, int64_t dim, float *out) {
  for (int64_t d = 0; d < dim; d += 2) {
    Vec scale = k.loadScales(least(d, k.dim - 1));
    Vec low = d < k.dim ? k.loadCodes(d) * scale : (Vec)0.0f;
    Vec high = d + 1 < k.dim ? k.loadCodes(d + 1) * scale : (Vec)0.0f;
    if (pairs) {
      store(out + 8 * d, pairUp(low, high));
    } else {
      store(out + 16 * d, low);
      store(out + 16 * d + 16, high);
    }
  }
}

// Scores of 64 keys, block by block: of bf16 keys that are read where they lie, as pairs of d, and
// of keys that lie by element. Blocks that may not be read score 0; they are masked like every key
// out of sight.
TK_INLINE void scoreBlocks(const Step &step, bool pairs, int64_t dim, const float *queries,
                           int vectors, float *keys, float *scores) {
  for (int64_t j = 0; j < Keys; j += TENON_BLOCK_TOKENS) {
    int64_t position = step.first + j;
    float *out = scores + j * Queries;
    if (position + TENON_BLOCK_TOKENS <= step.begin || position >= step.end) {
      for (int64_t i = 0; i < TENON_BLOCK_TOKENS * Queries; i += 16)
        store(out + i, (Vec)0.0f);
      continue;
    }
    BlockRows k = step.cached(false, position);
    if (k.byElement) {
      loadByElement(k, pairs, dim, keys);
      multiply(pairs, keys, 1, 16, pairs ? dim / 2 : dim, TENON_BLOCK_TOKENS, queries, vectors, out,
               nullptr);
    } else {
      multiply(true, (const float *)k.row(0), k.dim / 2, 1, k.dim / 2, TENON_BLOCK_TOKENS, queries,
               vectors, out, nullptr);
    }
  }
}

// Rows firstRow .. firstRow + rows - 1 of a sequence's (token, head of the group) pairs.
TK_INLINE void attendBlock(const tk_attention_shape &s, const float *q, const KeyRows &source,
                           const float *bias, const float *sinks, float *out, const tenon_env *env,
                           int64_t sequence, int64_t head, int64_t firstRow, int64_t rows) {
  const tenon_batch &batch = *env->batch;
  int64_t width = tk_value_dim(s.head_dim, s.value_dim), valueDim = tk_round_up(width, 16);
  Cache cache = {
      (char *)source.pool, keyBlockCount(s, env), s.kv_heads, s.head_dim, s.kv_dtype, width,
      s.values_in_keys};
  bool isCached = s.keys != TK_KEYS_TOKENS;
  const int32_t *blocks = isCached ? tk_key_blocks_of(&s, &batch, sequence) : nullptr;
  int64_t group = s.heads / s.kv_heads, dim = tk_round_up(s.head_dim, 16);
  int64_t firstToken = batch.starts[sequence];
  int vectors = (int)((rows + 15) / 16);
  bool inPlace = s.kv_dtype == TENON_BF16 && s.head_dim % 2 == 0; // keys as they lie are pairs
  bool pairs = HasPairs && (inPlace || s.kv_dtype == TENON_I8);

  float *queries = (float *)env->scratch;           // [dim][64]
  float *result = queries + dim * Queries;          // [valueDim][64]
  float *keys = result + valueDim * Queries;        // [64][dim]
  float *values = keys + Keys * dim;                // [64][valueDim]
  float *scores = values + Keys * valueDim;         // [64 keys][64]
  float *maxima = scores + Keys * Queries;          // [64]
  float *sums = maxima + Queries;                   // [64]
  int32_t *positions = (int32_t *)(sums + Queries); // [64], the last that a row sees
  int32_t own[Queries];

  for (int64_t i = 0; i < valueDim * Queries; i += 16)
    store(result + i, (Vec)0.0f);
  for (int64_t i = 0; i < Queries; ++i) {
    maxima[i] = -1e30f; // finite, so that rows which have not met a visible key yet stay finite
    sums[i] = 0;
    int64_t token = firstToken + (firstRow + least(i, rows - 1)) / group;
    positions[i] = (int32_t)tk_last_visible(&s, &batch, token);
    own[i] = batch.positions[token];
  }
  for (int64_t i = 0; i < 16 * vectors; i += 16)
    for (int64_t d = 0; d < dim; d += 16) {
      Vec square[16];
      for (int64_t r = 0; r < 16; ++r) {
        int64_t token = firstToken + (firstRow + i + r) / group;
        const float *x =
            q + token * s.q_stride + (head * group + (firstRow + i + r) % group) * s.head_dim + d;
        square[r] = i + r < rows ? load(x, least(16, s.head_dim - d)) * s.scale : (Vec)0.0f;
      }
      transpose(square);
      for (int64_t r = 0; r < 16; ++r)
        store(queries + (d + r) * Queries + i, square[r]);
    }
  if (pairs)
    for (int64_t d = 0; d < dim / 2; ++d)
      for (int64_t i = 0; i < Queries; i += 16)
        store(queries + d * Queries + i, pairUp(load(queries + 2 * d * Queries + i),
                                                load(queries + (2 * d + 1) * Queries + i)));
  int64_t lowest = positions[0], highest = positions[rows - 1];
  int64_t begin = tk_first_visible(&s, lowest), end = highest + 1;

  for (int64_t first = begin / Keys * Keys; first < end; first += Keys) {
    Step step = {cache, blocks, head, first, begin, end, {nullptr, nullptr}, {0, 0}};
    if (!isCached) {
      step.strides[0] = s.k_stride, step.strides[1] = s.v_stride;
      for (int i = 0; i < 2; ++i)
        step.rows[i] = source.rows[i] + firstToken * step.strides[i];
    }
    if (isCached && ((pairs && inPlace) || cache.keysByElement())) {
      scoreBlocks(step, pairs, dim, queries, vectors, keys, scores);
    } else {
      int64_t depth = pairs ? dim / 2 : dim;
      if (pairs)
        loadKeyPairs(step, dim, keys);
      else
        loadRows(step, false, dim, keys);
      multiply(pairs, keys, depth, 1, depth, Keys, queries, vectors, scores, nullptr);
    }
    if (pairs)
      loadValuePairs(step, valueDim, values);
    else
      loadRows(step, true, valueDim, values);

    // Keys that any row sees, in pairs.
    int64_t seen = least(Keys, tk_round_up(end - first, 2));
    bool whole = first + Keys - 1 <= lowest && (!s.window || first > highest - s.window);
    float scales[Queries];
    BlockBias blockBias(s, bias, head, firstRow, own, first);
    for (int v = 0; v < vectors; ++v) {
      IVec position = loadAs<IVec>(positions + 16 * v);
      Vec old = load(maxima + 16 * v), largest = old;
      for (int64_t j = 0; j < seen; ++j) {
        Vec score = load(scores + j * Queries + 16 * v);
        if (s.softcap != 0)
          score = s.softcap * hyperbolicTangent(score / s.softcap);
        if (s.bias)
          score = score + blockBias.at(j, 16 * v);
        if (!whole) {
          int32_t key = (int32_t)(first + j);
          score = position >= key ? score : -__builtin_inff();
          if (s.window)
            score = position - s.window < key ? score : -__builtin_inff();
        }
        if (s.softcap != 0 || s.bias || !whole)
          store(scores + j * Queries + 16 * v, score);
        largest = greater(score, largest);
      }
      Vec scale = exponential(old - largest), total = load(sums + 16 * v) * scale;
      for (int64_t j = 0; j < seen; j += 2) {
        float *at = scores + j * Queries + 16 * v;
        Vec low = load(at) - largest, high = load(at + Queries) - largest;
        low = pairs ? exponentialForBf16(low) : exponential(low);
        high = pairs ? exponentialForBf16(high) : exponential(high);
        total = total + low;
        total = total + high;
        if (pairs) { // [32][64], over what has been read
          store(scores + j / 2 * Queries + 16 * v, pairUp(low, high));
        } else {
          store(at, low);
          store(at + Queries, high);
        }
      }
      store(scales + 16 * v, scale);
      store(maxima + 16 * v, largest);
      store(sums + 16 * v, total);
    }
    multiply(pairs, values, 1, valueDim, pairs ? seen / 2 : seen, valueDim, scores, vectors, result,
             scales);
  }

  for (int64_t i = 0; i < rows; i += 16) {
    Vec total = load(sums + i);
    if (sinks) {
      Vec sink;
      for (int64_t r = 0; r < 16; ++r)
        sink[r] = sinks[head * group + (firstRow + i + r) % group];
      total = total + exponential(sink - load(maxima + i));
    }
    Vec inverse = 1.0f / total;
    for (int64_t d = 0; d < valueDim; d += 16) {
      Vec square[16];
      for (int64_t r = 0; r < 16; ++r)
        square[r] = load(result + (d + r) * Queries + i) * inverse;
      transpose(square);
      for (int64_t r = 0; r < least(16, rows - i); ++r) {
        int64_t token = firstToken + (firstRow + i + r) / group;
        int64_t queryHead = head * group + (firstRow + i + r) % group;
        store(out + token * s.out_stride + queryHead * width + d, square[r], least(16, width - d));
      }
    }
  }
}

} // namespace

#endif // TENON_KERNELS_ATTEND_BLOCK_H
