// Attention of one row (decode, and whatever has no kernel of tiles): a block takes the queries of
// one kv head's group, up to 32, over its share of the context's spans. K and V are read once for
// all of them.
//
//   span by span:  scores[q][j] = scale · q · k[j]     in shared memory
//                  max, factor = exp(old max - max), p = exp(score - max), sum = sum · factor + Σ p
//                  acc[q] = acc[q] · factor + Σ_j p[j] v[j]     in registers
//
// The shares of a row, and the order in which they are merged, depend on the row's own length and
// on the shape: so do its bits.
//
// Eight warps score 32 keys of a span each. Sums over values are shared out by columns and, where
// those are few, by positions; what several warps have of one column is added at the end.
#ifndef TENON_CODEGEN_CUDA_KERNELS_ATTEND_SPLIT_H
#define TENON_CODEGEN_CUDA_KERNELS_ATTEND_SPLIT_H

#include "attention_cut.h"
#include "score.h"

namespace tk {

// What a block works on.
struct Split {
  const tk_attention_shape &s;
  const tk_split_cut &cut;
  KeyRows rows;
  const float *bias;    // of query 0; null: none
  int32_t queries;      // of this block, at most 8 · octets
  int32_t position;     // of the token
  int32_t begin, end;   // the positions that it sees
  uint32_t *queryWords; // [8 octets][pitch]: floats, or the upper parts and then the lower ones
  float *scores;        // [8 octets][results]
  float *max, *sum, *factor; // [8 octets]

  TK_METHOD bool sees(int32_t key) const { return key >= begin && key < end; }

