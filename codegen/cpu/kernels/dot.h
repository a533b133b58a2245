// One tile of a packed matrix (16 outputs) times some rows of activations: acc[row][16].
//
// Activation rows lie in scratch:
//   for f32, bf16 and f16 weights: f32, one row after another, padded with zeros to a multiple of
//   32; for quantised weights: [group of 32 columns][row] of `Codes`, so that one group of all rows
//   is one run.
//
// A row's sums are formed in the same order however many rows there are, so its result never
// depends on them. One row streams the weights from memory (decode); more rows unpack a group once
// for all.
#ifndef TENON_KERNELS_DOT_H
#define TENON_KERNELS_DOT_H

#include "isa.h"

namespace {

// 32 activations x ≈ scale · code.
struct Codes {
  int8_t code[TK_GROUP];
  float scale;
  float scaledSum;        // scale · Σ code, for the weights' minimum
  int32_t corrections[2]; // -128 · Σ code of each half, for weights stored with a bias of 128
};
static_assert(sizeof(Codes) == TK_ACTIVATION_GROUP_BYTES, "as scratch is sized");

// How far ahead of a streamed weight its line is asked for.
constexpr int64_t PrefetchBytes = 9 * 1024;

TK_INLINE void prefetch(const uint8_t *p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64)
    __builtin_prefetch(p + PrefetchBytes + i, 0, 3);
}

// ── quantised weights ──────────────────────────────────────────────────────────────────────────

struct GroupScales {
  FLanes low, high, min, highMin; // `high`: of the second 16 columns
};

TK_INLINE FLanes loadHalves(const uint8_t *p) {
  typedef uint16_t HLanes __attribute__((ext_vector_type(TK_LANES)));
  return fromHalfLanes(loadAs<HLanes>(p));
}

TK_INLINE GroupScales loadScales(int32_t format, const uint8_t *group, int part) {
  const uint8_t *other = group + tk_half_scales(format, 1);
  if (tk_has_min(format)) {
    int at = part * Lanes * 2;
    return {loadHalves(group + at), loadHalves(other + at), loadHalves(group + 32 + at),
            loadHalves(other + 32 + at)};
  }
  int at = part * Lanes * 4;
  return {loadAs<FLanes>(group + at), loadAs<FLanes>(other + at), 0, 0};
}

// The 8 steps of 4 columns, as bytes.
TK_INLINE void loadCodes(int32_t format, const uint8_t *group, int part, ILanes *w) {
  typedef uint32_t ULanes __attribute__((ext_vector_type(TK_LANES)));
  const uint8_t *lines = group + tk_scale_bytes(format) + part * Lanes * 4;
  if (tk_has_nibbles(format)) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      ULanes line = loadAs<ULanes>(lines + 64 * j);
      w[2 * j] = (ILanes)(line & 0x0f0f0f0f);
      w[2 * j + 1] = (ILanes)(line >> 4 & 0x0f0f0f0f);
    }
  } else {
#pragma unroll
    for (int s = 0; s < 8; ++s)
      w[s] = loadAs<ILanes>(lines + 64 * s);
  }
}

// acc + the group's products.
TK_INLINE FLanes addGroup(int32_t format, FLanes acc, const ILanes *w, const GroupScales &scales,
                          const Codes &x) {
  ILanes low, high;
  if (tk_has_nibbles(format)) {
    low = dotUnsigned<4>(w, x.code);
    high = dotUnsigned<4>(w + 4, x.code + 16);
  } else if (format == TK_U8M) {
    low = dotUnsigned<8>(w, x.code);
    high = dotUnsigned<8>(w + 4, x.code + 16);
  } else {
    low = dotBiased(w, x.code, x.corrections[0]);
    high = dotBiased(w + 4, x.code + 16, x.corrections[1]);
  }
  if (tk_has_halves(format)) {
    acc = acc + __builtin_convertvector(low, FLanes) * (scales.low * x.scale);
    acc = acc + __builtin_convertvector(high, FLanes) * (scales.high * x.scale);
    if (tk_has_min(format)) {
      float unit = x.scale * (-1.0f / 128); // of corrections: x.scale · Σ code of a half
      acc = acc + scales.min * (unit * (float)x.corrections[0]);
      acc = acc + scales.highMin * (unit * (float)x.corrections[1]);
    }
    return acc;
  }
  acc = acc + __builtin_convertvector(low + high, FLanes) * (scales.low * x.scale);
  if (tk_has_min(format))
    acc = acc + scales.min * x.scaledSum;
  return acc;
}

