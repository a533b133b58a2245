// Products of prepared rows with pairs of tiles, in three shapes:
//
//   one    one row: the block prepares it in shared memory. Its warps share the spans of K
//   few    up to 16 rows, prepared in the workspace. The same
//   many   a block has up to 4 pairs (128 outputs) and 64 or 128 rows, which pass through shared
//          memory; a warp has one pair and half of the rows, and all of K
//
//              K: span 0   span 1   ...                        half of rows    others
//   pair      [ warp 0 | warp 1 | ... ] ─▶ Σ in order    pair 0   warp 0          warp 1
//                                                        pair 1   warp 2          warp 3   ...
//
// What a pair is, and what becomes of its results, is the caller's (`Pairs`).
#ifndef TENON_CODEGEN_CUDA_KERNELS_PRODUCT_H
#define TENON_CODEGEN_CUDA_KERNELS_PRODUCT_H

#include "prepare.h"
#include "tile.h"

namespace tk {

// `count` pairs of tiles: quarter(pair, g) has the rows of lanes 4g .. 4g + 3, and store(row, pair,
// output, v, up) takes a result. A pair is 32 outputs or, Gated, 16 gates (v) and their ups.
template <bool IsGated, class QuarterOf, class Store> struct Pairs {
  static constexpr bool Gated = IsGated;
  int64_t count;
  QuarterOf quarter;
  Store store;
};
template <bool Gated, class QuarterOf, class Store>
TK_DEVICE Pairs<Gated, QuarterOf, Store> makePairs(int64_t count, QuarterOf quarter, Store store) {
  return {count, quarter, store};
}

// Adds up a span. `panel` begins at step 0.
template <int Rows, int Panels>
TK_DEVICE void addSpan(const Prologue &p, const Quarter &q, int64_t span, Panel panel,
                       Sums<Panels> &sums) {
  const int64_t first = span * tk_span_steps(p.cols);
  const int64_t end =
      tk_spans_equal(p.cols) ? first + tk_span_steps(p.cols) : tk_span_end(p.cols, span);
  const int64_t bytes = tk_step_bytes(p.format, p.parts) * Rows;
  auto at = [&](int64_t step) -> Panel { return {panel.step + step * bytes, panel.stride}; };
  if (tk_is_quantised(p.format)) {
    constexpr int Ahead = 4; // steps whose weights are on their way
    for (int64_t s = first; s < end; s += Ahead) {
      CodesOfStep w[Ahead];
      TK_UNROLL
      for (int i = 0; i < Ahead; ++i)
        if (s + i < end)
          loadStep(p.format, q, s + i, w[i]);
      TK_UNROLL
      for (int i = 0; i < Ahead; ++i)
        if (s + i < end)
          addCodes<Rows, Panels>(p.format, w[i], at(s + i), sums);
    }
  } else if (p.format == TK_F32) {
    TK_UNROLL
    for (int i = 0; i < Panels; ++i) {
      OwnSums<Rows> own = {};
      for (int64_t s = first; s < end; ++s)
        addFloats<Rows>(p.cols, q, s, at(s).step + i * panel.stride, own);
      joinColumns<Rows>(own, sums.c[i]);
    }
  } else {
    constexpr int Ahead = 2;
    for (int64_t s = first; s < end; s += Ahead) {
      HalvesOfStep w[Ahead];
      TK_UNROLL
      for (int i = 0; i < Ahead; ++i)
        if (s + i < end)
          loadStep(p.format, p.cols, q, s + i, w[i]);
      TK_UNROLL
      for (int i = 0; i < Ahead; ++i)
        if (s + i < end)
          addHalves<Rows, Panels>(p.format, p.parts, w[i], at(s + i), sums);
    }
  }
}

// Asks for the first weights of this warp's spans of a pair, so that they are on their way while the
// launch before ends and the block prepares what they are multiplied with: a line for each lane and
// span, 64 KB for a whole block, so that all blocks of a large device ask for half of its
// second-level cache.
template <class P> TK_DEVICE void prefetchPair(const Prologue &p, const P &pairs, int64_t pair) {
  if (pair >= pairs.count)
    return;
  const Quarter q = pairs.quarter(pair, lane() / 16 * 4); // a tile for each half of the warp
  const int64_t rowBytes = q.tileBytes / 16;
  forEachSpan(p.cols, [&](int64_t span) {
    if (tk_is_rows(p.format)) { // a row for each lane
      const int64_t row = least(q.row + lane() % 16, q.rows - 1);
      prefetchLine(q.matrix + row * rowBytes + span * tk_span_steps(p.cols) * TK_GROUP * 2);
      return;
    }
    const int64_t bytes = q.tileBytes / tk_steps(p.cols) * tk_span_steps(p.cols);
    const int64_t at = span * bytes + lane() % 16 * 128;
    if (at < least((span + 1) * bytes, q.tileBytes))
      prefetchLine(q.matrix + q.row / 16 * q.tileBytes + at);
  });
}

// What undoes a span's factor of row `at` of a panel.
template <int Rows>
TK_DEVICE float unscale(const Prologue &p, const char *panel, int64_t span, int at) {
  if (p.format != TK_F16_ROWS)
    return 1;
  int64_t steps = tk_steps(p.cols) * tk_step_bytes(p.format, p.parts) * Rows;
  return ((const float *)(panel + steps))[span * Rows + at];
}

// Leaves the sums of a span of some panels in `space` [spans][Panels · Rows][32].
template <int Rows, int Panels>
TK_DEVICE void leaveSums(const Prologue &p, const Sums<Panels> &sums, Panel panel, int64_t span,
                         float *space) {
  const int g = lane() / 4, t = lane() % 4;
  constexpr int Each = Rows == 1 ? 1 : 2;
  if (Rows == 1 && t > 0)
    return;
  TK_UNROLL
  for (int i = 0; i < Panels; ++i) {
    TK_UNROLL
    for (int e = 0; e < Each; ++e) {
      int at = Rows == 1 ? 0 : 2 * t + e;
      float factor = unscale<Rows>(p, panel.step + i * panel.stride, span, at);
      TK_UNROLL
      for (int j = 0; j < 4; ++j)
        space[((span * Panels + i) * Rows + at) * 32 + 4 * g + j] =
            sums.c[i][j / 2][j % 2 * 2 + e] * factor;
    }
  }
}

// The block adds up the spans of `rows` of `spaceRows` rows, the first of which is firstRow.
template <class P>
TK_DEVICE void foldSums(const Prologue &p, const float *space, int spaceRows, int64_t firstRow,
                        int64_t rows, int64_t pair, const P &pairs) {
  constexpr int Outputs = P::Gated ? 16 : 32;
  int64_t count = least((int64_t)spaceRows, rows) * Outputs;
  for (int i = threadIndex(); i < count; i += threadCount()) {
    int at = i / Outputs, output = i % Outputs;
    float v = 0, up = 0;
    for (int64_t span = 0; span < tk_spans(p.cols); ++span) {
      const float *of = space + (span * spaceRows + at) * 32 + output;
      v += of[0];
      if (P::Gated)
        up += of[16];
    }
    pairs.store(firstRow + at, pair, output, v, up);
  }
}

// ── one row ────────────────────────────────────────────────────────────────────────────────────

// Row `row` at x, times pairs firstPair, firstPair + step ... Shared memory: the row;
// [2][spans][32] sums, of which pairs use one half and the other by turns; two floats for each
// span.
template <class P>
TK_DEVICE void multiplyOne(const Prologue &p, const float *x, int64_t row, int64_t firstPair,
                           int64_t step, const P &pairs) {
  const int64_t spans = tk_spans(p.cols);
  const Panel panel = {shared(), 0};
  float *space = (float *)(shared() + tk_prepared_bytes(p.format, p.parts, p.cols));
  NormOfRow n = measureRow(p, x, space + 2 * 32 * spans);
  forEachSpan(p.cols, [&](int64_t span) { prepareSpan<1>(p, n, x, span, shared(), 0); });
  syncWarp(); // a warp reads its own spans only
  int turn = 0;
  for (int64_t pair = firstPair; pair < pairs.count; pair += step, turn ^= 1) {
    const Quarter q = pairs.quarter(pair, lane() / 4);
    float *own = space + turn * 32 * spans;
    forEachSpan(p.cols, [&](int64_t span) {
      Sums<1> sums;
      clear(sums);
      addSpan<1, 1>(p, q, span, panel, sums);
      leaveSums<1, 1>(p, sums, panel, span, own);
    });
    sync();
    foldSums(p, own, 1, row, 1, pair, pairs);
  }
}

// ── few rows ───────────────────────────────────────────────────────────────────────────────────

// Shared memory: [spans][Panels · 8][32] sums.
template <int Panels, class P>
TK_DEVICE void multiplyPanels(const Prologue &p, const char *prepared, int64_t firstRow,
                              int64_t rows, const P &pairs) {
  const int64_t stride = TK_PANEL_ROWS * tk_prepared_bytes(p.format, p.parts, p.cols);
  const Panel panel = {prepared + firstRow / TK_PANEL_ROWS * stride, stride};
  float *space = (float *)shared();
  for (int64_t pair = blockX(); pair < pairs.count; pair += gridX()) {
    const Quarter q = pairs.quarter(pair, lane() / 4);
    forEachSpan(p.cols, [&](int64_t span) {
      Sums<Panels> sums;
      clear(sums);
      addSpan<TK_PANEL_ROWS, Panels>(p, q, span, panel, sums);
      leaveSums<TK_PANEL_ROWS, Panels>(p, sums, panel, span, space);
    });
    sync();
    foldSums(p, space, Panels * TK_PANEL_ROWS, firstRow, rows - firstRow, pair, pairs);
    sync();
  }
}

// Prepared rows may end within the last panel: what lies behind them reaches no row that is stored.
template <class P>
TK_DEVICE void multiplyFew(const Prologue &p, const char *prepared, int64_t rows, const P &pairs) {
  int64_t first = blockY() * TK_FEW_ROWS, count = least(rows - first, (int64_t)TK_FEW_ROWS);
  if (p.format == TK_F32) // the sums of more would not fit the registers
    for (int64_t r = first; r < first + count; r += TK_PANEL_ROWS)
      multiplyPanels<1>(p, prepared, r, rows, pairs);
  else if (count <= TK_PANEL_ROWS)
    multiplyPanels<1>(p, prepared, first, rows, pairs);
  else
    multiplyPanels<TK_FEW_ROWS / TK_PANEL_ROWS>(p, prepared, first, rows, pairs);
}

// ── many rows ──────────────────────────────────────────────────────────────────────────────────

// Brings `steps` steps of `panels` panels from step `first` on into a stage.
TK_DEVICE void copyStage(const Prologue &p, const char *prepared, int64_t panels, int64_t first,
                         char *stage) {
  const int64_t bytes = tk_step_bytes(p.format, p.parts) * TK_PANEL_ROWS;
  const int64_t panelBytes = TK_PANEL_ROWS * tk_prepared_bytes(p.format, p.parts, p.cols);
  const int64_t run = tk_stage_steps(p.format) * bytes;
  int64_t valid = least(tk_stage_steps(p.format), tk_steps(p.cols) - first) * bytes;
  for (int64_t i = 16 * threadIndex(); i < panels * run; i += 16 * threadCount()) {
    int64_t panel = i / run, at = i % run;
    if (at < valid)
      copyAsync16(stage + i, prepared + panel * panelBytes + first * bytes + at);
  }
}

// Rows firstRow .. firstRow + 16 · Panels - 1, as far as there are `rows`, times pairs firstPair ..
// firstPair + warps / 2 - 1. Shared memory: two stages.
template <int Panels, class P>
TK_DEVICE void multiplyBlock(const Prologue &p, const char *prepared, int64_t firstRow,
                             int64_t rows, int64_t firstPair, const P &pairs) {
  const int g = lane() / 4, t = lane() % 4, half = warp() % 2;
  const int64_t bytes = tk_step_bytes(p.format, p.parts) * TK_PANEL_ROWS;
  const int64_t panelBytes = TK_PANEL_ROWS * tk_prepared_bytes(p.format, p.parts, p.cols);
  const int64_t stageSteps = tk_stage_steps(p.format), run = stageSteps * bytes;
  const int64_t steps = tk_steps(p.cols), spanSteps = tk_span_steps(p.cols);
  const char *block = prepared + firstRow / TK_PANEL_ROWS * panelBytes;
  const int64_t panels =
      (least(int64_t(2 * Panels * TK_PANEL_ROWS), rows - firstRow) + TK_PANEL_ROWS - 1) /
      TK_PANEL_ROWS;
  const int64_t pair = least(firstPair + warp() / 2, pairs.count - 1);
  const Quarter q = pairs.quarter(pair, g);
  // Rounded activations come with no promise about the order of sums: one sum is enough.
  const bool inOrder = tk_is_quantised(p.format) || p.parts > 1;

  Sums<Panels> sums, total;
  clear(sums);
  clear(total);
  // Behind the last step of a span: its sums go to the total, or, of f16, to the next one's scale.
  auto endSpan = [&](int64_t span) {
    if (!inOrder && p.format != TK_F16_ROWS)
      return;
    TK_UNROLL
    for (int k = 0; k < Panels; ++k) {
      if (half * Panels + k >= panels)
        break;
      const char *panel = block + (half * Panels + k) * panelBytes;
      TK_UNROLL
      for (int e = 0; e < 2; ++e) {
        float factor = unscale<TK_PANEL_ROWS>(p, panel, span, 2 * t + e);
        if (!inOrder && span + 1 < tk_spans(p.cols))
          factor /= unscale<TK_PANEL_ROWS>(p, panel, span + 1, 2 * t + e);
        TK_UNROLL
        for (int j = 0; j < 4; ++j) {
          float &sum = sums.c[k][j / 2][j % 2 * 2 + e];
          if (inOrder)
            total.c[k][j / 2][j % 2 * 2 + e] += sum * factor;
          sum = inOrder ? 0 : sum * factor;
        }
      }
    }
  };
  CodesOfStep codes, nextCodes;
  HalvesOfStep halves, nextHalves;
  auto load = [&](int64_t step) {
    if (step >= steps)
      return;
    if (tk_is_quantised(p.format))
      loadStep(p.format, q, step, nextCodes);
    else
      loadStep(p.format, p.cols, q, step, nextHalves);
  };
  copyStage(p, block, panels, 0, shared());
  commitCopies();
  load(0);
  int64_t span = 0, spanEnd = least(spanSteps, steps);
  for (int64_t first = 0, turn = 0; first < steps; first += stageSteps, turn ^= 1) {
    char *stage = shared() + turn * 2 * Panels * run;
    waitCopies(0);
    sync(); // the stage is there for all, and all are done with the other one
    copyStage(p, block, panels, first + stageSteps, shared() + (turn ^ 1) * 2 * Panels * run);
    commitCopies();
    for (int64_t i = 0; i < stageSteps && first + i < steps; ++i) {
      Panel panel = {stage + half * Panels * run + i * bytes, run};
      codes = nextCodes;
      halves = nextHalves;
      load(first + i + 1);
      if (tk_is_quantised(p.format))
        addCodes<TK_PANEL_ROWS, Panels>(p.format, codes, panel, sums);
      else
        addHalves<TK_PANEL_ROWS, Panels>(p.format, p.parts, halves, panel, sums);
      if (first + i + 1 == spanEnd) {
        endSpan(span++);
        spanEnd = least(spanEnd + spanSteps, steps);
      }
    }
  }
  // The shared memory may be another product's from here on.
  waitCopies(0);
  sync();
  bool mine = firstPair + warp() / 2 < pairs.count;
  TK_UNROLL
  for (int k = 0; k < Panels; ++k) {
    TK_UNROLL
    for (int j = 0; j < 4; ++j) {
      TK_UNROLL
      for (int e = 0; e < 2; ++e) {
        float v = (inOrder ? total : sums).c[k][j / 2][j % 2 * 2 + e];
        float up = P::Gated ? shuffleXor(v, 16) : 0; // g + 4
        int64_t row = firstRow + (half * Panels + k) * TK_PANEL_ROWS + 2 * t + e;
        if (mine && row < rows && (!P::Gated || g < 4))
          pairs.store(row, pair, 4 * g + j, v, up);
      }
    }
  }
}

// ── the launches of tk_linear and tk_gated_mlp ─────────────────────────────────────────────────

// io: x, weight, [norm_weight], [norm_bias], [bias], [residual], out
struct ProductOperands {
  Prologue prologue;
  const float *x, *bias, *residual;
  const char *weight;
  float *out;
};

TK_DEVICE bool hasResidual(const tk_linear_shape &s) { return s.residual != 0; }
TK_DEVICE bool hasResidual(const tk_gated_mlp_shape &) { return false; }

template <class Shape>
TK_DEVICE ProductOperands operandsOf(const Shape &s, const tk_args &args, int32_t rounded) {
  int at = 0;
  ProductOperands o;
  o.x = (const float *)args.io[at++];
  o.weight = (const char *)args.io[at++];
  const float *normWeight = s.norm ? (const float *)args.io[at++] : nullptr;
  const float *normBias = s.norm_bias ? (const float *)args.io[at++] : nullptr;
  o.bias = s.bias ? (const float *)args.io[at++] : nullptr;
  o.residual = hasResidual(s) ? (const float *)args.io[at++] : nullptr;
  o.out = (float *)args.io[at];
  o.prologue = {s.format, tk_parts(s.format, rounded), s.cols, s.norm, s.eps, normWeight, normBias};
  return o;
}

// Each shape has its pairsOf(shape, operands).
template <class Shape> TK_DEVICE void productOne(const Shape &s, const tk_args &args) {
  ProductOperands o = operandsOf(s, args, 0);
  auto pairs = pairsOf(s, o);
  prefetchPair(o.prologue, pairs, blockX());
  awaitLaunch();
  multiplyOne(o.prologue, o.x, 0, blockX(), gridX(), pairs);
}

template <class Shape> TK_DEVICE void productPrepare(const Shape &s, const tk_args &args) {
  ProductOperands o = operandsOf(s, args, tk_rounds(s.may_round, countRows(s.rows, args)));
  prepareRow(o.prologue, o.x + blockY() * s.x_stride, args.workspace, blockY());
}

template <class Shape> TK_DEVICE void productFew(const Shape &s, const tk_args &args) {
  ProductOperands o = operandsOf(s, args, 0);
  multiplyFew(o.prologue, args.workspace, countRows(s.rows, args), pairsOf(s, o));
}

template <int Rows, class Shape> TK_DEVICE void productMany(const Shape &s, const tk_args &args) {
  ProductOperands o = operandsOf(s, args, s.may_round);
  multiplyBlock<Rows / 16>(o.prologue, args.workspace, blockY() * Rows, countRows(s.rows, args),
                           blockX() * (warps() / 2), pairsOf(s, o));
}

} // namespace tk

#endif // TENON_CODEGEN_CUDA_KERNELS_PRODUCT_H
