// Products of many rows that the device's library computes (tenon_product): what comes before, and
// behind. In the workspace:
//
//   x ─norm, rounding─▶ [rows][depth] 16 bits ─library─▶ [rows][outputs] f32 ─epilogue─▶ out
//
// A row in f16 is multiplied with a power of two, which brings its largest element near 2^13; what
// undoes it lies behind the results, a float for each row.
#ifndef TENON_CODEGEN_CUDA_KERNELS_LIBRARY_H
#define TENON_CODEGEN_CUDA_KERNELS_LIBRARY_H

#include "product.h"

namespace tk {

struct LibraryRows {
  char *x;
  float *results, *factors;
};
TK_DEVICE LibraryRows libraryRows(char *workspace, int64_t rows, int64_t depth, int64_t outputs) {
  char *results = workspace + tenon_product_at(rows, depth);
  return {workspace, (float *)results, (float *)(results + tk_round_up(rows * outputs * 4, 256))};
}

// The block rounds a row. Shared memory: three floats for each span. Returns what undoes its
// factor.
TK_DEVICE float roundRow(const Prologue &p, const float *x, char *out) {
  float *space = (float *)shared();
  const NormOfRow n = measureRow(p, x, space);
  float factor = 1;
  if (p.format == TK_F16_ROWS) {
    int32_t *largest = (int32_t *)(space + 2 * tk_spans(p.cols));
    forEachSpan(p.cols, [&](int64_t span) {
      int32_t bits = largestOfSpan(p, n, x, span);
      if (lane() == 0)
        largest[span] = bits;
    });
    sync();
    int32_t bits = 0;
    for (int64_t span = 0; span < tk_spans(p.cols); ++span)
      bits = largest[span] > bits ? largest[span] : bits;
    factor = bitsToFloat(halfFactor(bits));
  }
  const int64_t depth = tk_padded_cols(p.format, p.cols);
  forEachSpan(p.cols, [&](int64_t span) {
    forEachRun(p.cols, span, [&](int64_t c, int64_t, bool inside) {
      if (!inside || c >= depth)
        return;
      Eight e = loadNormed(p, n, x, c);
      TK_UNROLL
      for (int i = 0; i < 8; ++i)
        e.v[i] *= factor;
      writeParts(p.format, 1, e, out + 2 * c, 0);
    });
  });
  return 1.0f / factor;
}

template <class Shape>
TK_DEVICE void productRound(const Shape &s, const tk_args &args, int64_t outputs) {
  const int64_t row = blockY(), depth = tk_padded_cols(s.format, s.cols);
  ProductOperands o = operandsOf(s, args, 1);
  LibraryRows there = libraryRows(args.workspace, countRows(s.rows, args), depth, outputs);
  float undo = roundRow(o.prologue, o.x + row * s.x_stride, there.x + row * depth * 2);
  if (s.format == TK_F16_ROWS && threadIndex() == 0)
    there.factors[row] = undo;
}

// Results `outputs` a row; a gated pair's second one is half a row behind its first.
template <class Shape>
TK_DEVICE void productFinish(const Shape &s, const tk_args &args, int64_t outputs) {
  const int64_t row = blockY(), depth = tk_padded_cols(s.format, s.cols);
  LibraryRows there = libraryRows(args.workspace, countRows(s.rows, args), depth, outputs);
  const float *results = there.results + row * outputs;
  const float factor = s.format == TK_F16_ROWS ? there.factors[row] : 1;
  auto pairs = pairsOf(s, operandsOf(s, args, 1));
  constexpr bool Gated = decltype(pairs)::Gated;
  constexpr int Each = Gated ? 16 : 32;
  const int64_t count = Gated ? outputs / 2 : outputs;
  for (int64_t c = blockX() * threadCount() + threadIndex(); c < count;
       c += gridX() * threadCount())
    pairs.store(row, c / Each, int(c % Each), results[c] * factor,
                Gated ? results[count + c] * factor : 0);
}

} // namespace tk

#endif // TENON_CODEGEN_CUDA_KERNELS_LIBRARY_H
