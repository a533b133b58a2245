// Which grids the products run on: one row alone; few rows; many rows, for which it is worth to
// share them among the warps of a block (product_shape.h, product.h); and so many that the device's
// library is the faster one (library.h). What is likely to be faster says device_model.h.
#ifndef TENON_CODEGEN_CUDA_KERNELS_PLAN_PRODUCTS_H
#define TENON_CODEGEN_CUDA_KERNELS_PLAN_PRODUCTS_H

#include "device_model.h"
#include "launch.h"

// Shared memory of a block that every device has.
#define TK_MOST_SHARED (96 << 10)

// Blocks that are at work at a time on a large device; more pairs than these are taken in turns.
#define TK_BLOCKS 528

// So few blocks are one for each multiprocessor, and have more warps.
#define TK_FEW_BLOCKS 148

static inline int32_t tk_pair_blocks(int64_t pairs) {
  int64_t turns = (pairs + TK_BLOCKS - 1) / TK_BLOCKS;
  return (int32_t)((pairs + turns - 1) / turns);
}

// Shared memory of tk_..._one: the row, two times the sums of a pair, two sums of the norm.
static inline int64_t tk_one_shared(int32_t format, int64_t cols) {
  return tk_prepared_bytes(format, tk_parts(format, 0), cols) + tk_spans(cols) * (2 * 32 + 2) * 4;
}

// Threads of a block whose warps share the spans.
static inline int32_t tk_span_threads(int64_t cols, int32_t most) {
  int32_t threads = (int32_t)(32 * tk_spans(cols));
  return threads < most ? threads : most;
}

static inline int64_t tk_many_shared(int32_t format, int32_t parts, int32_t rows) {
  return 2 * rows * tk_stage_steps(format) * tk_step_bytes(format, parts);
}

// Names of a product's kernels.
struct tk_product_names {
  const char *one, *prepare, *few, *many, *many_tall, *round, *library, *finish;
};

// A product of `rows` with a matrix of `outputs` rows, two of which (gated), or one, give an element
// of the result.
struct tk_product_plan {
  tk_product_names names;
  int32_t rows, format;
  int64_t cols, outputs;
  int32_t gated, may_round;
  // What the library does: `direct`: it writes the result itself, to operand `out`, having added
  // operand `add` unless that is -1.
  int32_t direct, add, out;
  int64_t add_stride, out_stride;
};

static inline tk_launch tk_tile_launch(const tk_product_plan &p, const tk_work &work,
                                       tk_tile_choice tile, tk_launch launch) {
  launch.function = tile.rows == TK_MANY_ROWS ? p.names.many : p.names.many_tall;
  launch.threads = 64 * tile.pairs;
  launch.columns = (int32_t)((work.pairs + tile.pairs - 1) / tile.pairs);
  launch.rows_per_block = tile.rows;
  launch.shared_bytes = tk_many_shared(work.format, work.parts, tile.rows);
  return launch;
}

// Elements of a row of the result.
static inline int64_t tk_results(const tk_product_plan &p) {
  return p.gated ? p.outputs / 2 : p.outputs;
}

// What all launches of a product have.
static inline tk_launch tk_product_launch(const tk_product_plan &p) {
  tk_launch launch = {};
  launch.threads = tk_span_threads(p.cols, 256);
  launch.rows = p.rows;
  return launch;
}

// One tile for a short prompt, and one for a whole wave, from the row on at which it is the faster
// one. Often they are the same. They serve where there is no library, too.
static inline int tk_plan_tiles(const tk_product_plan &p, tk_work work, const tk_launch &launch,
                                tk_launch *launches) {
  const int64_t least = TK_MOST_FEW_ROWS + 1;
  work.rows = 128;
  tk_tile_choice brief = tk_choose_tile(tk_h200(), work);
  work.rows = TENON_WAVE_TOKENS;
  tk_tile_choice large = tk_choose_tile(tk_h200(), work);
  work.rows = least;
  while (work.rows < TENON_WAVE_TOKENS &&
         tk_tile_seconds(tk_h200(), work, large.pairs, large.rows) >
             tk_tile_seconds(tk_h200(), work, brief.pairs, brief.rows))
    work.rows += TK_MANY_ROWS;
  int count = 0;
  if (work.rows > least) {
    launches[count] = tk_tile_launch(p, work, brief, launch);
    launches[count].least_rows = (int32_t)least;
    launches[count++].most_rows = (int32_t)(work.rows - 1);
  }
  launches[count] = tk_tile_launch(p, work, large, launch);
  launches[count++].least_rows = (int32_t)work.rows;
  return count;
}

