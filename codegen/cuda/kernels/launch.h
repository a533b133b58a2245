// What a CUDA kernel gets, and how a plan says which kernels run on which grid. Plain C++, read by
// device code, plans (plan_*.h), the code generator and the runtime.
//
//   shape ──tk_plan_linear──▶ tk_launch[] ──runtime──▶ grid of blocks ──▶ tk_linear_few(shape,
//   args)
#ifndef TENON_CODEGEN_CUDA_KERNELS_LAUNCH_H
#define TENON_CODEGEN_CUDA_KERNELS_LAUNCH_H

#include "runtime/kernel_abi.h"

// The one parameter of every kernel.
typedef tenon_arguments tk_args;

// One kernel of a stage. The launches of a stage run one after another with the same shape and
// arguments; the end of one is the only barrier of a whole grid.
struct tk_launch {
  const char *function;   // "tk_linear_few"
  int32_t threads;        // of a block: a multiple of 32, at most 1024
  int32_t columns;        // blocks in x
  int32_t rows_per_block; // blocks in y = rows / rows_per_block, rounded up; 0: one
  int32_t rows;           // tk_rows: which rows are counted
  int64_t shared_bytes;   // dynamic shared memory of a block
  // Made only for so many rows; 0: no limit.
  int32_t least_rows, most_rows;
  int64_t workspace_bytes, workspace_row_bytes;
};

#define TK_MAX_LAUNCHES 4

#endif // TENON_CODEGEN_CUDA_KERNELS_LAUNCH_H
