// Tiles of a packed matrix (16 outputs each) times some rows of activations: acc[row][16].
//
// Activation rows lie in scratch one after another: for f32, bf16 and f16 weights as f32, padded
// with zeros to a multiple of 32; for quantised weights as codes (`CodeRow`).
//
// A row's sums are formed in the same order however many rows there are, so its result never
// depends on them. One row streams the weights from memory (decode), in the order in which they
// lie: the hardware asks for what follows, better than prefetch instructions do. With a few rows a
// group stays in registers while all of them pass. With AVX-512 and more rows than stay near (94 of
// 576 columns, 15 of 4096) a run of groups of two tiles is unpacked once and multiplied with 4 rows
// at a time, whose sums stay in registers, so that a load feeds more than one product:
//
//              tile 0      tile 1
//   row 0    [16 sums]   [16 sums]        a step reads a line of each tile and
//   ...                                   4 codes of each row, for 8 integer dots
//   row 3    [16 sums]   [16 sums]
//
// With AMX a step is a whole group, of 16 rows (tiles.h). What becomes of the integers is the same
// code, so the bits are the same but where minima are rounded, which AMX leaves out.
//
// Nibbles have a minimum for each group of 32 columns: a product and a sum beside 8 dots. Where
// rounding is allowed (`roundsMinima`), one instruction adds the products of two groups' minima in
// bf16. What is rounded is small: codes are taken around the whole number c next to where 0 is, so
// that at most half a scale is left of the minimum,
//
//   Σ (scale · code + min) · x  =  scale · Σ (code - c) · x  +  (min + c · scale) · Σ x
//
// and as weights are signed then, activations are stored plus 128, of which
// -128 · Σ (code - c), the same for all rows, makes nothing again.
#ifndef TENON_KERNELS_DOT_H
#define TENON_KERNELS_DOT_H

#include "pairs.h"
#include "tiles.h"