// Rounded rows, the product, and what becomes of it.
static inline int tk_plan_library(const tk_product_plan &p, int32_t library_rows,
                                  tk_launch *launches) {
  tk_launch launch = tk_product_launch(p);
  launch.library_rows = library_rows;
  launch.for_library = 1;
  launch.workspace_bytes = 3 * 256;
  const int64_t depth = tk_padded_cols(p.format, p.cols);
  launch.workspace_row_bytes = depth * 2 + (p.direct ? 0 : p.outputs * 4) + 4;

  tk_launch round = launch;
  round.function = p.names.round;
  round.columns = 1;
  round.rows_per_block = 1;
  round.shared_bytes = tk_spans(p.cols) * 3 * 4;
  launches[0] = round;

  tk_launch library = launch;
  library.function = p.names.library;
  library.threads = 0;
  library.product.dtype = p.format == TK_BF16_ROWS ? TENON_BF16 : TENON_F16;
  library.product.weight = 1;
  library.product.add = p.direct ? p.add : -1;
  library.product.out = p.direct ? p.out : -1;
  library.product.cols = p.outputs;
  library.product.depth = depth;
  library.product.add_stride = p.add_stride;
  library.product.out_stride = p.direct ? p.out_stride : p.outputs;
  launches[1] = library;
  if (p.direct)
    return 2;

  tk_launch finish = launch;
  finish.function = p.names.finish;
  finish.threads = 256;
  finish.columns = (int32_t)((tk_results(p) + 1023) / 1024);
  finish.rows_per_block = 1;
  launches[2] = finish;
  return 3;
}

static inline int tk_plan_product(const tk_product_plan &p, tk_launch *launches) {
  const int64_t results = tk_results(p);
  const int64_t pairs = p.gated ? (results + 15) / 16 : (results + 31) / 32;
  const tk_work work = {p.format, tk_parts(p.format, p.may_round), 0, pairs, p.cols};
  int count = 0;
  tk_launch launch = tk_product_launch(p);
  // Of scored rows there are never many. What a finished row costs: its results are read and written.
  if (p.may_round && tk_is_rows(p.format) && p.rows == TK_ROWS_TOKENS)
    launch.library_rows =
        tk_library_rows(tk_h200(), work, p.direct ? 0 : 4 * (p.outputs + results));
  if (launch.library_rows)
    count += tk_plan_library(p, launch.library_rows, launches);
  launch.workspace_row_bytes = tk_prepared_bytes(p.format, tk_parts(p.format, 0), p.cols);
  launch.workspace_bytes = TK_FEW_ROWS * launch.workspace_row_bytes; // the last panels

  tk_launch one = launch;
  one.function = p.names.one;
  one.threads = tk_span_threads(p.cols, pairs > TK_FEW_BLOCKS ? 256 : 512);
  one.columns = tk_pair_blocks(pairs);
  one.shared_bytes = tk_one_shared(p.format, p.cols);
  one.most_rows = 1;
  one.early = 1;
  int alone = one.shared_bytes <= TK_MOST_SHARED;
  if (alone)
    launches[count++] = one;

  tk_launch prepare = launch;
  prepare.function = p.names.prepare;
  prepare.columns = 1;
  prepare.rows_per_block = 1;
  prepare.shared_bytes = tk_spans(p.cols) * 2 * 4;
  prepare.least_rows = alone ? 2 : 0;
  launches[count++] = prepare;

  tk_launch few = launch;
  few.function = p.names.few;
  few.columns = tk_pair_blocks(pairs);
  few.rows_per_block = TK_FEW_ROWS;
  few.shared_bytes = tk_spans(p.cols) * (p.format == TK_F32 ? TK_PANEL_ROWS : TK_FEW_ROWS) * 32 * 4;
  few.least_rows = prepare.least_rows;
  few.most_rows = p.format == TK_F32 ? 0 : TK_MOST_FEW_ROWS;
  launches[count++] = few;

  if (p.format == TK_F32)
    return count;
  return count + tk_plan_tiles(p, work, launch, launches + count);
}

