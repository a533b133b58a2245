// The packed layout of weight matrices: the same bytes for every x86 level, so that one executable
// carries several instruction sets over one copy of its weights.
//
// A matrix W [rows, cols] (y = x · Wᵀ) is cut into tiles of 16 rows, which lie one after another.
// In a tile the 16 rows are interleaved, so that one 64-byte line feeds 16 outputs at once. Rows
// are padded to 16 and columns to the format's step with zeros. Every tile starts on a 64-byte
// boundary.
//
//   F32        [cols][16]            line k:      r0[k] r1[k] ... r15[k]
//   BF16, F16  [cols/2][16][2]       line k/2:    r0[k] r0[k+1] | r1[k] r1[k+1] | ... | r15[k+1]
//
// Devices read 16-bit elements row by row, as their libraries do, columns padded to 8 (16 bytes):
//
//   BF16_ROWS, F16_ROWS    [16][cols]       so that a matrix is [rows][cols]
//
// Quantised formats hold groups of 32 columns. A group is its scales, then its codes, which mean:
//
//   U4M    320 B   16 × f16 scale, 16 × f16 min │ 4 lines of nibbles     scale · code + min
//   U8M    576 B   16 × f16 scale, 16 × f16 min │ 8 lines of bytes       scale · code + min
//   S8     576 B   16 × f32 scale               │ 8 lines of bytes       scale · (code - 128)
//   S8G16  640 B   2 × (scales as S8)           │ 8 lines of bytes       as S8, each 16 columns
//   U4MG16 384 B   2 × (scales as U4M)          │ 4 lines of nibbles     as U4M, each 16 columns
//
// A line of bytes has 4 consecutive columns of each row, which is one VNNI step:
//
//   line s     r0[4s] r0[4s+1] r0[4s+2] r0[4s+3] | r1[4s] ... | ... | r15[4s+3]
//
// A line of nibbles is two steps, one in the low and one in the high halves:
//
//   line j     low:  columns 8j .. 8j+3      high:  columns 8j+4 .. 8j+7      (rows as above)
//
// Codes of U4M and U4MG16 are 0..15, of U8M 0..127 (no 16-bit sum of products can overflow), of S8
// 0..255 (a signed code plus 128). Padding has scale and min 0. Values are finite.
//
// PLAIN_F32 and PLAIN_F64 are row-major and unpadded: norm weights, biases, frequencies.
#ifndef TENON_CODEGEN_KERNELS_PACKED_LAYOUT_H
#define TENON_CODEGEN_KERNELS_PACKED_LAYOUT_H

#include <stdint.h>

#define TK_TILE_ROWS 16
#define TK_GROUP 32

typedef enum tk_format {
  TK_F32 = 0,
  TK_BF16 = 1,
  TK_F16 = 2,
  TK_U4M = 3,
  TK_U8M = 4,
  TK_S8 = 5,
  TK_S8G16 = 6,
  TK_U4MG16 = 7,
  TK_PLAIN_F32 = 8,
  TK_PLAIN_F64 = 9,
  TK_BF16_ROWS = 10,
  TK_F16_ROWS = 11,
} tk_format;

static inline int64_t tk_round_up(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

// Whether the format holds integer codes in groups of TK_GROUP columns.
static inline int tk_is_quantised(int32_t format) {
  return format >= TK_U4M && format <= TK_U4MG16;
}

static inline int tk_is_rows(int32_t format) {
  return format == TK_BF16_ROWS || format == TK_F16_ROWS;
}

// Whether its codes are unsigned and have a minimum, whether two of them share a byte, and whether
// each half of a group has scales of its own.
static inline int tk_has_min(int32_t format) {
  return format == TK_U4M || format == TK_U8M || format == TK_U4MG16;
}
static inline int tk_has_nibbles(int32_t format) { return format == TK_U4M || format == TK_U4MG16; }
static inline int tk_has_halves(int32_t format) {
  return format == TK_S8G16 || format == TK_U4MG16;
}

// Bytes of a group before its codes, and where the scales of half 0 or 1 begin.
static inline int64_t tk_scale_bytes(int32_t format) { return tk_has_halves(format) ? 128 : 64; }
static inline int64_t tk_half_scales(int32_t format, int64_t half) {
  return tk_has_halves(format) ? 64 * half : 0;
}

// Bytes of a group of 32 columns of a quantised tile.
static inline int64_t tk_group_bytes(int32_t format) {
  return tk_scale_bytes(format) + (tk_has_nibbles(format) ? 256 : 512);
}

// Columns of a matrix once padded.
static inline int64_t tk_padded_cols(int32_t format, int64_t cols) {
  if (tk_is_quantised(format))
    return tk_round_up(cols, TK_GROUP);
  if (tk_is_rows(format))
    return tk_round_up(cols, 8);
  return format == TK_BF16 || format == TK_F16 ? tk_round_up(cols, 2) : cols;
}

// Bytes of one tile of 16 rows.
static inline int64_t tk_tile_bytes(int32_t format, int64_t cols) {
  int64_t padded = tk_padded_cols(format, cols);
  if (tk_is_quantised(format))
    return padded / TK_GROUP * tk_group_bytes(format);
  return padded * TK_TILE_ROWS * (format == TK_F32 ? 4 : 2);
}

// Bytes of a whole matrix.
static inline int64_t tk_packed_bytes(int32_t format, int64_t rows, int64_t cols) {
  if (format == TK_PLAIN_F32 || format == TK_PLAIN_F64)
    return rows * cols * (format == TK_PLAIN_F32 ? 4 : 8);
  return tk_round_up(rows, TK_TILE_ROWS) / TK_TILE_ROWS * tk_tile_bytes(format, cols);
}

#endif // TENON_CODEGEN_KERNELS_PACKED_LAYOUT_H
