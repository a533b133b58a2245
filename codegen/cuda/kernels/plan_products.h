// Which grids the products run on: one row alone; few rows; many rows, on which tensor cores are
// worth preparing them for (product_shape.h, product.h).
#ifndef TENON_CODEGEN_CUDA_KERNELS_PLAN_PRODUCTS_H
#define TENON_CODEGEN_CUDA_KERNELS_PLAN_PRODUCTS_H

#include "launch.h"
#include "product_shape.h"

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

static inline int64_t tk_many_shared(int32_t format, int32_t rounded) {
  return 2 * tk_many_rows(format, rounded) * tk_stage_steps(format) *
         tk_step_bytes(format, tk_parts(format, rounded));
}

// names: of one, prepare, few, many.
static inline int tk_plan_product(const char *const *names, int32_t rows, int32_t format,
                                  int64_t cols, int32_t may_round, int64_t pairs,
                                  tk_launch *launches) {
  int count = 0;
  tk_launch launch = {};
  launch.threads = tk_span_threads(cols, 256);
  launch.rows = rows;
  launch.workspace_row_bytes = tk_prepared_bytes(format, tk_parts(format, 0), cols);
  launch.workspace_bytes = TK_FEW_ROWS * launch.workspace_row_bytes; // the last panels

  tk_launch one = launch;
  one.function = names[0];
  one.threads = tk_span_threads(cols, pairs > TK_FEW_BLOCKS ? 256 : 512);
  one.columns = tk_pair_blocks(pairs);
  one.shared_bytes = tk_one_shared(format, cols);
  one.most_rows = 1;
  int alone = one.shared_bytes <= TK_MOST_SHARED;
  if (alone)
    launches[count++] = one;

  tk_launch prepare = launch;
  prepare.function = names[1];
  prepare.columns = 1;
  prepare.rows_per_block = 1;
  prepare.shared_bytes = tk_spans(cols) * 2 * 4;
  prepare.least_rows = alone ? 2 : 0;
  launches[count++] = prepare;

  tk_launch few = launch;
  few.function = names[2];
  few.columns = tk_pair_blocks(pairs);
  few.rows_per_block = TK_FEW_ROWS;
  few.shared_bytes = tk_spans(cols) * (format == TK_F32 ? TK_PANEL_ROWS : TK_FEW_ROWS) * 32 * 4;
  few.least_rows = prepare.least_rows;
  few.most_rows = format == TK_F32 ? 0 : TK_MOST_FEW_ROWS;
  launches[count++] = few;

  if (format == TK_F32)
    return count;
  tk_launch many = launch;
  many.function = names[3];
  many.threads = TK_MANY_THREADS;
  many.columns = (int32_t)((pairs + TK_MANY_PAIRS - 1) / TK_MANY_PAIRS);
  many.rows_per_block = tk_many_rows(format, may_round);
  many.shared_bytes = tk_many_shared(format, may_round);
  many.least_rows = TK_MOST_FEW_ROWS + 1;
  launches[count++] = many;
  return count;
}

static inline int tk_plan_linear(const tk_linear_shape &s, int, tk_launch *launches) {
  static const char *const names[] = {"tk_linear_one", "tk_linear_prepare", "tk_linear_few",
                                      "tk_linear_many"};
  return tk_plan_product(names, s.rows, s.format, s.cols, s.may_round, (s.out_cols + 31) / 32,
                         launches);
}

static inline int tk_plan_gated_mlp(const tk_gated_mlp_shape &s, int, tk_launch *launches) {
  static const char *const names[] = {"tk_gated_mlp_one", "tk_gated_mlp_prepare",
                                      "tk_gated_mlp_few", "tk_gated_mlp_many"};
  return tk_plan_product(names, s.rows, s.format, s.cols, s.may_round, (s.out_cols + 15) / 16,
                         launches);
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
  many.threads = TK_MANY_THREADS;
  many.columns = s.experts * (int32_t)((pairs + TK_MANY_PAIRS - 1) / TK_MANY_PAIRS);
  many.rows_per_block = tk_many_rows(s.format, 0);
  many.shared_bytes = tk_many_shared(s.format, 0);
  many.least_rows = sort.least_rows;
  launches[3] = many;
  return 4;
}

#endif // TENON_CODEGEN_CUDA_KERNELS_PLAN_PRODUCTS_H
