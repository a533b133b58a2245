// What a CUDA kernel gets, and how a plan says which kernels run on which grid. Plain C++, read by
// device code, plans (plan_*.h), the code generator and the runtime.
//
//   shape ──tk_plan_linear──▶ tk_launch[] ──runtime──▶ blocks ──▶ tk_linear_few(shape, args)
#ifndef TENON_CODEGEN_CUDA_KERNELS_LAUNCH_H
#define TENON_CODEGEN_CUDA_KERNELS_LAUNCH_H

#include "runtime/kernel_abi.h"

// The one parameter of every kernel.
typedef tenon_arguments tk_args;

// One kernel of a stage. The launches of a stage run one after another with the same shape and
// arguments; the end of one is the only barrier of a whole grid.
struct tk_launch : tenon_grid {
  const char *function; // "tk_linear_few"; of a product: what to call it
  tenon_product product;
  int32_t early; // 1: the function itself calls awaitLaunch() (device.h)
};

#define TK_MAX_LAUNCHES 8

#endif // TENON_CODEGEN_CUDA_KERNELS_LAUNCH_H
