// A step of 32 columns of a pair of tiles (16 outputs each), in the registers of a warp, times
// prepared rows (product_shape.h).
//
// Lane 4g + t has the rows 4 (g mod 4) .. + 3 of tile g / 4, its quarter, in columns 8t .. 8t + 7:
//
//            tile 0                    tile 1             a line of 64 bytes has 16 bytes of each
//   rows   0-3  4-7  8-11 12-15     0-3  ...              quarter, and a row of 16-bit elements 16
//   g       0    1    2    3         4   ...              bytes of each t: so long are all loads
//
// That is the A fragment of two mma with rows and columns permuted: the first one multiplies the
// quarters' rows 0 and 1 (g and g + 8 in its own order), the second one rows 2 and 3. The result
// of lane 4g + t are outputs 4g .. 4g + 3 of the pair's 32, for rows 2t and 2t + 1 of a panel:
//
//   c[m][2h + e]     output 4g + 2m + h, row 2t + e
#ifndef TENON_CODEGEN_CUDA_KERNELS_TILE_H
#define TENON_CODEGEN_CUDA_KERNELS_TILE_H

#include "product_shape.h"
#include "reduce.h"

namespace tk {

// Four rows of a packed matrix from `row` on. Mostly they are a quarter of a tile; where a matrix
// is two that were packed as one, the second may begin anywhere.
struct Quarter {
  const char *matrix;
  int64_t tileBytes, row;
  int64_t rows; // of the matrix with its padding
  bool whole;   // row is a multiple of 4
};

// What row + i has at byte `at` of the tile, in lines of elements of `size` bytes.
TK_DEVICE const char *elementOf(const Quarter &q, int64_t at, int size, int i) {
  int64_t r = least(q.row + i, q.rows - 1);
  return q.matrix + r / 16 * q.tileBytes + r % 16 * size + at;
}
TK_DEVICE Words4 wordsOf(const Quarter &q, int64_t at) {
  if (q.whole)
    return loadWords4(elementOf(q, at, 4, 0));
  return {{loadWord(elementOf(q, at, 4, 0)), loadWord(elementOf(q, at, 4, 1)),
           loadWord(elementOf(q, at, 4, 2)), loadWord(elementOf(q, at, 4, 3))}};
}
TK_DEVICE Words2 halvesOf(const Quarter &q, int64_t at) {
  if (q.whole)
    return loadWords2(elementOf(q, at, 2, 0));
  uint16_t v[4];
  TK_UNROLL
  for (int i = 0; i < 4; ++i)
    v[i] = *(const uint16_t *)elementOf(q, at, 2, i);
  return {{pack(v[0], v[1]), pack(v[2], v[3])}};
}

// Row + i of a matrix that lies row by row.
TK_DEVICE const char *rowOf(const Quarter &q, int i) {
  return q.matrix + (q.whole ? q.row + i : least(q.row + i, q.rows - 1)) * (q.tileBytes / 16);
}

// Rows of a panel, from one step on.
struct Panel {
  const char *step; // of the first panel
  int64_t stride;   // bytes from one panel to the next
};

// The sums of a lane for some panels.
template <int Panels> struct Sums {
  float c[Panels][2][4];
};
template <int Panels> TK_DEVICE void clear(Sums<Panels> &sums) {
  TK_UNROLL
  for (int i = 0; i < Panels; ++i) {
    TK_UNROLL
    for (int m = 0; m < 2; ++m) {
      TK_UNROLL
      for (int j = 0; j < 4; ++j)
        sums.c[i][m][j] = 0;
    }
  }
}

// ── quantised weights ──────────────────────────────────────────────────────────────────────────

// A lane's part of a step as it is stored.
struct CodesOfStep {
  Words4 codes[2];      // nibbles: the first only
  uint32_t scale[2][4]; // of each half: 4 × f32, or 4 × f16 scales and 4 × f16 minima
};

TK_DEVICE void loadStep(int32_t format, const Quarter &q, int64_t step, CodesOfStep &w) {
  int64_t at = step * tk_group_bytes(format), line = 64 * (lane() % 4);
  TK_UNROLL
  for (int h = 0; h < 2; ++h) {
    if (h == 1 && !tk_has_halves(format))
      break;
    if (tk_has_min(format)) {
      Words2 scales = halvesOf(q, at + 64 * h), minima = halvesOf(q, at + 64 * h + 32);
      w.scale[h][0] = scales.w[0], w.scale[h][1] = scales.w[1];
      w.scale[h][2] = minima.w[0], w.scale[h][3] = minima.w[1];
    } else {
      Words4 scales = wordsOf(q, at + 64 * h);
      TK_UNROLL
      for (int i = 0; i < 4; ++i)
        w.scale[h][i] = scales.w[i];
    }
  }
  at += tk_scale_bytes(format);
  if (tk_has_nibbles(format)) {
    w.codes[0] = wordsOf(q, at + line);
  } else {
    w.codes[0] = wordsOf(q, at + 2 * line);
    w.codes[1] = wordsOf(q, at + 2 * line + 64);
  }
}

// Four signed codes of row i, of columns 8t .. 8t + 3 (half 0) or 8t + 4 .. 8t + 7.
TK_DEVICE uint32_t codesOf(int32_t format, const CodesOfStep &w, int i, int half) {
  if (tk_has_nibbles(format))
    return (half ? w.codes[0].w[i] >> 4 : w.codes[0].w[i]) & 0x0f0f0f0f;
  return format == TK_U8M ? w.codes[half].w[i] : w.codes[half].w[i] ^ 0x80808080;
}
TK_DEVICE float scaleOf(int32_t format, const CodesOfStep &w, int half, int i) {
  if (!tk_has_min(format))
    return bitsToFloat(w.scale[half][i]);
  return i % 2 ? halfHigh(w.scale[half][i / 2]) : halfLow(w.scale[half][i / 2]);
}
TK_DEVICE float minimumOf(const CodesOfStep &w, int half, int i) {
  return i % 2 ? halfHigh(w.scale[half][2 + i / 2]) : halfLow(w.scale[half][2 + i / 2]);
}

// An integer that was added to the bits of this float is a float again by subtracting it.
constexpr float WholeNumbers = 12582912; // 1.5 · 2^23
constexpr int32_t WholeNumberBits = 0x4b400000;

template <int Rows>
TK_DEVICE void loadNumbers(int32_t format, const char *from, float (&x)[Rows][4]) {
  if (tk_step_numbers(format) == 4) {
    TK_UNROLL
    for (int r = 0; r < Rows; ++r) {
      Words2 low = loadWords2(from + 16 * r), high = loadWords2(from + 16 * r + 8);
      x[r][0] = bitsToFloat(low.w[0]), x[r][1] = bitsToFloat(low.w[1]);
      x[r][2] = bitsToFloat(high.w[0]);
    }
  } else if (Rows == 1) {
    Words2 v = loadWords2(from);
    x[0][0] = bitsToFloat(v.w[0]), x[0][1] = bitsToFloat(v.w[1]);
  } else {
    Words4 v = loadWords4(from);
    TK_UNROLL
    for (int r = 0; r < Rows; ++r)
      x[r][0] = bitsToFloat(v.w[2 * r]), x[r][1] = bitsToFloat(v.w[2 * r + 1]);
  }
}

// sums + the products of one step, for panels of Rows rows. All integer dots of a group are exact.
template <int Rows, int Panels>
TK_DEVICE void addCodes(int32_t format, const CodesOfStep &w, Panel panel, Sums<Panels> &sums) {
  constexpr int Each = Rows == 1 ? 1 : 2; // rows whose sums a lane has
  const int g = lane() / 4, t = lane() % 4, numbers = (int)tk_step_numbers(format);
  const bool halves = tk_has_halves(format);
  uint32_t a[2][4];
  float scale[2][4], minimum[2][4];
  TK_UNROLL
  for (int m = 0; m < 2; ++m) {
    TK_UNROLL
    for (int j = 0; j < 4; ++j)
      a[m][j] = codesOf(format, w, 2 * m + j % 2, j / 2);
  }
  TK_UNROLL
  for (int h = 0; h < 2; ++h) {
    TK_UNROLL
    for (int i = 0; i < 4; ++i) {
      scale[h][i] = h == 1 && !halves ? 0 : scaleOf(format, w, h, i);
      minimum[h][i] = !tk_has_min(format) || (h == 1 && !halves) ? 0 : minimumOf(w, h, i);
    }
  }
  TK_UNROLL
  for (int p = 0; p < Panels; ++p) {
    const char *step = panel.step + p * panel.stride;
    Words2 codes = loadWords2(step + (Rows == 1 ? 0 : g) * TK_GROUP + 8 * t);
    float x[Each][4]; // the numbers of rows 2t and 2t + 1
    loadNumbers<Each>(format, step + Rows * TK_GROUP + (Rows == 1 ? 0 : 2 * t) * 4 * numbers, x);
    TK_UNROLL
    for (int m = 0; m < 2; ++m) {
      // Columns 0 .. 15 are those of lanes with t < 2.
      int32_t dots[2][4];
      TK_UNROLL
      for (int h = 0; h < 2; ++h) {
        if (h == 1 && !halves)
          break;
        TK_UNROLL
        for (int j = 0; j < 4; ++j)
          dots[h][j] = WholeNumberBits;
        bool mine = !halves || t / 2 == h;
        const uint32_t b[2] = {mine ? codes.w[0] : 0, mine ? codes.w[1] : 0};
        mmaInt8(dots[h], a[m], b);
      }
      TK_UNROLL
      for (int i = 0; i < 2; ++i) {
        TK_UNROLL
        for (int e = 0; e < Each; ++e) {
          float &sum = sums.c[p][m][2 * i + e];
          const float *of = x[e];
          TK_UNROLL
          for (int h = 0; h < 2; ++h) {
            if (h == 1 && !halves)
              break;
            float dot = bitsToFloat((uint32_t)dots[h][2 * i + e]) - WholeNumbers;
            sum += dot * (scale[h][2 * m + i] * of[0]);
          }
          if (tk_has_min(format))
            sum += minimum[0][2 * m + i] * of[1];
          if (tk_has_min(format) && halves)
            sum += minimum[1][2 * m + i] * of[2];
        }
      }
    }
  }
}

// ── weights of 16 bits ─────────────────────────────────────────────────────────────────────────

struct HalvesOfStep {
  Words4 rows[4]; // columns 8t .. 8t + 7 of each
};

TK_DEVICE void loadStep(int32_t format, int64_t cols, const Quarter &q, int64_t step,
                        HalvesOfStep &w) {
  int64_t first = TK_GROUP * step + 8 * (lane() % 4);
  bool inside = cols % TK_GROUP == 0 || first < tk_padded_cols(format, cols);
  TK_UNROLL
  for (int i = 0; i < 4; ++i)
    w.rows[i] = inside ? loadWords4(rowOf(q, i) + 2 * first) : Words4{{0, 0, 0, 0}};
}

template <int Rows, int Panels>
TK_DEVICE void addHalves(int32_t format, int32_t parts, const HalvesOfStep &w, Panel panel,
                         Sums<Panels> &sums) {
  const int g = Rows == 1 ? 0 : lane() / 4, t = lane() % 4;
  TK_UNROLL
  for (int p = 0; p < Panels; ++p) {
    TK_UNROLL
    for (int part = 0; part < 3; ++part) {
      if (part >= parts)
        break;
      Words4 x = loadWords4(panel.step + p * panel.stride + (part * Rows + g) * 64 + 16 * t);
      TK_UNROLL
      for (int h = 0; h < 2; ++h) {
        const uint32_t b[2] = {x.w[2 * h], x.w[2 * h + 1]};
        TK_UNROLL
        for (int m = 0; m < 2; ++m) {
          const Words4 &even = w.rows[2 * m], &odd = w.rows[2 * m + 1];
          const uint32_t a[4] = {even.w[2 * h], odd.w[2 * h], even.w[2 * h + 1], odd.w[2 * h + 1]};
          if (format == TK_BF16_ROWS)
            mmaBf16(sums.c[p][m], a, b);
          else
            mmaHalf(sums.c[p][m], a, b);
        }
      }
    }
  }
}

// ── f32 weights ────────────────────────────────────────────────────────────────────────────────

// A lane's own columns, not yet those of the other lanes with the same g: [output][row].
template <int Rows> struct OwnSums {
  float c[4][Rows];
};

template <int Rows>
TK_DEVICE void addFloats(int64_t cols, const Quarter &q, int64_t step, const char *panel,
                         OwnSums<Rows> &sums) {
  int64_t first = TK_GROUP * step + 8 * (lane() % 4);
  Words4 w[8];
  TK_UNROLL
  for (int i = 0; i < 8; ++i)
    w[i] = cols % TK_GROUP == 0 || first + i < cols ? wordsOf(q, 64 * (first + i))
                                                    : Words4{{0, 0, 0, 0}};
  TK_UNROLL
  for (int r = 0; r < Rows; ++r) {
    TK_UNROLL
    for (int i = 0; i < 8; i += 4) {
      Words4 x = loadWords4(panel + r * TK_GROUP * 4 + 32 * (lane() % 4) + 4 * i);
      TK_UNROLL
      for (int j = 0; j < 4; ++j) {
        TK_UNROLL
        for (int k = 0; k < 4; ++k)
          sums.c[j][r] += bitsToFloat(w[i + k].w[j]) * bitsToFloat(x.w[k]);
      }
    }
  }
}

// Adds up the lanes' columns; each lane keeps the rows that are its own.
template <int Rows> TK_DEVICE void joinColumns(const OwnSums<Rows> &own, float (&c)[2][4]) {
  const int t = lane() % 4;
  TK_UNROLL
  for (int j = 0; j < 4; ++j) {
    TK_UNROLL
    for (int r = 0; r < Rows; ++r) {
      float v = own.c[j][r];
      v += shuffleXor(v, 1);
      v += shuffleXor(v, 2);
      if (Rows == 1 || r / 2 == t)
        c[j / 2][j % 2 * 2 + r % 2] = v;
    }
  }
}

} // namespace tk

#endif // TENON_CODEGEN_CUDA_KERNELS_TILE_H