namespace {

// Whether minima are multiplied in bf16. Not for scored rows, of which there mostly is one; not
// with AMX, where the centre would cost what the pairs save.
TK_INLINE bool roundsMinima(int32_t format, int32_t rows, int32_t mayRound) {
  return HasPairs && !TK_TILES && mayRound && rows == TK_ROWS_TOKENS && format == TK_U4M;
}

// A row of activations x ≈ scale · code, with one scale for each group of 32. In scratch: all
// codes, then the four numbers of each group.
struct CodeRow {
  const int8_t *codes; // [groups][32]; plus 128 for roundsMinima
  const float *scale;
  const float *scaledSum;     // scale · Σ code, for the weights' minimum; in bf16 for roundsMinima
  const int32_t *correction;  // -128 · Σ code, for weights stored with a bias of 128; of the first
  const int32_t *correction2; // half, and of the second, where halves have scales of their own
};
static_assert(TK_ACTIVATION_GROUP_BYTES == TK_GROUP + 4 * 4, "as scratch is sized");

TK_INLINE CodeRow codeRow(const char *row, int64_t groups) {
  const float *numbers = (const float *)(row + groups * TK_GROUP);
  return {(const int8_t *)row, numbers, numbers + groups, (const int32_t *)(numbers + 2 * groups),
          (const int32_t *)(numbers + 3 * groups)};
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

// acc + what the codes of group g give: their integer products `low` and `high`, one for each half
// where halves have scales of their own, else the whole in `low`. `rounds`: without the minimum.
TK_INLINE FLanes addScaled(int32_t format, bool rounds, FLanes acc, ILanes low, ILanes high,
                           const GroupScales &scales, const CodeRow &x, int64_t g) {
  float scale = x.scale[g];
  acc = acc + __builtin_convertvector(low, FLanes) * (scales.low * scale);
  if (!tk_has_halves(format))
    return tk_has_min(format) && !rounds ? acc + scales.min * x.scaledSum[g] : acc;
  acc = acc + __builtin_convertvector(high, FLanes) * (scales.high * scale);
  if (tk_has_min(format)) {
    float unit = scale * (-1.0f / 128); // of corrections: scale · Σ code of a half
    acc = acc + scales.min * (unit * (float)x.correction[g]);
    acc = acc + scales.highMin * (unit * (float)x.correction2[g]);
  }
  return acc;
}

// acc + the products of group g.
TK_INLINE FLanes addGroup(int32_t format, FLanes acc, const ILanes *w, const GroupScales &scales,
                          const CodeRow &x, int64_t g) {
  const int8_t *codes = x.codes + g * TK_GROUP;
  bool halves = tk_has_halves(format);
  ILanes low, high;
  if (tk_has_nibbles(format)) {
    low = dotUnsigned<4>(w, codes);
    high = dotUnsigned<4>(w + 4, codes + 16);
  } else if (format == TK_U8M) {
    low = dotUnsigned<8>(w, codes);
    high = dotUnsigned<8>(w + 4, codes + 16);
  } else {
    low = dotBiased(w, codes, x.correction[g]);
    high = dotBiased(w + 4, codes + 16, halves ? x.correction2[g] : 0);
  }
  return addScaled(format, false, acc, halves ? low : low + high, high, scales, x, g);
}

// One row.
TK_INLINE void dotQuantisedRow(int32_t format, int64_t cols, const uint8_t *tile, const char *row,
                               float *acc) {
  int64_t groups = (cols + TK_GROUP - 1) / TK_GROUP, groupBytes = tk_group_bytes(format);
  CodeRow x = codeRow(row, groups);
  FLanes sums[Parts];
#pragma unroll
  for (int p = 0; p < Parts; ++p)
    sums[p] = 0;
  for (int64_t g = 0; g < groups; ++g) {
    const uint8_t *group = tile + g * groupBytes;
#pragma unroll
    for (int p = 0; p < Parts; ++p) {
      ILanes w[8];
      loadCodes(format, group, p, w);
      sums[p] = addGroup(format, sums[p], w, loadScales(format, group, p), x, g);
    }
  }
#pragma unroll
  for (int p = 0; p < Parts; ++p)
    storeAs(acc + p * Lanes, sums[p]);
}

// A few rows of one tile: a group stays in registers while all rows pass.
TK_INLINE void dotQuantisedFew(int32_t format, int64_t cols, const uint8_t *tile, const char *rows,
                               int64_t count, float *acc) {
  int64_t groups = (cols + TK_GROUP - 1) / TK_GROUP, groupBytes = tk_group_bytes(format);
  int64_t rowBytes = groups * TK_ACTIVATION_GROUP_BYTES;
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
        CodeRow x = codeRow(rows + r * rowBytes, groups);
        storeAs(sums, addGroup(format, loadAs<FLanes>(sums), w, scales, x, g));
      }
    }
}

// ── many rows, in registers of 16 outputs ──────────────────────────────────────────────────────

constexpr int64_t ManyRows = 16;

#if TK_LANES == 16

// Fewer rows are not worth unpacking for, nor are rows that stay near enough to be read again and
// again.
TK_INLINE bool isWorthUnpacking(int32_t format, int64_t cols, int64_t count) {
  constexpr int64_t NearBytes = TK_TILES ? 0 : 80 << 10;
  return count >= ManyRows && count * tk_scratch_row_bytes(format, cols) >= NearBytes;
}

// Groups that are unpacked at a time: with their rows, and what tile registers give, they fit the
// first cache.
constexpr int64_t RunGroups = TK_TILES ? 6 : 18;
static_assert(RunGroups % 2 == 0, "a pair of groups is of one run");

// A run of groups of two tiles, ready for many rows. What a format lacks is never touched, and so
// takes no room in the cache.
struct UnpackedRun {
  ILanes codes[RunGroups][2][8];
  FLanes low[RunGroups][2], high[RunGroups][2], min[RunGroups][2], highMin[RunGroups][2];
  // For roundsMinima: what the codes' sums begin with, and the rest of two groups' minima as pairs.
  ILanes start[RunGroups][2];
  FLanes minima[RunGroups / 2][2];

