// NVRTC brings no headers of its own; this is the <stdint.h> that kernels see there.
#ifndef TENON_CODEGEN_CUDA_KERNELS_NVRTC_STDINT_H
#define TENON_CODEGEN_CUDA_KERNELS_NVRTC_STDINT_H

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long uintptr_t;

#endif // TENON_CODEGEN_CUDA_KERNELS_NVRTC_STDINT_H
