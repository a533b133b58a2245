// What tk_linear and tk_gated_mlp share: bringing rows into scratch (norm, quantisation), products
// with a run of columns, and the two ways of cutting the work.
//
//   few rows    every thread prepares all rows and computes its own columns, 16 at a time
//   many rows   every thread computes all columns of its own rows, 64 at a time
//   many rows of f32, bf16, f16 with the runtime's matrix product: own columns again, unpacked to
//               row-major pieces [K, n] that the product multiplies up to 256 rows with
#ifndef TENON_KERNELS_PRODUCT_H
#define TENON_KERNELS_PRODUCT_H

#include "dot.h"
#include "norm.h"

namespace {

struct Product {
  int32_t format;
  int64_t cols; // K
  const uint8_t *weight;
  const float *x;
  int64_t xStride;
  int32_t norm;
  float eps;
  const float *normWeight, *normBias; // null where absent
  int64_t outCols;                    // N
  bool rounds;                        // as roundsMinima does

  __attribute__((always_inline)) const uint8_t *tile(int64_t index) const {
    return weight + index * tk_tile_bytes(format, cols);
  }
};

// ── rows in scratch ────────────────────────────────────────────────────────────────────────────

// The row, normed, in f32; zeros up to a multiple of 32.
TK_INLINE void prepareFloats(const Product &p, int64_t row, float *out) {
  const float *x = p.x + row * p.xStride;
  int64_t padded = tk_round_up(p.cols, TK_GROUP);
  if (p.norm == TK_NORM_NONE) {
    for (int64_t c = 0; c < p.cols; c += 16)
      store(out + c, load(x + c, least(16, p.cols - c)));
  } else {
    normalise(p.norm, p.eps, p.cols, x, p.normWeight, p.normBias, out);
  }
  for (int64_t c = p.cols; c < padded; ++c)
    out[c] = 0;
}

// The bits of the largest magnitudes of 16 groups, as one vector. In integers a NaN is larger than
// any number, and so is not lost.
template <int Width = 1> TK_INLINE IVec largestOfGroups(const float *x) {
  auto larger = [](IVec a, IVec b) __attribute__((always_inline)) { return a > b ? a : b; };
  if constexpr (Width == 16) {
    return larger(bitsOf(load(x)) & 0x7fffffff, bitsOf(load(x + 16)) & 0x7fffffff);
  } else {
    constexpr int64_t Half = 8 / Width * TK_GROUP;
    IVec a = largestOfGroups<2 * Width>(x), b = largestOfGroups<2 * Width>(x + Half);
    return larger(lowHalves<2 * Width>(a, b), highHalves<2 * Width>(a, b));
  }
}

// Writes the codes of 16 groups, plus `bias`; gives the codes' sums, of all (`half` < 0) or of one
// half.
template <int Width = 1>
TK_INLINE IVec quantiseGroups(const float *x, const float *inverse, int32_t bias, int8_t *codes,
                              int half) {
  if constexpr (Width == 16) {
    const float magic = 0x1.8p23f; // adding it rounds to an integer
    IVec a = bitsOf(load(x) * *inverse + magic) - (int32_t)bitsOf(magic);
    IVec b = bitsOf(load(x + 16) * *inverse + magic) - (int32_t)bitsOf(magic);
    storeAs(codes, __builtin_convertvector(a + bias, ByteVec));
    storeAs(codes + 16, __builtin_convertvector(b + bias, ByteVec));
    return half < 0 ? a + b : half == 0 ? a : b;
  } else {
    constexpr int64_t Half = 8 / Width;
    IVec a = quantiseGroups<2 * Width>(x, inverse, bias, codes, half);
    IVec b = quantiseGroups<2 * Width>(x + Half * TK_GROUP, inverse + Half, bias,
                                       codes + Half * TK_GROUP, half);
    return lowHalves<2 * Width>(a, b) + highHalves<2 * Width>(a, b);
  }
}

// Codes in -127 .. 127 with one scale for each 32, as a CodeRow; `rounds`: as roundsMinima has it.
// x is padded with zeros to 16 groups.
TK_INLINE void quantise(int32_t format, bool rounds, int64_t cols, const float *x, char *row) {
  int64_t groups = (cols + TK_GROUP - 1) / TK_GROUP;
  float *numbers = (float *)(row + groups * TK_GROUP);
  for (int64_t g = 0; g < groups; g += 16) {
    alignas(64) float inverse[16];
    int8_t last[16 * TK_GROUP];
    int64_t n = least(16, groups - g);
    const float *from = x + g * TK_GROUP;
    int8_t *codes = n < 16 ? last : (int8_t *)row + g * TK_GROUP;
    Vec largest = floatOf(largestOfGroups(from));
    store(inverse, largest > 0.0f ? 127.0f / largest : 0.0f);
    Vec scale = largest * (1.0f / 127.0f);
    IVec low, high = 0;
    int32_t bias = rounds ? 128 : 0;
    if (tk_has_halves(format)) {
      low = quantiseGroups(from, inverse, bias, codes, 0);
      high = quantiseGroups(from, inverse, bias, codes, 1);
    } else {
      low = quantiseGroups(from, inverse, bias, codes, -1);
    }
    if (n < 16)
      __builtin_memcpy(row + g * TK_GROUP, last, (size_t)(n * TK_GROUP));
    store(numbers + g, scale, n);
    Vec scaledSum = scale * __builtin_convertvector(low + high, Vec);
    if (rounds) // whole pairs
      storeElements(TENON_BF16, (char *)(numbers + groups) + 2 * g, scaledSum, n + n % 2);
    else
      store(numbers + groups + g, scaledSum, n);
    store(numbers + 2 * groups + g, floatOf(-128 * low), n);
    store(numbers + 3 * groups + g, floatOf(-128 * high), n);
  }
}

// One row as dot.h wants it; `spare` holds one row in f32.
TK_INLINE void prepareRow(const Product &p, int64_t row, char *out, float *spare) {
  if (!tk_is_quantised(p.format))
    return prepareFloats(p, row, (float *)out);
  prepareFloats(p, row, spare);
  for (int64_t c = tk_round_up(p.cols, TK_GROUP); c < tk_round_up(p.cols, 16 * TK_GROUP); ++c)
    spare[c] = 0;
  quantise(p.format, p.rounds, p.cols, spare, out);
}

// Rows first .. first + count - 1.
TK_INLINE void prepareRows(const Product &p, int64_t first, int64_t count, char *rows,
                           float *spare) {
  int64_t stride = tk_scratch_row_bytes(p.format, p.cols);
  for (int64_t r = 0; r < count; ++r)
    prepareRow(p, first + r, rows + r * stride, spare);
}

// ── our own products ───────────────────────────────────────────────────────────────────────────

// Columns c .. c + 15 and d .. d + 15 of the product; a run that straddles two tiles is put
// together of both. Columns past the last one are not meaningful; where d is past it too, only c is
// computed.
TK_INLINE void dotColumns(const Product &p, int64_t c, int64_t d, const char *rows, int64_t count,
                          float *const *acc) {
  bool both = d < p.outCols;
  const uint8_t *tiles[] = {p.tile(c / 16), p.tile((both ? d : c) / 16)};
  float *const to[] = {acc[0], both ? acc[1] : acc[0]};
  dotTiles(p.format, p.rounds, p.cols, tiles, rows, count, to);
  for (int t = 0; t < (both ? 2 : 1); ++t) {
    int64_t first = t ? d : c, shift = first % 16;
    if (shift == 0)
      continue;
    alignas(64) float next[TK_MOST_ROWS * 16];
    if (first + 16 - shift < p.outCols) {
      const uint8_t *second[] = {p.tile(first / 16 + 1), p.tile(first / 16 + 1)};
      float *const same[] = {next, next};
      dotTiles(p.format, p.rounds, p.cols, second, rows, count, same);
    }
    for (int64_t r = 0; r < count; ++r)
      for (int64_t i = 0; i < 16; ++i)
        acc[t][16 * r + i] =
            i + shift < 16 ? acc[t][16 * r + i + shift] : next[16 * r + i + shift - 16];
  }
}

// Calls f(first row, rows, row count, first column) for each block of rows and `Width` columns of
// this thread's share of a product [rowCount, outCols].
template <int Width, class F>
TK_INLINE void forEachTile(const Product &p, int64_t rowCount, int64_t outCols,
                           const tenon_env *env, F f) {
  int64_t pieces = (outCols + Width - 1) / Width;
  bool byRow = rowCount >= 16 * (int64_t)env->threads;
  Range rowShare = byRow ? shareOf(rowCount, env) : Range{0, rowCount};
  Range share = byRow ? Range{0, pieces} : shareOf(pieces, env);
  if (share.begin == share.end)
    return;
  float *spare = (float *)env->scratch;
  char *rows = env->scratch + tk_spare_row_bytes(p.cols);
  TileRegisters registers = registersFor(p.format, rowShare.end - rowShare.begin);
  int64_t block = tk_row_block(p.format, p.cols);
  for (int64_t r = rowShare.begin; r < rowShare.end; r += block) {
    int64_t count = least(block, rowShare.end - r);
    prepareRows(p, r, count, rows, spare);
    for (int64_t t = share.begin; t < share.end; ++t)
      f(r, rows, count, Width * t);
  }
}

// ── the runtime's product ──────────────────────────────────────────────────────────────────────

constexpr int64_t MatmulRows = 32; // fewer are not worth it

TK_INLINE bool usesMatmul(const Product &p, int32_t allowed, int64_t rowCount,
                          const tenon_env *env) {
  return allowed && !tk_is_quantised(p.format) && rowCount >= MatmulRows && env->services &&
         env->services->matmul;
}

// f16 weights are multiplied as f32: few CPUs can do otherwise.
TK_INLINE int32_t matmulType(int32_t format) { return format == TK_BF16 ? TENON_BF16 : TENON_F32; }

// Columns first .. first + count - 1 (both multiples of 16) as b[k][count], K padded to 2. Tiles
// past the last one are left as they are: nobody reads their products.
TK_INLINE void unpackColumns(const Product &p, int64_t first, int64_t count, char *b) {
  int64_t padded = tk_round_up(p.cols, 2);
  for (int64_t c = 0; c < count && first + c < p.outCols; c += 16) {
    const uint8_t *tile = p.tile((first + c) / 16);
    for (int64_t k = 0; k < padded; ++k) {
      alignas(64) float column[16] = {};
      if (k < p.cols)
        for (int part = 0; part < Parts; ++part)
          storeAs(column + part * Lanes, loadColumn(p.format, tile, k, part));
      Vec w = load(column);
      if (matmulType(p.format) == TENON_BF16) // exact: the low half is zero
        storeAs(b + (k * count + c) * 2, __builtin_convertvector(bitsOf(w) >> 16, HalfVec));
      else
        storeAs(b + (k * count + c) * 4, w);
    }
  }
}

// When the runtime cannot multiply after all.
TK_INLINE void plainMatmul(int32_t dtype, int64_t m, int64_t n, int64_t k, const char *a,
                           int64_t lda, const char *b, float *c) {
  int64_t bytes = elementBytes(dtype);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; j += 16) {
      Vec acc = 0;
      for (int64_t l = 0; l < k; ++l)
        acc = acc + loadElements(dtype, b + (l * n + j) * bytes) *
                        loadElements(dtype, a + (i * lda + l) * bytes, 1)[0];
      store(c + i * n + j, acc);
    }
}

