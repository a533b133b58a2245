// What a level's benchmark cases tell the driver.
#ifndef TENON_BENCH_KERNELS_CASES_H
#define TENON_BENCH_KERNELS_CASES_H

#include "codegen/kernels/shapes.h"
#include "runtime/kernel_abi.h"
#include <stdint.h>

typedef struct bench_case {
  const char *name;
  void (*run)(void *const *io, const tenon_env *env); // the kernel, specialised for its shape
  int32_t tokens;
  int32_t cached;       // earlier positions of the one sequence
  int64_t weight_bytes; // io[1]; what one run streams
  double operations;    // multiplications and additions of one run
  int64_t scratch_bytes;
  int64_t advance =
      0; // bytes that io[1] moves on by between runs, so that it comes from memory; 0: stay
} bench_case;

typedef struct bench_level {
  const bench_case *cases;
  int32_t count;
} bench_level;

extern "C" bench_level bench_generic(), bench_avx2(), bench_avx512(), bench_avx512bf16(),
    bench_amx();

#endif // TENON_BENCH_KERNELS_CASES_H