#define TK_PRODUCT_NAMES(name)                                                                     \
  {name "_one",       name "_prepare", name "_few",     name "_many",                              \
   name "_many_tall", name "_round",   name "_library", name "_finish"}

static inline tk_product_plan tk_linear_product(const tk_linear_shape &s) {
  // io: x, weight, [norm_weight], [norm_bias], [bias], [residual], out
  const int32_t behind = 2 + (s.norm != TK_NORM_NONE) + s.norm_bias + s.bias;
  const int32_t direct = s.format == TK_BF16_ROWS && !s.bias && s.activation == TK_ACT_NONE;
  return {TK_PRODUCT_NAMES("tk_linear"),
          s.rows,
          s.format,
          s.cols,
          s.out_cols,
          /*gated=*/0,
          s.may_round,
          direct,
          s.residual ? behind : -1,
          behind + s.residual,
          s.residual_stride,
          s.out_stride};
}
static inline int tk_plan_linear(const tk_linear_shape &s, int, tk_launch *launches) {
  return tk_plan_product(tk_linear_product(s), launches);
}

static inline tk_product_plan tk_gated_mlp_product(const tk_gated_mlp_shape &s) {
  return {TK_PRODUCT_NAMES("tk_gated_mlp"),
          s.rows,
          s.format,
          s.cols,
          2 * (int64_t)s.out_cols,
          /*gated=*/1,
          s.may_round,
          /*direct=*/0,
          /*add=*/-1,
          /*out=*/-1,
          0,
          0};
}
static inline int tk_plan_gated_mlp(const tk_gated_mlp_shape &s, int, tk_launch *launches) {
  return tk_plan_product(tk_gated_mlp_product(s), launches);
}

// More tokens than this are sorted by their experts.
#define TK_MOST_FEW_TOKENS 16

static inline int tk_plan_expert_linear(const tk_expert_linear_shape &s, int, tk_launch *launches) {
  int64_t pairs = s.gated ? (s.out_cols + 15) / 16 : (s.out_cols + 31) / 32;
  int64_t row = tk_prepared_bytes(s.format, tk_parts(s.format, 0), s.cols);
  tk_launch launch = {};
  launch.rows = s.rows;
  launch.threads = tk_span_threads(s.cols, 256);
  launch.rows_per_block = 1;
  // Lists, prepared rows, and what each expert leaves of its last panel.
  launch.workspace_bytes = tk_round_up(4 * tk_expert_list_length(s.experts, 0), 256) + 256 +
                           s.experts * (TK_PANEL_ROWS - 1) * row;
  launch.workspace_row_bytes = s.slots * (2 * 4 + row);

  tk_launch one = launch;
  one.function = "tk_expert_linear_one";
  one.columns = s.slots * tk_pair_blocks(pairs);
  one.shared_bytes = tk_one_shared(s.format, s.cols);
  one.most_rows = s.format == TK_F32 ? 0 : TK_MOST_FEW_TOKENS;
  launches[0] = one;
  if (s.format == TK_F32)
    return 1;

  tk_launch sort = launch;
  sort.function = "tk_expert_linear_sort";
  sort.threads = 1024;
  sort.columns = 1;
  sort.rows_per_block = 0;
  sort.shared_bytes = s.experts * 4;
  sort.least_rows = TK_MOST_FEW_TOKENS + 1;
  launches[1] = sort;

  tk_launch prepare = launch;
  prepare.function = "tk_expert_linear_prepare";
  prepare.columns = s.slots;
  prepare.shared_bytes = tk_spans(s.cols) * 2 * 4;
  prepare.least_rows = sort.least_rows;
  launches[2] = prepare;

  tk_launch many = launch;
  many.function = "tk_expert_linear_many";
  many.threads = 64 * TK_MANY_PAIRS;
  many.columns = s.experts * (int32_t)((pairs + TK_MANY_PAIRS - 1) / TK_MANY_PAIRS);
  many.rows_per_block = TK_MANY_ROWS;
  many.shared_bytes = tk_many_shared(s.format, tk_parts(s.format, 0), TK_MANY_ROWS);
  many.least_rows = sort.least_rows;
  launches[3] = many;
  return 4;
}

#endif // TENON_CODEGEN_CUDA_KERNELS_PLAN_PRODUCTS_H