  __attribute__((always_inline)) void setScales(int32_t format, bool rounds, int64_t i, int t,
                                                const GroupScales &scales) {
    bool hasMin = tk_has_min(format) && !rounds, hasHalves = tk_has_halves(format);
    low[i][t] = scales.low;
    if (hasHalves)
      high[i][t] = scales.high;
    if (hasMin)
      min[i][t] = scales.min;
    if (hasMin && hasHalves)
      highMin[i][t] = scales.highMin;
  }
  __attribute__((always_inline)) GroupScales scales(int64_t i, int t) const {
    return {low[i][t], high[i][t], min[i][t], highMin[i][t]};
  }
};

// For roundsMinima: 0 on the scale of the codes.
TK_INLINE ILanes centreOf(const GroupScales &scales) {
  FLanes centre = scales.low != 0.0f ? -scales.min / scales.low : 0.0f;
  centre = centre < -112.0f ? -112.0f : centre > 112.0f ? 112.0f : centre; // codes stay bytes
  return __builtin_convertvector(centre + (centre < 0.0f ? -0.5f : 0.5f), ILanes);
}
TK_INLINE FLanes restOfMinimum(const GroupScales &scales) {
  return scales.min + __builtin_convertvector(centreOf(scales), FLanes) * scales.low;
}
// Takes codes around their centre; gives what their sums with activations plus 128 begin with.
TK_INLINE ILanes centreCodes(const GroupScales &scales, ILanes *codes) {
  typedef int8_t Bytes __attribute__((ext_vector_type(4 * TK_LANES)));
  Bytes centre = __builtin_bit_cast(Bytes, (centreOf(scales) & 0xff) * 0x01010101);
  ILanes sum = 0;
#pragma unroll
  for (int s = 0; s < 8; ++s) {
    codes[s] = __builtin_bit_cast(ILanes, __builtin_bit_cast(Bytes, codes[s]) - centre);
    sum = dpbusd(sum, (ILanes)(int32_t)0x80808080, codes[s]);
  }
  return -sum;
}

// The integer products of group g of some rows and two tiles: dots[half][row][tile], as in
// addScaled.
template <int Rows>
TK_INLINE void multiplyGroup(int32_t format, bool rounds, const UnpackedRun &w, int64_t i,
                             const CodeRow (&x)[Rows], int64_t g, ILanes (&dots)[2][Rows][2]) {
  // All dots of a step before the next one: each line of weights is loaded once.
  bool halves = tk_has_halves(format), biased = !tk_has_min(format);
#pragma unroll
  for (int s = 0; s < 8; ++s) {
    int half = halves && s >= 4 ? 1 : 0;
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      ILanes codes = broadcast4(x[r].codes + g * TK_GROUP + 4 * s);
      int32_t first = !biased ? 0 : half ? x[r].correction2[g] : x[r].correction[g];
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        ILanes &dot = dots[half][r][t];
        if (s == 0 || (halves && s == 4))
          dot = rounds ? w.start[i][t] : (ILanes)first;
        dot = rounds ? dpbusd(dot, codes, w.codes[i][t][s]) : dpbusd(dot, w.codes[i][t][s], codes);
      }
    }
  }
}

// acc + the products of `count` groups from group g on, for Rows rows and two tiles.
// multiply(row, i, x, dots) gives the integer products of group g + i; `row` is the first row's
// number.
template <int Rows, class F>
TK_INLINE void addRows(int32_t format, bool rounds, int64_t groups, const UnpackedRun &w, int64_t g,
                       int64_t count, int64_t row, const char *rows, float *const *acc,
                       F multiply) {
  CodeRow x[Rows];
  FLanes sums[Rows][2];
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    x[r] = codeRow(rows + r * groups * TK_ACTIVATION_GROUP_BYTES, groups);
#pragma unroll
    for (int t = 0; t < 2; ++t)
      sums[r][t] = g == 0 ? (FLanes)0.0f : loadAs<FLanes>(acc[t] + 16 * r);
  }
  for (int64_t i = 0; i < count; ++i) {
    ILanes dots[2][Rows][2];
    multiply(row, i, x, dots);
#pragma unroll
    for (int r = 0; r < Rows; ++r)
#pragma unroll
      for (int t = 0; t < 2; ++t)
        sums[r][t] =
            addScaled(format, rounds, sums[r][t], dots[0][r][t],
                      dots[tk_has_halves(format) ? 1 : 0][r][t], w.scales(i, t), x[r], g + i);
  }
  for (int64_t i = 0; rounds && i < count; i += 2)
