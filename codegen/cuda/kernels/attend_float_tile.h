// A tile in floats, for caches of f32, an encoder's rows, and heads that are no multiple of 8: 64
// rows by 256 threads. Thread 16 y + x has rows 4 y .. 4 y + 3 against keys 4 x .. 4 x + 3, then
// columns 4 x .. 4 x + 3 of each 64.
//
//   queries [head_dim][64]   keys [head_dim][64], then values [64][value_dim]
//   weights [64 keys][64]
#ifndef TENON_CODEGEN_CUDA_KERNELS_ATTEND_FLOAT_TILE_H
#define TENON_CODEGEN_CUDA_KERNELS_ATTEND_FLOAT_TILE_H

#include "attend_tile.h"

namespace tk {

template <int Slices> struct FloatTile {
  const Tile &tile;
  float *queries, *keys, *weights;
  TileRow rows[4];
  float acc[4][Slices][4], max[4], sum[4];

  TK_METHOD explicit FloatTile(const Tile &tile) : tile(tile) {}

  TK_METHOD int32_t x() const { return threadIndex() % 16; }
  TK_METHOD int32_t y() const { return threadIndex() / 16; }

  TK_METHOD void start() {
    const tk_attention_shape &s = tile.s;
    const tk_tile_cut &cut = tile.cut;
    queries = (float *)shared();
    weights = queries + s.head_dim * cut.queryPitch;
    keys = weights + TK_TILE_KEYS * cut.queryPitch;
    TK_UNROLL
    for (int i = 0; i < 4; ++i) {
      rows[i] = tile.row(4 * y() + i);
      max[i] = leastMaximum();
      sum[i] = 0;
      TK_UNROLL
      for (int slice = 0; slice < Slices; ++slice)
        TK_UNROLL
      for (int j = 0; j < 4; ++j)
        acc[i][slice][j] = 0;
    }
    for (int32_t i = threadIndex(); i < cut.rows * s.head_dim; i += threadCount()) {
      int32_t r = i / s.head_dim, d = i % s.head_dim;
      TileRow row = tile.row(r);
      queries[d * cut.queryPitch + r] =
          row.token < 0
              ? 0
              : tile.io.q[(int64_t)row.token * s.q_stride + row.head * s.head_dim + d] * s.scale;
    }
  }

  TK_METHOD void score(const TileStep &step, const KeyRows &from, float (&c)[4][4]) const {
    const tk_attention_shape &s = tile.s;
    const tk_tile_cut &cut = tile.cut;
    for (int32_t i = threadIndex(); i < TK_TILE_KEYS * s.head_dim; i += threadCount()) {
      int32_t j = i / s.head_dim, d = i % s.head_dim, position = step.first + j;
      keys[d * cut.keyPitch + j] =
          step.has(position) ? loadElement(s.kv_dtype, from.key(position), d) : 0;
    }
    sync();
    TK_UNROLL
    for (int i = 0; i < 4; ++i)
      TK_UNROLL
    for (int j = 0; j < 4; ++j)
      c[i][j] = 0;
#pragma unroll 4
    for (int32_t d = 0; d < s.head_dim; ++d) {
      Words4 q = loadWords4(queries + d * cut.queryPitch + 4 * y());
      Words4 k = loadWords4(keys + d * cut.keyPitch + 4 * x());
      TK_UNROLL
      for (int i = 0; i < 4; ++i)
        TK_UNROLL
      for (int j = 0; j < 4; ++j)
        c[i][j] += bitsToFloat(q.w[i]) * bitsToFloat(k.w[j]);
    }
  }

  TK_METHOD void weigh(const TileStep &step, float (&c)[4][4]) {
    const tk_attention_shape &s = tile.s;
    bool whole = tile.isWhole(step, 0, tile.cut.rows);
    TK_UNROLL
    for (int i = 0; i < 4; ++i) {
      float largest = max[i], total = 0;
      TK_UNROLL
      for (int j = 0; j < 4; ++j) {
        int32_t key = step.first + 4 * x() + j;
        const float *bias = tile.io.bias + rows[i].head * s.bias_length;
        c[i][j] = capAndBias(s, c[i][j], bias, key, rows[i].position);
        if (!whole && !tile.sees(rows[i], step, key))
          c[i][j] = negativeInfinity();
        largest = greater(c[i][j], largest);
      }
      for (int mask = 8; mask; mask /= 2)
        largest = greater(largest, shuffleXor(largest, mask));
      float factor = exponential(max[i] - largest);
      max[i] = largest;
      TK_UNROLL
      for (int j = 0; j < 4; ++j) {
        c[i][j] = exponential(c[i][j] - largest);
        total += c[i][j];
      }
      sum[i] = sum[i] * factor + total; // of this thread's keys
      TK_UNROLL
      for (int slice = 0; slice < Slices; ++slice)
        TK_UNROLL
      for (int j = 0; j < 4; ++j)
        acc[i][slice][j] *= factor;
    }
    TK_UNROLL
    for (int j = 0; j < 4; ++j)
      storeWords4(weights + (4 * x() + j) * tile.cut.queryPitch + 4 * y(),
                  {{floatToBits(c[0][j]), floatToBits(c[1][j]), floatToBits(c[2][j]),
                    floatToBits(c[3][j])}});
  }

  TK_METHOD void add(const TileStep &step, const KeyRows &from) {
    const tk_attention_shape &s = tile.s;
    const tk_tile_cut &cut = tile.cut;
    int32_t valueDim = valueDimOf(s), seen = step.end - step.first;
    float *values = keys;
    for (int32_t i = threadIndex(); i < TK_TILE_KEYS * valueDim; i += threadCount()) {
      int32_t j = i / valueDim, d = i % valueDim, position = step.first + j;
      values[j * cut.valuePitch + d] =
          step.has(position) ? loadElement(s.kv_dtype, from.value(position), d) : 0;
    }
    sync();
#pragma unroll 2
    for (int32_t j = 0; j < TK_TILE_KEYS; ++j) {
      if (j >= seen)
        break;
      Words4 p = loadWords4(weights + j * cut.queryPitch + 4 * y());
      TK_UNROLL
      for (int slice = 0; slice < Slices; ++slice) {
        Words4 v = loadWords4(values + j * cut.valuePitch + 64 * slice + 4 * x());
        TK_UNROLL
        for (int i = 0; i < 4; ++i)
          TK_UNROLL
        for (int k = 0; k < 4; ++k)
          acc[i][slice][k] += bitsToFloat(p.w[i]) * bitsToFloat(v.w[k]);
      }
    }
  }

  TK_METHOD void finish() {
    int32_t valueDim = valueDimOf(tile.s);
    TK_UNROLL
    for (int i = 0; i < 4; ++i) {
      TileRow row = tile.row(4 * y() + i);
      float total = sum[i];
      for (int mask = 8; mask; mask /= 2)
        total += shuffleXor(total, mask);
      if (row.token < 0 || !tile.owns(row.sequence))
        continue;
      float all = addSink(tile.io.sinks, row.head, max[i], total);
      float *out = tile.io.out + (int64_t)row.token * tile.s.out_stride + row.head * valueDim;
      TK_UNROLL
      for (int slice = 0; slice < Slices; ++slice)
        TK_UNROLL
      for (int k = 0; k < 4; ++k) {
        int32_t d = 64 * slice + 4 * x() + k;
        if (d < valueDim)
          out[d] = total == 0 ? 0 : acc[i][slice][k] / all;
      }
    }
  }

  TK_METHOD void run() {
    TileStep step = tile.firstStep();
    start();
    for (; step.firstToken < tile.endToken; tile.advance(step)) {
      KeyRows from = tile.io.rowsOf(tile.s, tile.args, step.sequence, tile.kvHead);
      float c[4][4];
      score(step, from, c);
      weigh(step, c);
      sync();
      add(step, from);
      sync();
    }
    finish();
  }
};

} // namespace tk

#endif // TENON_CODEGEN_CUDA_KERNELS_ATTEND_FLOAT_TILE_H
