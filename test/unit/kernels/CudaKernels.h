// The CUDA kernels as a level of KernelTest: each tk_ function asks its plan and runs the launches
// on the emulator (test/emulator).
#ifndef TENON_TEST_KERNELS_CUDAKERNELS_H
#define TENON_TEST_KERNELS_CUDAKERNELS_H

#include "codegen/cuda/kernels/launch.h"

struct Level;

// A kernel with any shape of its type; null if there is none of that name.
using CudaKernel = void(const void *shape, const tk_args &args);
CudaKernel *findCudaKernel(const char *name);

Level emulatedCudaLevel();
// tk_linear and tk_gated_mlp with any number of rows as the library's.
tenon_kernel *emulatedLinearByLibrary();
tenon_kernel *emulatedGatedMlpByLibrary();
// tk_sample, which no other level has.
tenon_kernel *emulatedSample();

#endif // TENON_TEST_KERNELS_CUDAKERNELS_H
