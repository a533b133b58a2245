// Packs weight matrices for kernels (layout: kernels/packed_layout.h), a tile of 16
// rows at a time, so that the compiler never holds more of a matrix than that:
//
//   stored rows ─▶ packTile ─▶ tile bytes ─▶ file          for each 16 rows
//
// A quantised tensor keeps its codes: they are laid out anew, not rounded again, in the narrowest
// format that can hold them. Bits of an element, scales included, in the file and packed:
//
//   q4_0, q4_1, q4_k     4.5 to 5     U4M       5
//   q2_k, q3_k           2.6, 3.4     U4MG16    6
//   q5_1, q5_k           6, 5.5       U8M       9
//   q5_0, q8_0           5.5, 8.5     S8        9
//   iq4_nl               4.5          S8        9      its 16 levels are integers of 8 bits
//   q6_k                 6.6          S8G16    10
//
// Scales and minimums of the formats with a minimum (U..) become f16. Those of the K types,
// products of a half and a small integer, are rounded by that (1 in 2048 at most, where they are
// not very small); all others are exact.
#ifndef TENON_CODEGEN_PACKING_H
#define TENON_CODEGEN_PACKING_H

#include "codegen/kernels/packed_layout.h"
#include "ir/Storage.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace tenon {

enum class PackedFormat {
  F32 = TK_F32,
  BF16 = TK_BF16,
  F16 = TK_F16,
  U4M = TK_U4M,
  U8M = TK_U8M,
  S8 = TK_S8,
  S8G16 = TK_S8G16,
  U4MG16 = TK_U4MG16,
  PlainF32 = TK_PLAIN_F32, // row-major; never packed by the functions below
  PlainF64 = TK_PLAIN_F64,
  BF16Rows = TK_BF16_ROWS,
  F16Rows = TK_F16_ROWS,
};

inline constexpr int64_t TileRows = TK_TILE_ROWS;

llvm::StringRef getPackedFormatName(PackedFormat format); // "u4m"
std::optional<PackedFormat> parsePackedFormat(llvm::StringRef name);

int64_t getPackedBytes(PackedFormat format, int64_t rows, int64_t cols);
int64_t getPackedTileBytes(PackedFormat format, int64_t cols);

// The format that holds a tensor of this storage as it is; `keepRows`: 16-bit elements row by row.
PackedFormat getPackedFormat(Storage storage, bool keepRows = false);

// The groups behind up to 16 rows of a quantised matrix, row-major:
// value = scale · code + min, code unsigned if hasMin, else two's complement and min 0.
struct GroupedRows {
  const uint8_t *codes; // [rows][cols]
  const float *scales;  // [rows][cols / groupSize]
  const float *mins;    // as scales; not read unless hasMin
  int64_t groupSize;    // 16 or 32
  bool hasMin;
};

// Each packTile writes one whole tile, padding included. 1 <= rows <= 16.

// `values` is row-major [rows][cols]. S8 quantises to groups of 32 symmetrically, U4M with a
// minimum; the others are made of stored groups only.
void packTile(PackedFormat format, int64_t rows, int64_t cols, const float *values, uint8_t *tile);

// Formats: 4-bit codes (with a minimum, or signed) to U4M, signed 8-bit to S8, unsigned codes up to
// 127 to U8M; in groups of 16, 4-bit codes to U4MG16 and signed 8-bit to S8G16. cols must be a
// multiple of groupSize.
void packTile(PackedFormat format, int64_t rows, int64_t cols, const GroupedRows &groups,
              uint8_t *tile);

// `stored` holds the rows as the checkpoint does, one after another. Converts to any format: by
// groups if `format` is the storage's own, else by way of f32.
void packTile(PackedFormat format, int64_t rows, int64_t cols, Storage storage,
              const uint8_t *stored, uint8_t *tile);

// The way back: what kernels read from a tile, row-major [rows][cols].
void unpackTile(PackedFormat format, int64_t rows, int64_t cols, const uint8_t *tile,
                float *values);

} // namespace tenon

#endif // TENON_CODEGEN_PACKING_H