  // Element d of query i. In 16 bits it is the sum of two parts.
  TK_METHOD void setQuery(int32_t i, int32_t d, float value) const {
    value *= s.scale;
    if (!tk_attention_uses_mma(s)) {
      ((float *)queryWords)[i * cut.pitch + d] = value;
      return;
    }
    uint16_t upper = toShort(s.kv_dtype, value);
    uint16_t *at = (uint16_t *)(queryWords + i * cut.pitch) + d;
    at[0] = upper;
    at[8 * cut.octets * cut.pitch * 2] = toShort(s.kv_dtype, value - fromShort(s.kv_dtype, upper));
  }
};

// ── softmax ────────────────────────────────────────────────────────────────────────────────────

// Four weights as the tensor cores take them: pairs of their upper parts, pairs of the lower ones.
TK_DEVICE Words4 splitWeights(int32_t dtype, const float (&p)[4]) {
  uint16_t upper[4], lower[4];
  TK_UNROLL
  for (int i = 0; i < 4; ++i) {
    upper[i] = toShort(dtype, p[i]);
    lower[i] = toShort(dtype, p[i] - fromShort(dtype, upper[i]));
  }
  return {{pack(upper[0], upper[1]), pack(upper[2], upper[3]), pack(lower[0], lower[1]),
           pack(lower[2], lower[3])}};
}

// Scores become weights in place, 4 positions of a query by one lane; a warp for each query.
TK_DEVICE void weighSpan(const Split &w, int32_t span) {
  const tk_attention_shape &s = w.s;
  for (int32_t q = warp(); q < w.queries; q += TK_SPLIT_WARPS) {
    float score[2][4], largest = negativeInfinity();
    TK_UNROLL
    for (int half = 0; half < 2; ++half) {
      int32_t at = 4 * (lane() + 32 * half);
      Words4 raw = loadWords4(w.scores + q * w.cut.results + at);
      TK_UNROLL
      for (int i = 0; i < 4; ++i) {
        int32_t key = span * TK_SPAN + at + i;
        float x = bitsToFloat(raw.w[i]);
        score[half][i] = w.sees(key) ? capAndBias(s, x, w.bias + q * s.bias_length, key, w.position)
                                     : negativeInfinity();
        largest = greater(score[half][i], largest);
      }
    }
    float old = w.max[q];
    largest = greater(old, warpMax(largest));
    float total = 0;
    TK_UNROLL
    for (int half = 0; half < 2; ++half) {
      float p[4];
      TK_UNROLL
      for (int i = 0; i < 4; ++i) {
        p[i] = exponential(score[half][i] - largest);
        total += p[i];
      }
      Words4 weights = {
          {floatToBits(p[0]), floatToBits(p[1]), floatToBits(p[2]), floatToBits(p[3])}};
      if (tk_attention_uses_mma(s))
        weights = splitWeights(s.kv_dtype, p);
      storeWords4(w.scores + q * w.cut.results + 4 * (lane() + 32 * half), weights);
    }
    total = warpSum(total);
    syncWarp(); // all have read the old maximum
    if (lane() == 0) {
      float factor = exponential(old - largest);
      w.factor[q] = factor;
      w.sum[q] = w.sum[q] * factor + total;
      w.max[q] = largest;
    }
  }
}

// ── by tensor cores ────────────────────────────────────────────────────────────────────────────

// A = 16 keys × 16 elements, B = the elements of 8 queries. Lane 4 g + t reads elements 8 t .. 8 t
// + 7 of each 32 of keys g and g + 8: two steps, in which both operands have k in that order.
template <int Octets, int Slices> struct TensorSums {
  const Split &w;
  // Columns 64 · slice + 8 g + {2 i, 2 i + 1} of queries 8 n + {2 t, 2 t + 1}; slices `across`
  // apart.
  float acc[Slices][Octets][4][4]; // [slice][n][i]

  TK_METHOD int32_t parts() const { return TK_SPLIT_WARPS / w.cut.across; }
  TK_METHOD int32_t part() const { return warp() / w.cut.across; }
  TK_METHOD int32_t column(int slice) const {
    return 64 * (warp() % w.cut.across + slice * w.cut.across) + 8 * (lane() / 4);
  }

  TK_METHOD void clear() {
    TK_UNROLL
    for (int slice = 0; slice < Slices; ++slice)
      TK_UNROLL
    for (int n = 0; n < Octets; ++n)
      TK_UNROLL
    for (int i = 0; i < 4; ++i)
      TK_UNROLL
    for (int j = 0; j < 4; ++j)
      acc[slice][n][i][j] = 0;
  }

  TK_METHOD void scoreSpan(int32_t span) const {
    const tk_attention_shape &s = w.s;
    int32_t g = lane() / 4, t = lane() % 4, first = span * TK_SPAN + 32 * warp();
    if (first >= w.end || first + 32 <= w.begin)
      return;
    CacheRow key[2][2];
    TK_UNROLL
    for (int m = 0; m < 2; ++m)
      TK_UNROLL
    for (int half = 0; half < 2; ++half) {
      int32_t position = first + 16 * m + 8 * half + g;
      key[m][half] = w.sees(position) ? w.rows.key(position) : CacheRow{};
    }
    float c[2][Octets][4] = {};
    TK_UNROLL
    for (int32_t chunk = 0; chunk < s.head_dim; chunk += TENON_CACHE_GROUP) {
      int32_t d = chunk + 8 * t;
      float sum[2][Octets][4] = {};
      Words4 k[2][2];
      TK_UNROLL
      for (int m = 0; m < 2; ++m)
        TK_UNROLL
      for (int half = 0; half < 2; ++half)
        k[m][half] = key[m][half].elements && d < s.head_dim
                         ? loadShorts(s.kv_dtype, key[m][half], d)
                         : Words4{};
      TK_UNROLL
      for (int n = 0; n < Octets; ++n) {
        const uint32_t *q = w.queryWords + (8 * n + g) * w.cut.pitch + d / 2;
        Words4 parts[2] = {loadWords4(q), loadWords4(q + 8 * Octets * w.cut.pitch)};
        TK_UNROLL
        for (int m = 0; m < 2; ++m)
          TK_UNROLL
        for (int i = 0; i < 4; i += 2) {
          uint32_t a[4] = {k[m][0].w[i], k[m][1].w[i], k[m][0].w[i + 1], k[m][1].w[i + 1]};
          TK_UNROLL
          for (int part = 0; part < 2; ++part) {
            uint32_t b[2] = {parts[part].w[i], parts[part].w[i + 1]};
            multiplyShort(s.kv_dtype, s.kv_dtype == TENON_I8 ? sum[m][n] : c[m][n], a, b);
          }
        }
      }
      if (s.kv_dtype != TENON_I8)
        continue;
      TK_UNROLL
      for (int m = 0; m < 2; ++m)
        TK_UNROLL
      for (int half = 0; half < 2; ++half) {
        float scale = key[m][half].elements ? key[m][half].scale(chunk) : 0;
        TK_UNROLL
        for (int n = 0; n < Octets; ++n)
          TK_UNROLL
        for (int j = 0; j < 2; ++j)
          c[m][n][2 * half + j] += sum[m][n][2 * half + j] * scale;
      }
    }
    TK_UNROLL
    for (int m = 0; m < 2; ++m)
      TK_UNROLL
    for (int n = 0; n < Octets; ++n)
      TK_UNROLL
    for (int j = 0; j < 4; ++j)
      w.scores[(8 * n + 2 * t + j % 2) * w.cut.results + 32 * warp() + 16 * m + 8 * (j / 2) + g] =
          c[m][n][j];
  }

  // A = 16 columns × 16 positions, B = the weights of 8 queries. Lane 4 g + t reads columns 8 g ..
  // 8 g + 7 of each 64 of positions 4 t .. 4 t + 3, of which it makes pairs of positions.
  TK_METHOD void addSpan(int32_t span) {
    const tk_attention_shape &s = w.s;
    int32_t g = lane() / 4, t = lane() % 4;
    TK_UNROLL
    for (int n = 0; n < Octets; ++n) {
      float factors[2] = {w.factor[8 * n + 2 * t], w.factor[8 * n + 2 * t + 1]};
      TK_UNROLL
      for (int slice = 0; slice < Slices; ++slice)
        TK_UNROLL
      for (int i = 0; i < 4; ++i)
        TK_UNROLL
      for (int j = 0; j < 4; ++j)
        acc[slice][n][i][j] *= factors[j % 2];
    }
    int32_t length = TK_SPAN / parts();
#pragma unroll 2
    for (int32_t at = part() * length; at < (part() + 1) * length; at += 16) {
      int32_t position = span * TK_SPAN + at;
      if (position >= w.end || position + 16 <= w.begin)
        continue;
      CacheRow value[4];
      TK_UNROLL
      for (int r = 0; r < 4; ++r)
        value[r] = w.sees(position + 4 * t + r) ? w.rows.value(position + 4 * t + r) : CacheRow{};
      TK_UNROLL
      for (int slice = 0; slice < Slices; ++slice) {
        int32_t d = column(slice);
        Words4 v[4];
        TK_UNROLL
        for (int r = 0; r < 4; ++r)
          v[r] = value[r].elements && d < w.rows.cache.valueDim
                     ? loadScaledShorts(s.kv_dtype, value[r], d)
                     : Words4{};
        TK_UNROLL
        for (int n = 0; n < Octets; ++n) {
          Words4 p = loadWords4(w.scores + (8 * n + g) * w.cut.results + at + 4 * t);
          TK_UNROLL
          for (int i = 0; i < 4; ++i) {
            uint32_t a[4] = {lowHalves(v[0].w[i], v[1].w[i]), highHalves(v[0].w[i], v[1].w[i]),
                             lowHalves(v[2].w[i], v[3].w[i]), highHalves(v[2].w[i], v[3].w[i])};
            uint32_t upper[2] = {p.w[0], p.w[1]}, lower[2] = {p.w[2], p.w[3]};
            multiplyShort(s.kv_dtype, acc[slice][n][i], a, upper);
            multiplyShort(s.kv_dtype, acc[slice][n][i], a, lower);
          }
        }
      }
    }
  }

  // visit(query, column, sum)
  template <class Visit> TK_METHOD void each(Visit visit) const {
    int32_t t = lane() % 4;
    TK_UNROLL
    for (int slice = 0; slice < Slices; ++slice)
      TK_UNROLL
    for (int n = 0; n < Octets; ++n)
      TK_UNROLL
    for (int i = 0; i < 4; ++i)
      TK_UNROLL
    for (int j = 0; j < 4; ++j) {
      int32_t q = 8 * n + 2 * t + j % 2;
      int32_t d = column(slice) + 2 * i + j / 2;
      if (q < w.queries && d < w.rows.cache.valueDim)
        visit(q, d, acc[slice][n][i][j]);
    }
  }
};

// ── in floats ──────────────────────────────────────────────────────────────────────────────────

// Any type and width, 8 queries: a thread scores one key, and sums columns 256 apart.
template <int Slices> struct FloatSums {
  const Split &w;
  float acc[Slices][8];

  // Threads that share the columns; the others share the positions.
  TK_METHOD int32_t across() const {
    int32_t threads = tk_divide_up(w.rows.cache.valueDim, 32) * 32;
    return threads < 32 * TK_SPLIT_WARPS ? threads : 32 * TK_SPLIT_WARPS;
  }
  TK_METHOD int32_t parts() const { return 32 * TK_SPLIT_WARPS / across(); }
  TK_METHOD int32_t part() const { return threadIndex() / across(); }

  TK_METHOD void clear() {
    TK_UNROLL
    for (int slice = 0; slice < Slices; ++slice)
      TK_UNROLL
    for (int q = 0; q < 8; ++q)
      acc[slice][q] = 0;
  }

  TK_METHOD void scoreSpan(int32_t span) const {
    const tk_attention_shape &s = w.s;
    int32_t position = span * TK_SPAN + threadIndex();
    if (!w.sees(position))
      return;
    const CacheRow key = w.rows.key(position);
    const float *queries = (const float *)w.queryWords;
    float c[8] = {};
    if (s.kv_dtype == TENON_F32 && s.head_dim % 4 == 0 && (uintptr_t)key.elements % 16 == 0) {
      for (int32_t d = 0; d < s.head_dim; d += 4) {
        Words4 k = loadWords4(key.elements + 4 * d);
        TK_UNROLL
        for (int q = 0; q < 8; ++q) {
          Words4 x = loadWords4(queries + q * w.cut.pitch + d);
          TK_UNROLL
          for (int i = 0; i < 4; ++i)
            c[q] += bitsToFloat(x.w[i]) * bitsToFloat(k.w[i]);
        }
      }
    } else {
      for (int32_t d = 0; d < s.head_dim; ++d) {
        float k = loadElement(s.kv_dtype, key, d);
        TK_UNROLL
        for (int q = 0; q < 8; ++q)
          c[q] += queries[q * w.cut.pitch + d] * k;
      }
    }
    TK_UNROLL
    for (int q = 0; q < 8; ++q)
      w.scores[q * w.cut.results + threadIndex()] = c[q];
  }

  TK_METHOD void addSpan(int32_t span) {
    if (part() >= parts())
      return;
    int32_t valueDim = w.rows.cache.valueDim, column = threadIndex() % across();
    TK_UNROLL
    for (int slice = 0; slice < Slices; ++slice)
      TK_UNROLL
    for (int q = 0; q < 8; ++q)
      acc[slice][q] *= w.factor[q];
    int32_t length = tk_divide_up(TK_SPAN, parts()), from = part() * length;
    int32_t to = from + length < TK_SPAN ? from + length : TK_SPAN;
    for (int32_t j = from; j < to; ++j) {
      int32_t position = span * TK_SPAN + j;
      if (!w.sees(position))
        continue;
      const CacheRow value = w.rows.value(position);
      TK_UNROLL
      for (int slice = 0; slice < Slices; ++slice) {
        int32_t d = column + 256 * slice;
        float v = d < valueDim ? loadElement(w.s.kv_dtype, value, d) : 0;
        TK_UNROLL
        for (int q = 0; q < 8; ++q)
          acc[slice][q] += w.scores[q * w.cut.results + j] * v;
      }
    }
  }

  template <class Visit> TK_METHOD void each(Visit visit) const {
    TK_UNROLL
    for (int slice = 0; slice < Slices; ++slice)
      TK_UNROLL
    for (int q = 0; q < 8; ++q) {
      int32_t d = threadIndex() % across() + 256 * slice;
      if (q < w.queries && d < w.rows.cache.valueDim)
        visit(q, d, acc[slice][q]);
    }
  }
};

// ── a block ────────────────────────────────────────────────────────────────────────────────────

// The spans that a row sees.
struct Spans {
  int32_t first, count;
};
TK_DEVICE Spans spansOf(const tk_attention_shape &s, int32_t last) {
  int32_t first = tk_first_visible(&s, last) / TK_SPAN;
  return {first, last < 0 ? 0 : last / TK_SPAN - first + 1};
}

TK_DEVICE float *partialOf(const tk_attention_shape &s, const tk_split_cut &cut,
                           const tk_args &args, int64_t row, int64_t share, int64_t head) {
  return (float *)args.workspace +
         ((row * cut.splits + share) * s.heads + head) * tk_split_floats(s);
}

// Shares first, first + step, ... of the row's spans.
template <class Sums>
TK_DEVICE void attendShares(const Split &w, Sums &sums, const AttentionOperands &io,
                            const tk_args &args, int64_t row, int64_t firstHead, Spans spans,
                            int32_t first, int32_t step) {
  const tk_attention_shape &s = w.s;
  const tk_split_cut &cut = w.cut;
  int32_t valueDim = w.rows.cache.valueDim;
  for (int32_t share = first; share < cut.splits; share += step) {
    if (share >= spans.count && cut.splits > 1)
      return;
    sync();
    for (int32_t q = threadIndex(); q < 8 * cut.octets; q += threadCount()) {
      w.max[q] = negativeInfinity();
      w.sum[q] = 0;
    }
    sums.clear();
    for (int32_t i = share; i < spans.count; i += cut.splits) {
      sync();
      sums.scoreSpan(spans.first + i);
      sync();
      weighSpan(w, spans.first + i);
      sync();
      sums.addSpan(spans.first + i);
    }
    sync();
    auto emit = [&](int32_t q, int32_t d, float value) {
      int64_t head = firstHead + q;
      if (cut.splits > 1)
        partialOf(s, cut, args, row, share, head)[d] = value;
      else
        io.out[row * s.out_stride + head * valueDim + d] =
            divided(value, addSink(io.sinks, head, w.max[q], w.sum[q]));
    };
    if (sums.parts() == 1) {
      sums.each(emit);
    } else {
      for (int32_t part = 0; part < sums.parts(); ++part) {
        if (sums.part() == part)
          sums.each([&](int32_t q, int32_t d, float value) {
            float *at = w.scores + q * cut.results + d;
            *at = part ? *at + value : value;
          });
        sync();
      }
      for (int32_t i = threadIndex(); i < w.queries * valueDim; i += threadCount())
        emit(i / valueDim, i % valueDim, w.scores[i / valueDim * cut.results + i % valueDim]);
    }
    if (cut.splits > 1)
      for (int32_t q = threadIndex(); q < w.queries; q += threadCount()) {
        float *partial = partialOf(s, cut, args, row, share, firstHead + q);
        partial[valueDim] = w.max[q];
        partial[valueDim + 1] = w.sum[q];
      }
  }
}

// prepare(split, row, kv head, head of the first query, appends) gives the queries to
// split.setQuery. `appends`: no other block reads the last span for this kv head.
template <class Prepare>
TK_DEVICE void attendSplit(const tk_attention_shape &s, const AttentionOperands &io,
                           const tk_args &args, Prepare prepare) {
  const tenon_batch &batch = *args.batch;
  tk_split_cut cut = tk_cut_split(s);
  int32_t row = (int32_t)blockY(), x = (int32_t)blockX(), pieces = s.kv_heads * cut.runs;
  int32_t run = x % cut.runs, head = x / cut.runs % s.kv_heads, first = x / pieces;
  int32_t step = (int32_t)gridX() / pieces;
  int32_t last = tk_last_visible(&s, &batch, row), queries = cut.group - 8 * cut.octets * run;
  Spans spans = spansOf(s, last);
  if (cut.splits > 1 && first >= spans.count)
    return;
  int64_t firstHead = head * cut.group + 8 * cut.octets * run;
  uint32_t *words = (uint32_t *)shared();
  float *scores = (float *)(words + cut.queryWords);
  float *max = scores + 8 * cut.octets * cut.results;
  Split w = {s,
             cut,
             io.rowsOf(s, args, batch.sequence_of[row], head),
             io.bias ? io.bias + firstHead * s.bias_length : nullptr,
             queries < 8 * cut.octets ? queries : 8 * cut.octets,
             batch.positions[row],
             tk_first_visible(&s, last),
             last + 1,
             words,
             scores,
             max,
             max + 8 * cut.octets,
             max + 16 * cut.octets};
  for (int32_t i = threadIndex(); i < cut.queryWords; i += threadCount())
    words[i] = 0;
  sync();
  prepare(w, row, head, firstHead, cut.runs == 1 && (spans.count - 1) % cut.splits % step == first);
  // Sums are arrays of registers: their sizes are part of their type.
  auto attend = [&](auto sums) {
    attendShares(w, sums, io, args, row, firstHead, spans, first, step);
  };
  if (!tk_attention_uses_mma(s))
    cut.slices == 1 ? attend(FloatSums<1>{w, {}}) : attend(FloatSums<4>{w, {}});
  else if (cut.octets == 1)
    cut.slices == 1 ? attend(TensorSums<1, 1>{w, {}}) : attend(TensorSums<1, 2>{w, {}});
  else if (cut.octets == 2)
    cut.slices == 1 ? attend(TensorSums<2, 1>{w, {}}) : attend(TensorSums<2, 2>{w, {}});
  else
    cut.slices == 1 ? attend(TensorSums<4, 1>{w, {}}) : attend(TensorSums<4, 2>{w, {}});
}

// One head of one row: its shares in order.
TK_DEVICE void mergeShares(const tk_attention_shape &s, const AttentionOperands &io,
                           const tk_args &args) {
  tk_split_cut cut = tk_cut_split(s);
  int64_t row = blockY(), head = blockX();
  int32_t valueDim = valueDimOf(s), count = spansOf(s, tk_last_visible(&s, args.batch, row)).count;
  count = count < cut.splits ? count : cut.splits;
  const float *partials = partialOf(s, cut, args, row, 0, head);
  int64_t stride = (int64_t)s.heads * tk_split_floats(s);
  float max = negativeInfinity(), total = 0;
  for (int32_t i = 0; i < count; ++i) {
    float x = partials[i * stride + valueDim];
    max = x > max ? x : max;
  }
  for (int32_t i = 0; i < count; ++i)
    total +=
        partials[i * stride + valueDim + 1] * exponential(partials[i * stride + valueDim] - max);
  total = addSink(io.sinks, head, max, total);
  for (int32_t d = threadIndex(); d < valueDim; d += threadCount()) {
    float sum = 0;
    for (int32_t i = 0; i < count; ++i)
      sum += partials[i * stride + d] * exponential(partials[i * stride + valueDim] - max);
    io.out[row * s.out_stride + head * valueDim + d] = divided(sum, total);
  }
}

} // namespace tk

#endif // TENON_CODEGEN_CUDA_KERNELS_ATTEND_SPLIT_H