#pragma unroll
    for (int r = 0; r < Rows; ++r)
#pragma unroll
      for (int t = 0; t < 2; ++t)
        sums[r][t] = addPairs(sums[r][t], w.minima[i / 2][t], x[r].scaledSum[(g + i) / 2]);
#pragma unroll
  for (int r = 0; r < Rows; ++r)
#pragma unroll
    for (int t = 0; t < 2; ++t)
      storeAs(acc[t] + 16 * r, sums[r][t]);
}

#if TK_TILES

// What tile registers give for a group, or for half of one.
struct TileSums {
  ILanes of[2][TileRows]; // [tile][row]
};

// The sums of a group: sums[half]. `lines` are those of two tiles, `codes` those of the first row.
template <int Set>
TK_INLINE void multiplyTiles(int32_t format, const uint8_t *const *lines, const char *codes,
                             int64_t rowBytes, TileSums *sums) {
  using Registers = TileSet<Set>;
  for (int half = 0; half < (tk_has_halves(format) ? 2 : 1); ++half) {
    loadTile<Registers::Codes>(codes + 16 * half, rowBytes);
    loadTile<Registers::Lines>(lines[0] + 256 * half, 64);
    dotTile<Registers::Sums, Registers::Codes, Registers::Lines>();
    storeTile<Registers::Sums>(sums[half].of[0], 64);
    loadTile<Registers::Lines>(lines[1] + 256 * half, 64);
    dotTile<Registers::Sums + 1, Registers::Codes, Registers::Lines>();
    storeTile<Registers::Sums + 1>(sums[half].of[1], 64);
  }
}

// multiplyGroup's answer, for rows from `row` of the tiles on.
template <int Rows>
TK_INLINE void takeSums(int32_t format, const TileSums *sums, int64_t row, const CodeRow (&x)[Rows],
                        int64_t g, ILanes (&dots)[2][Rows][2]) {
#pragma unroll
  for (int half = 0; half < (tk_has_halves(format) ? 2 : 1); ++half)
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
      int32_t correction = half ? x[r].correction2[g] : x[r].correction[g];
#pragma unroll
      for (int t = 0; t < 2; ++t)
        dots[half][r][t] = sums[half].of[t][row + r] + (tk_has_min(format) ? 0 : correction);
    }
}

#endif // TK_TILES