TK_INLINE void dotQuantised(int32_t format, int64_t cols, const uint8_t *tile, const Codes *x,
                            int64_t count, float *acc) {
  int64_t groups = (cols + TK_GROUP - 1) / TK_GROUP, groupBytes = tk_group_bytes(format);
  if (count == 1) {
    FLanes sums[Parts];
#pragma unroll
    for (int p = 0; p < Parts; ++p)
      sums[p] = 0;
    for (int64_t g = 0; g < groups; ++g) {
      const uint8_t *group = tile + g * groupBytes;
      prefetch(group, groupBytes);
#pragma unroll
      for (int p = 0; p < Parts; ++p) {
        ILanes w[8];
        loadCodes(format, group, p, w);
        sums[p] = addGroup(format, sums[p], w, loadScales(format, group, p), x[g]);
      }
    }
#pragma unroll
    for (int p = 0; p < Parts; ++p)
      storeAs(acc + p * Lanes, sums[p]);
    return;
  }
  for (int64_t r = 0; r < count; ++r)
    store(acc + 16 * r, (Vec)0.0f);
  for (int64_t g = 0; g < groups; ++g)
    for (int p = 0; p < Parts; ++p) {
      const uint8_t *group = tile + g * groupBytes;
      ILanes w[8];
      loadCodes(format, group, p, w);
      GroupScales scales = loadScales(format, group, p);
      for (int64_t r = 0; r < count; ++r) {
        float *sums = acc + 16 * r + p * Lanes;
        storeAs(sums, addGroup(format, loadAs<FLanes>(sums), w, scales, x[g * count + r]));
      }
    }
}

// ── floating-point weights ─────────────────────────────────────────────────────────────────────

// Part p of column k of a tile.
TK_INLINE FLanes loadColumn(int32_t format, const uint8_t *tile, int64_t k, int p) {
  typedef uint32_t ULanes __attribute__((ext_vector_type(TK_LANES)));
  if (format == TK_F32)
    return loadAs<FLanes>(tile + 64 * k + p * Lanes * 4);
  ULanes pairs = loadAs<ULanes>(tile + k / 2 * 64 + p * Lanes * 4);
  if (format == TK_BF16)
    return __builtin_bit_cast(FLanes, k % 2 ? pairs & 0xffff0000 : pairs << 16);
  typedef uint16_t HLanes __attribute__((ext_vector_type(TK_LANES)));
  return fromHalfLanes(__builtin_convertvector(k % 2 ? pairs >> 16 : pairs, HLanes));
}

// Parts `part` .. part + PartCount - 1 of a tile times some rows. Each output has four sums, of the
// columns k ≡ 0, 1, 2, 3 (mod 4).
template <int Rows, int PartCount>
TK_INLINE void dotFloatRows(int32_t format, int64_t cols, const uint8_t *tile, int part,
                            const float *x, int64_t stride, float *acc) {
  FLanes sums[Rows][PartCount][4];
#pragma unroll
  for (int r = 0; r < Rows; ++r)
#pragma unroll
    for (int p = 0; p < PartCount; ++p)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sums[r][p][i] = 0;
  auto addColumn = [&](int64_t k, int i) __attribute__((always_inline)) {
#pragma unroll
    for (int p = 0; p < PartCount; ++p) {
      FLanes w = loadColumn(format, tile, k + i, part + p);
#pragma unroll
      for (int r = 0; r < Rows; ++r)
        sums[r][p][i] = sums[r][p][i] + w * x[r * stride + k + i];
    }
  };
  int64_t columnBytes = format == TK_F32 ? 64 : 32, k = 0;
  for (; k + 4 <= cols; k += 4) {
    if (Rows == 1)
      prefetch(tile + k * columnBytes, 4 * columnBytes);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      addColumn(k, i);
  }
#pragma unroll
  for (int i = 0; i < 3; ++i)
    if (k + i < cols)
      addColumn(k, i);
#pragma unroll
  for (int r = 0; r < Rows; ++r)
#pragma unroll
    for (int p = 0; p < PartCount; ++p) {
      const FLanes *s = sums[r][p];
      storeAs(acc + 16 * r + (part + p) * Lanes, (s[0] + s[1]) + (s[2] + s[3]));
    }
}

TK_INLINE void dotFloats(int32_t format, int64_t cols, const uint8_t *tile, const float *x,
                         int64_t count, float *acc) {
  constexpr int Block = TK_LANES == 16 ? 4 : 3; // rows whose sums fit the registers
  int64_t stride = tk_round_up(cols, TK_GROUP), r = 0;
  for (; r + Block <= count; r += Block)
    for (int p = 0; p < Parts; ++p)
      dotFloatRows<Block, 1>(format, cols, tile, p, x + r * stride, stride, acc + 16 * r);
  for (; r < count; ++r)
    dotFloatRows<1, Parts>(format, cols, tile, 0, x + r * stride, stride, acc + 16 * r);
}

// acc[count][16]
TK_INLINE void dotTile(int32_t format, int64_t cols, const uint8_t *tile, const char *rows,
                       int64_t count, float *acc) {
  if (tk_is_quantised(format))
    dotQuantised(format, cols, tile, (const Codes *)rows, count, acc);
  else
    dotFloats(format, cols, tile, (const float *)rows, count, acc);
}

} // namespace

#endif // TENON_KERNELS_DOT_H
