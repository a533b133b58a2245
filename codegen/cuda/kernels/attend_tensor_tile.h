// A tile by tensor cores, for caches of 16-bit elements, to whose type queries and weights are
// rounded; int8 becomes bf16 on its way into shared memory.
//
//   warp w: rows 16 M w .. 16 M w + 16 M - 1     S = Q · Kᵀ     m: rows, n: keys, k: elements
//                                               O += P · V     m: rows, n: columns, k: keys
//
// Fragments are read 16 bytes at a time, from rows as they lie in the cache. So lane 4 g + t has
//
//   elements 8 t .. 8 t + 7 of each 32 of a query (rows g, g + 8) and of key g / 2 + 4 (g % 2) of 8
//   keys t, t + 4, t + 8, t + 12 of each 16, columns 8 g .. 8 g + 7 of each 64 of the values
//
// for which k, keys and columns are permuted, alike in both factors: the accumulators of S are then
// P's fragments.
//
// Values are copied while keys are multiplied, the next keys while values are.
#ifndef TENON_CODEGEN_CUDA_KERNELS_ATTEND_TENSOR_TILE_H
#define TENON_CODEGEN_CUDA_KERNELS_ATTEND_TENSOR_TILE_H

#include "attend_tile.h"

namespace tk {

// M times 16 rows and `Slices` times 64 columns of a warp.
template <int M, int Slices> struct TensorTile {
  const Tile &tile;
  uint32_t *queries, *keys, *values;
  float acc[M][Slices][8][4];
  float max[M][2], sum[M][2];

  TK_METHOD explicit TensorTile(const Tile &tile) : tile(tile) {}

  // Row g or g + 8 of each 16.
  TK_METHOD TileRow row(int m, int half) const {
    return tile.row(firstRow() + 16 * m + 8 * half + lane() / 4);
  }
  TK_METHOD int32_t firstRow() const { return warp() % 4 * 16 * M; }
  TK_METHOD int32_t firstSlice() const { return warp() / 4 * Slices; }

  TK_METHOD void start() {
    const tk_attention_shape &s = tile.s;
    const tk_tile_cut &cut = tile.cut;
    queries = (uint32_t *)shared();
    keys = queries + cut.rows * cut.queryPitch;
    values = s.values_in_keys ? keys : keys + TK_TILE_KEYS * cut.keyPitch;
    TK_UNROLL
    for (int m = 0; m < M; ++m)
      TK_UNROLL
    for (int half = 0; half < 2; ++half) {
      max[m][half] = leastMaximum();
      sum[m][half] = 0;
      TK_UNROLL
      for (int slice = 0; slice < Slices; ++slice)
        TK_UNROLL
      for (int e = 0; e < 8; ++e)
        acc[m][slice][e][2 * half] = acc[m][slice][e][2 * half + 1] = 0;
    }
    // Queries in pairs of elements, zeros behind the last; and behind those of the keys.
    int32_t padded = tk_divide_up(s.head_dim, 32) * 16;
    for (int32_t i = threadIndex(); i < cut.rows * padded; i += threadCount()) {
      int32_t r = i / padded, d = i % padded * 2;
      TileRow row = tile.row(r);
      uint32_t word = 0;
      if (row.token >= 0 && d < s.head_dim) {
        const float *q = tile.io.q + (int64_t)row.token * s.q_stride + row.head * s.head_dim + d;
        word = pack(toShort(s.kv_dtype, q[0]), toShort(s.kv_dtype, q[1]));
      }
      queries[r * cut.queryPitch + d / 2] = word;
    }
    int32_t tail = padded - s.head_dim / 2;
    for (int32_t i = threadIndex(); tail && i < TK_TILE_KEYS * tail; i += threadCount())
      keys[i / tail * cut.keyPitch + s.head_dim / 2 + i % tail] = 0;
  }

  // Keys or values of a step; zeros where nobody sees them.
  TK_METHOD void copyRows(const TileStep &step, bool isValue) const {
    const tk_attention_shape &s = tile.s;
    KeyRows from = tile.io.rowsOf(s, tile.args, step.sequence, tile.kvHead);
    uint32_t *to = isValue ? values : keys;
    int32_t pitch = isValue ? tile.cut.valuePitch : tile.cut.keyPitch;
    int32_t pieces = (isValue ? valueDimOf(s) : s.head_dim) / 8;
    for (int32_t i = threadIndex(); i < TK_TILE_KEYS * pieces; i += threadCount()) {
      int32_t row = i / pieces, piece = i % pieces, position = step.first + row;
      uint32_t *at = to + row * pitch + 4 * piece;
      if (!step.has(position)) {
        storeWords4(at, Words4{});
        continue;
      }
      CacheRow source = isValue ? from.value(position) : from.key(position);
      if (s.kv_dtype == TENON_I8)
        storeWords4(at, loadScaledShorts(s.kv_dtype, source, 8 * piece));
      else
        copyAsync16(at, source.elements + 16 * piece);
    }
  }

  TK_METHOD void score(float (&c)[M][8][4]) const {
    const tk_attention_shape &s = tile.s;
    int32_t g = lane() / 4, t = lane() % 4;
    TK_UNROLL
    for (int m = 0; m < M; ++m)
      TK_UNROLL
    for (int u = 0; u < 8; ++u)
      TK_UNROLL
    for (int j = 0; j < 4; ++j)
      c[m][u][j] = 0;
    TK_UNROLL
    for (int32_t chunk = 0; chunk < s.head_dim; chunk += 32) {
      int32_t at = chunk / 2 + 4 * t;
      Words4 q[M][2];
      TK_UNROLL
      for (int m = 0; m < M; ++m)
        TK_UNROLL
      for (int half = 0; half < 2; ++half)
        q[m][half] =
            loadWords4(queries + (firstRow() + 16 * m + 8 * half + g) * tile.cut.queryPitch + at);
      TK_UNROLL
      for (int u = 0; u < 8; ++u) {
        Words4 k = loadWords4(keys + (8 * u + g / 2 + 4 * (g % 2)) * tile.cut.keyPitch + at);
        TK_UNROLL
        for (int m = 0; m < M; ++m)
          TK_UNROLL
        for (int i = 0; i < 4; i += 2) {
          uint32_t a[4] = {q[m][0].w[i], q[m][1].w[i], q[m][0].w[i + 1], q[m][1].w[i + 1]};
          uint32_t b[2] = {k.w[i], k.w[i + 1]};
          multiplyShort(s.kv_dtype, c[m][u], a, b);
        }
      }
    }
  }

  // Scores become weights; c[m][u][2 half + j] is key 8 u + t + 4 j of the step.
  TK_METHOD void weigh(const TileStep &step, float (&c)[M][8][4]) {
    const tk_attention_shape &s = tile.s;
    int32_t t = lane() % 4;
    bool whole = tile.isWhole(step, firstRow(), firstRow() + 16 * M);
    TK_UNROLL
    for (int m = 0; m < M; ++m)
      TK_UNROLL
    for (int half = 0; half < 2; ++half) {
      TileRow row = {};
      if (!whole || s.bias)
        row = this->row(m, half);
      float largest = max[m][half];
      TK_UNROLL
      for (int u = 0; u < 8; ++u)
        TK_UNROLL
      for (int j = 0; j < 2; ++j) {
        float &x = c[m][u][2 * half + j];
        int32_t key = step.first + 8 * u + t + 4 * j;
        x = capAndBias(s, x * s.scale, tile.io.bias + row.head * s.bias_length, key, row.position);
        if (!whole && !tile.sees(row, step, key))
          x = negativeInfinity();
        largest = greater(x, largest);
      }
      largest = greater(largest, shuffleXor(largest, 1));
      largest = greater(largest, shuffleXor(largest, 2));
      float factor = exponential(max[m][half] - largest), total = 0;
      max[m][half] = largest;
      TK_UNROLL
      for (int u = 0; u < 8; ++u)
        TK_UNROLL
      for (int j = 0; j < 2; ++j) {
        float &x = c[m][u][2 * half + j];
        x = exponential(x - largest);
        total += x;
      }
      sum[m][half] = sum[m][half] * factor + total; // of this lane's keys
      TK_UNROLL
      for (int slice = 0; slice < Slices; ++slice)
        TK_UNROLL
      for (int e = 0; e < 8; ++e)
        TK_UNROLL
      for (int j = 0; j < 2; ++j)
        acc[m][slice][e][2 * half + j] *= factor;
    }
  }

  TK_METHOD void add(const float (&c)[M][8][4]) {
    const tk_attention_shape &s = tile.s;
    int32_t g = lane() / 4, t = lane() % 4;
    TK_UNROLL
    for (int k = 0; k < 4; ++k) {
      uint32_t a[M][4];
      TK_UNROLL
      for (int m = 0; m < M; ++m)
        TK_UNROLL
      for (int i = 0; i < 4; ++i) {
        const float *p = c[m][2 * k + i / 2] + 2 * (i % 2);
        a[m][i] = pack(toShort(s.kv_dtype, p[0]), toShort(s.kv_dtype, p[1]));
      }
      TK_UNROLL
      for (int slice = 0; slice < Slices; ++slice) {
        int32_t at = 32 * (firstSlice() + slice) + 4 * g;
        Words4 v[4];
        TK_UNROLL
        for (int r = 0; r < 4; ++r)
          v[r] = at < valueDimOf(s) / 2
                     ? loadWords4(values + (16 * k + t + 4 * r) * tile.cut.valuePitch + at)
                     : Words4{};
        TK_UNROLL
        for (int e = 0; e < 8; ++e) {
          int i = e / 2;
          uint32_t b[2] = {
              e % 2 ? highHalves(v[0].w[i], v[1].w[i]) : lowHalves(v[0].w[i], v[1].w[i]),
              e % 2 ? highHalves(v[2].w[i], v[3].w[i]) : lowHalves(v[2].w[i], v[3].w[i])};
          TK_UNROLL
          for (int m = 0; m < M; ++m)
            multiplyShort(s.kv_dtype, acc[m][slice][e], a[m], b);
        }
      }
    }
  }

  TK_METHOD void finish() {
    const tk_attention_shape &s = tile.s;
    int32_t t = lane() % 4, valueDim = valueDimOf(s);
    TK_UNROLL
    for (int m = 0; m < M; ++m)
      TK_UNROLL
    for (int half = 0; half < 2; ++half) {
      TileRow row = this->row(m, half);
      float total = sum[m][half];
      total += shuffleXor(total, 1);
      total += shuffleXor(total, 2);
      if (row.token < 0 || !tile.owns(row.sequence))
        continue;
      float inverse = 1 / addSink(tile.io.sinks, row.head, max[m][half], total);
      if (total == 0)
        inverse = 0;
      float *out = tile.io.out + (int64_t)row.token * s.out_stride + row.head * valueDim;
      TK_UNROLL
      for (int slice = 0; slice < Slices; ++slice)
        TK_UNROLL
      for (int j = 0; j < 2; ++j)
        TK_UNROLL
      for (int e = 0; e < 8; ++e) {
        int32_t d = 64 * (firstSlice() + slice) + 16 * t + 8 * j + e;
        if (d < valueDim)
          out[d] = acc[m][slice][e][2 * half + j] * inverse;
      }
    }
  }

  TK_METHOD void run() {
    bool inKeys = tile.s.values_in_keys;
    TileStep step = tile.firstStep();
    start();
    if (step.firstToken < tile.endToken)
      copyRows(step, false);
    commitCopies();
    while (step.firstToken < tile.endToken) {
      bool concerned = tile.concerns(step, firstRow(), firstRow() + 16 * M);
      TileStep next = step;
      tile.advance(next);
      bool more = next.firstToken < tile.endToken;
      float c[M][8][4];
      if (!inKeys)
        copyRows(step, true);
      commitCopies();
      waitCopies(1);
      sync();
      if (concerned)
        score(c);
      if (!inKeys) {
        sync();
        if (more)
          copyRows(next, false);
        commitCopies();
      }
      if (concerned)
        weigh(step, c);
      if (!inKeys) {
        waitCopies(1);
        sync();
      }
      if (concerned)
        add(c);
      sync();
      if (inKeys) {
        if (more)
          copyRows(next, false);
        commitCopies();
      }
      step = next;
    }
    finish();
  }
};

} // namespace tk

#endif // TENON_CODEGEN_CUDA_KERNELS_ATTEND_TENSOR_TILE_H