// A result of the runtime's product, in scratch.
struct Matrix {
  const float *data;
  int64_t stride;
};

// A block of rows in scratch, and room for the product with up to `Passes` runs of columns.
struct MatmulBlock {
  const Product &p;
  const tenon_env *env;
  int64_t rows;
  char *a, *b;
  float *c;

  // rows · columns first .. first + count - 1; count is a multiple of 16.
  __attribute__((always_inline)) Matrix multiply(int pass, int64_t first, int64_t count) const {
    int32_t dtype = matmulType(p.format);
    int64_t aligned = first / 16 * 16, n = count + (first == aligned ? 0 : 16);
    int64_t k = tk_round_up(p.cols, 2), lda = tk_round_up(p.cols, TK_GROUP);
    float *out = c + pass * rows * (tk_matmul_cols(p.cols) + 16);
    unpackColumns(p, aligned, n, b);
    if (env->services->matmul((tenon_dtype)dtype, rows, n, k, a, lda, b, n, out, n) != 0)
      plainMatmul(dtype, rows, n, k, a, lda, b, out);
    return {out + (first - aligned), n};
  }
};

// Calls f(block, first row, first column, column count) for this thread's columns.
template <class F>
TK_INLINE void forEachMatmulBlock(const Product &p, int64_t rowCount, int64_t outCols,
                                  const tenon_env *env, F f) {
  int32_t dtype = matmulType(p.format);
  int64_t maxRows = tk_matmul_rows(p.cols), maxCols = tk_matmul_cols(p.cols);
  int64_t lda = tk_round_up(p.cols, TK_GROUP);
  float *spare = (float *)env->scratch;
  char *a = env->scratch + lda * 4, *b = a + maxRows * lda * 4;
  float *c = (float *)(b + lda * (maxCols + 16) * 4);
  Range share = shareOf((outCols + 15) / 16, env);
  for (int64_t r = 0; r < rowCount && share.begin < share.end; r += maxRows) {
    MatmulBlock block = {p, env, least(maxRows, rowCount - r), a, b, c};
    for (int64_t i = 0; i < block.rows; ++i) {
      float *row = dtype == TENON_F32 ? (float *)(a + i * lda * 4) : spare;
      prepareFloats(p, r + i, row);
      if (dtype != TENON_F32)
        for (int64_t k = 0; k < lda; k += 16)
          storeElements(dtype, a + (i * lda + k) * 2, load(spare + k));
    }
    for (int64_t j = 16 * share.begin; j < 16 * share.end; j += maxCols)
      f(block, r, j, least(maxCols, 16 * share.end - j));
  }
}

} // namespace

#endif // TENON_KERNELS_PRODUCT_H
