// A device in numbers, and how long a product takes on it as far as they tell: by which plans choose
// among tiles, shares and the library. Plain C++.
//
//   seconds = max(arithmetic of the busiest processor, traffic of the second-level cache,
//                 weights from memory) + launch
//
// It says which of two ways is likely to be the faster one, not how long either takes: nothing of it
// has been measured on a device.
#ifndef TENON_CODEGEN_CUDA_KERNELS_DEVICE_MODEL_H
#define TENON_CODEGEN_CUDA_KERNELS_DEVICE_MODEL_H

#include "product_shape.h"
#include "runtime/kernel_abi.h"

struct tk_device {
  const char *name;
  int32_t processors;
  double memory;                   // bytes a second
  double cache;                    // bytes a second of the second-level cache, all processors
  double floats, halves, integers; // operations a second, without sparsity
  double launch;                   // seconds from one kernel of a graph to the next
  double stream;                   // bytes a second that one processor can read
  double merge;                    // seconds for each share of a row that is merged
  double warp_share;               // of `halves` and `integers` that mma.sync reaches
  double library_share;            // that cuBLASLt reaches
};

// NVIDIA H200 SXM: rates of its data sheet. mma.sync reaches 62 % of them on Hopper (arXiv:2402.13499,
// table of mma throughput); the others are round numbers near what is reported for H100.
static inline tk_device tk_h200() {
  return {"NVIDIA H200", 132,    4.8e12, 5.5e12, 67e12, 989e12,
          1979e12,       1.5e-6, 60e9,   10e-9,  0.62,  0.75};
}

// A product of `rows` with `pairs` pairs of tiles of 16 outputs, `cols` long.
struct tk_work {
  int32_t format, parts;
  int64_t rows, pairs, cols;
};

static inline double tk_largest(double a, double b) { return a > b ? a : b; }

static inline double tk_weight_bytes(int32_t format) { // of an element
  return tk_is_quantised(format) ? (double)tk_group_bytes(format) / (16 * TK_GROUP)
         : format == TK_F32      ? 4
                                 : 2;
}

// Of blocks of `tile_pairs` pairs and `tile_rows` rows, with two warps a pair.
static inline double tk_tile_seconds(const tk_device &d, const tk_work &w, int32_t tile_pairs,
                                     int32_t tile_rows) {
  const int64_t blocks =
      ((w.rows + tile_rows - 1) / tile_rows) * ((w.pairs + tile_pairs - 1) / tile_pairs);
  double outputs = 32.0 * tile_pairs, cols = (double)w.cols;
  int64_t turns = (blocks + d.processors - 1) / d.processors;
  // At most 16 warps fit a processor's registers. One warp for each of its four tensor cores does
  // about 0.7 of what two do.
  int64_t warps = 2 * tile_pairs * turns;
  double busy = warps >= 8 ? 1 : warps >= 4 ? 0.7 : 0.35;
  double products = outputs * tile_rows * cols;
  bool quantised = tk_is_quantised(w.format);
  double block = 2 * products * w.parts / (d.warp_share * (quantised ? d.integers : d.halves));
  if (quantised) // scaling: four instructions for each output, row and group
    block = tk_largest(block, 2 * 4 * products / TK_GROUP / d.floats);
  double arithmetic = (double)turns * block * d.processors / busy;
  double x = (double)tk_step_bytes(w.format, w.parts) / TK_GROUP;
  double traffic =
      (double)blocks * cols * (outputs * tk_weight_bytes(w.format) + tile_rows * x) / d.cache;
  double weights = 32.0 * (double)w.pairs * cols * tk_weight_bytes(w.format) / d.memory;
  return tk_largest(arithmetic, tk_largest(traffic, weights)) + d.launch;
}

// Of cuBLASLt, by the best of some tiles, the smaller ones less efficient, two of which read what is
// the same for both once; and of what must pass over the results behind it: `finished` bytes a row,
// 0 if nothing must.
static inline double tk_library_seconds(const tk_device &d, const tk_work &w, int64_t finished) {
  struct {
    int32_t outputs, rows, reads; // reads: of rows and outputs
    double share;
  } const tiles[] = {{128, 256, 256, 1}, {128, 128, 192, 0.85}, {64, 128, 128, 0.7}};
  const int64_t outputs = 32 * w.pairs;
  double product = 1;
  for (const auto &tile : tiles) {
    int64_t count =
        ((outputs + tile.outputs - 1) / tile.outputs) * ((w.rows + tile.rows - 1) / tile.rows);
    int64_t turns = (count + d.processors - 1) / d.processors;
    double block = 2.0 * tile.outputs * tile.rows * (double)w.cols;
    double arithmetic =
        (double)turns * block * d.processors / (tile.share * d.library_share * d.halves);
    double traffic = (double)count * (double)w.cols * 2 * tile.reads / d.cache;
    double seconds = tk_largest(arithmetic, traffic);
    product = seconds < product ? seconds : product;
  }
  double weights = (double)outputs * (double)w.cols * 2 / d.memory;
  double seconds = tk_largest(product, weights) + d.launch;
  return finished ? seconds + (double)(w.rows * finished) / d.memory + d.launch : seconds;
}

// ── the tile of many rows ──────────────────────────────────────────────────────────────────────

struct tk_tile_choice {
  int32_t pairs, rows;
};
static inline tk_tile_choice tk_choose_tile(const tk_device &d, const tk_work &w) {
  tk_tile_choice best = {TK_MANY_PAIRS, TK_MANY_ROWS};
  double least = tk_tile_seconds(d, w, best.pairs, best.rows);
  for (int32_t rows = TK_MANY_ROWS; rows <= tk_most_tile_rows(w.format, w.parts); rows *= 2)
    for (int32_t pairs = TK_MANY_PAIRS; pairs >= 1; pairs /= 2)
      if (double seconds = tk_tile_seconds(d, w, pairs, rows); seconds < least) {
        least = seconds;
        best = {pairs, rows};
      }
  return best;
}

// A product that takes less than this is not worth a library of half a gigabyte.
#define TK_LARGE_SECONDS 20e-6

// Rows from which the library is the faster one by a tenth, up to a wave of prefill; 0: it never is.
static inline int32_t tk_library_rows(const tk_device &d, tk_work w, int64_t finished) {
  int32_t first = 0;
  for (w.rows = TENON_WAVE_TOKENS; w.rows > TK_MOST_FEW_ROWS; w.rows -= 64) {
    tk_tile_choice tile = tk_choose_tile(d, w);
    double seconds = tk_tile_seconds(d, w, tile.pairs, tile.rows);
    if (seconds < TK_LARGE_SECONDS || tk_library_seconds(d, w, finished) > 0.9 * seconds)
      break;
    first = (int32_t)w.rows - 63;
  }
  return first;
}

#endif // TENON_CODEGEN_CUDA_KERNELS_DEVICE_MODEL_H
