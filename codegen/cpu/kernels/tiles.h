// AMX: eight tile registers of up to 16 rows of 64 bytes, and the integer dot of two of them.
//
//   codes [16 rows][Depth]   signed        lines [Depth / 4][16 columns][4]   unsigned
//      x's CodeRow, as it lies                as the packed layout has them
//                    └────────┬────────────────────┘
//                    sums [16 rows][16 columns]   int32
//
// The operating system lets a process use tiles once it has asked (runtime/Machine.cpp). Each
// thread says what shapes its registers have before it uses them, and frees them afterwards: a
// `TileRegisters` does so for the block that it lies in.
#ifndef TENON_KERNELS_TILES_H
#define TENON_KERNELS_TILES_H

#include "isa.h"

#if defined(__AMX_INT8__) && TK_LANES == 16
#define TK_TILES 1
#else
#define TK_TILES 0
#endif

namespace {

#if TK_TILES

constexpr int64_t TileRows = 16;

// Two sets of registers, so that one dot need not wait for the tiles of the one before: each has a
// tile of sums for either of two tiles of weights, one of codes and one of lines.
template <int Set> struct TileSet {
  static constexpr int Sums = 4 * Set, Codes = Sums + 2, Lines = Sums + 3;
};

// Register T [rows][bytes of a row] to and from memory, whose rows are `stride` bytes apart.
template <int T> TK_INLINE void loadTile(const void *p, int64_t stride) {
  _tile_loadd(T, p, stride);
}
template <int T> TK_INLINE void storeTile(void *p, int64_t stride) { _tile_stored(T, p, stride); }

// Register Sums = codes · lines.
template <int Sums, int Codes, int Lines> TK_INLINE void dotTile() {
  _tile_zero(Sums);
  _tile_dpbsud(Sums, Codes, Lines);
}

// This thread's tile registers for dots of `depth` columns, in its block.
class TileRegisters {
public:
  __attribute__((always_inline)) TileRegisters(bool used, int64_t depth) : used(used) {
    if (!used)
      return;
    struct {
      uint8_t palette, startRow, reserved[14];
      uint16_t rowBytes[16];
      uint8_t rows[16];
    } config = {1, 0, {}, {}, {}};
    static_assert(sizeof config == 64, "as the instruction reads it");
    for (int set = 0; set < 8; set += 4) {
      for (int t = set; t < set + 4; ++t) {
        config.rows[t] = TileRows;
        config.rowBytes[t] = 64;
      }
      config.rowBytes[set + TileSet<0>::Codes] = (uint16_t)depth;
      config.rows[set + TileSet<0>::Lines] = (uint8_t)(depth / 4);
    }
    _tile_loadconfig(&config);
  }
  __attribute__((always_inline)) ~TileRegisters() {
    if (used)
      _tile_release();
  }
  TileRegisters(const TileRegisters &) = delete;

private:
  bool used;
};

#else

struct [[maybe_unused]] TileRegisters {
  __attribute__((always_inline)) TileRegisters(bool, int64_t) {}
};

#endif

} // namespace

#endif // TENON_KERNELS_TILES_H