// Many rows of two tiles; any number where minima are rounded.
TK_INLINE void dotQuantisedRows(int32_t format, bool rounds, int64_t cols,
                                const uint8_t *const *tiles, const char *rows, int64_t count,
                                float *const *acc) {
  int64_t groups = (cols + TK_GROUP - 1) / TK_GROUP, groupBytes = tk_group_bytes(format);
  int64_t rowBytes = groups * TK_ACTIVATION_GROUP_BYTES;
  // Tile registers read lines of bytes where they lie.
  bool unpacks = !TK_TILES || tk_has_nibbles(format);
  alignas(64) UnpackedRun w;
  for (int64_t g = 0; g < groups; g += RunGroups) {
    int64_t run = least(RunGroups, groups - g);
    for (int64_t i = 0; i < run; ++i)
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const uint8_t *group = tiles[t] + (g + i) * groupBytes;
        if (unpacks)
          loadCodes(format, group, 0, w.codes[i][t]);
        GroupScales scales = loadScales(format, group, 0);
        w.setScales(format, rounds, i, t, scales);
        if (rounds)
          w.start[i][t] = centreCodes(scales, w.codes[i][t]);
        if (rounds && i % 2 == 0)
          w.minima[i / 2][t] =
              pairUp(restOfMinimum(scales),
                     i + 1 < run ? restOfMinimum(loadScales(format, group + groupBytes, 0)) : 0.0f);
      }
    auto addAll = [&](int64_t r, int64_t end, auto multiply) __attribute__((always_inline)) {
      for (; r + 4 <= end; r += 4) {
        float *out[] = {acc[0] + 16 * r, acc[1] + 16 * r};
        addRows<4>(format, rounds, groups, w, g, run, r, rows + r * rowBytes, out, multiply);
      }
      for (; r < end; ++r) {
        float *out[] = {acc[0] + 16 * r, acc[1] + 16 * r};
        addRows<1>(format, rounds, groups, w, g, run, r, rows + r * rowBytes, out, multiply);
      }
    };
#if TK_TILES
    for (int64_t r = 0; r < count; r += TileRows) {
      // The last tile reaches back over rows that are done: rows behind the last one aren't read.
      int64_t first = least(r, count - TileRows);
      const int64_t parts = tk_has_halves(format) ? 2 : 1;
      TileSums sums[2 * RunGroups];
      for (int64_t i = 0; i < run; ++i) {
        const uint8_t *lines[2];
        for (int t = 0; t < 2; ++t)
          lines[t] = unpacks ? (const uint8_t *)w.codes[i][t]
                             : tiles[t] + (g + i) * groupBytes + tk_scale_bytes(format);
        const char *codes = rows + first * rowBytes + (g + i) * TK_GROUP;
        if (i % 2)
          multiplyTiles<1>(format, lines, codes, rowBytes, sums + parts * i);
        else
          multiplyTiles<0>(format, lines, codes, rowBytes, sums + parts * i);
      }
      addAll(r, least(r + TileRows, count),
             [&](int64_t row, int64_t i, const auto &x, auto &dots) __attribute__((always_inline)) {
               takeSums(format, sums + parts * i, row - first, x, g + i, dots);
             });
    }
#else
    addAll(0, count,
           [&](int64_t, int64_t i, const auto &x, auto &dots) __attribute__((always_inline)) {
             multiplyGroup(format, rounds, w, i, x, g + i, dots);
           });
#endif
  }
}

#endif // TK_LANES == 16

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
  int64_t k = 0;
  for (; k + 4 <= cols; k += 4) {
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

// The tile registers that dotTiles needs for up to `count` rows, for as long as the result lives.
TK_INLINE TileRegisters registersFor(int32_t format, int64_t count) {
  return TileRegisters(tk_is_quantised(format) && count >= ManyRows,
                       tk_has_halves(format) ? TK_GROUP / 2 : TK_GROUP);
}

// acc[t][count][16] of two tiles; with the same acc twice, of one. `rounds`: as the rows
// were prepared (roundsMinima).
TK_INLINE void dotTiles(int32_t format, [[maybe_unused]] bool rounds, int64_t cols,
                        const uint8_t *const *tiles, const char *rows, int64_t count,
                        float *const *acc) {
#if TK_LANES == 16
  if (tk_is_quantised(format) && (rounds || isWorthUnpacking(format, cols, count)))
    return dotQuantisedRows(format, rounds, cols, tiles, rows, count, acc);
#endif
  for (int t = 0; t < (acc[0] == acc[1] ? 1 : 2); ++t)
    if (tk_is_quantised(format) && count == 1)
      dotQuantisedRow(format, cols, tiles[t], rows, acc[t]);
    else if (tk_is_quantised(format))
      dotQuantisedFew(format, cols, tiles[t], rows, count, acc[t]);
    else
      dotFloats(format, cols, tiles[t], (const float *)rows, count, acc[t]);
}

} // namespace

#endif // TENON_KERNELS_DOT_H
