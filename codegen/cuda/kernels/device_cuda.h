// device.h on a CUDA device: compiler builtins, and PTX where those would need a header.
#ifndef TENON_CODEGEN_CUDA_KERNELS_DEVICE_CUDA_H
#define TENON_CODEGEN_CUDA_KERNELS_DEVICE_CUDA_H

#define TK_DEVICE static __device__ __forceinline__
#define TK_METHOD __device__ __forceinline__
#define TK_UNROLL _Pragma("unroll")

// The shape and the number of threads are constants of the compiler's, so that they fold into the
// inlined function. The next launch may begin as soon as all blocks of this one have (programmatic
// dependent launch).
#define TK_ENTRY(name, function, Shape, threads, words, begin)                                     \
  extern "C" __global__ void __launch_bounds__(threads)                                            \
      name(const __grid_constant__ tk_args args) {                                                 \
    constexpr Shape shape = __builtin_bit_cast(Shape, words);                                      \
    __builtin_assume(blockDim.x == (threads));                                                     \
    tk::letNextBegin();                                                                            \
    begin;                                                                                         \
    function(shape, args);                                                                         \
  }
#define TK_SPECIALISE(name, function, Shape, threads, words)                                       \
  TK_ENTRY(name, function, Shape, threads, words, tk::awaitLaunch())
#define TK_SPECIALISE_EARLY(name, function, Shape, threads, words)                                 \
  TK_ENTRY(name, function, Shape, threads, words, )

namespace tk {
TK_DEVICE int threadIndex() { return int(threadIdx.x); }
TK_DEVICE int threadCount() { return int(blockDim.x); }
TK_DEVICE int64_t blockX() { return blockIdx.x; }
TK_DEVICE int64_t blockY() { return blockIdx.y; }
TK_DEVICE int64_t gridX() { return gridDim.x; }
TK_DEVICE int64_t gridY() { return gridDim.y; }

// Before sm_90 a launch begins when the one before is done.
TK_DEVICE void awaitLaunch() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
TK_DEVICE void letNextBegin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

TK_DEVICE void sync() { __syncthreads(); }
TK_DEVICE void syncWarp() { __syncwarp(); }

template <typename T> TK_DEVICE T shuffle(T v, int lane) {
  return __shfl_sync(0xffffffffu, v, lane);
}
template <typename T> TK_DEVICE T shuffleXor(T v, int mask) {
  return __shfl_xor_sync(0xffffffffu, v, mask);
}
TK_DEVICE bool anyLane(bool b) { return __any_sync(0xffffffffu, b); }
TK_DEVICE uint32_t ballotLanes(bool b) { return __ballot_sync(0xffffffffu, b); }

TK_DEVICE char *shared() {
  extern __shared__ __align__(128) char tk_shared_memory[];
  return tk_shared_memory;
}

// The global ones themselves: functions of the same signature would make calls ambiguous.
using ::atomicAdd;
using ::atomicMax;
TK_DEVICE uint64_t atomicAdd(uint64_t *p, uint64_t v) {
  return ::atomicAdd((unsigned long long *)p, (unsigned long long)v);
}

TK_DEVICE float bitsToFloat(uint32_t bits) { return __uint_as_float(bits); }
TK_DEVICE uint32_t floatToBits(float v) { return __float_as_uint(v); }
TK_DEVICE uint16_t floatToBf16(float v) {
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(v));
  return bits;
}
TK_DEVICE float halfToFloat(uint16_t bits) {
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
  return v;
}
TK_DEVICE uint16_t floatToHalf(float v) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(v));
  return bits;
}

// Behind the upper byte of 128 the lower 7 bits of a byte add to it, and its sign doubles it:
// (128 + lower bits) - (sign ? 256 : 128). On sm_80 bf16 has no operation but fma.
TK_DEVICE uint32_t fmaBf16(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
TK_DEVICE Words2 bytesToBf16(uint32_t bytes) {
  uint32_t lower = bytes & 0x7f7f7f7fu, sign = bytes & 0x80808080u, one = 0x3f803f80u;
  return {{fmaBf16(__byte_perm(lower, 0x43434343u, 0x4140), one,
                   __byte_perm(sign, 0xc3c3c3c3u, 0x4140)),
           fmaBf16(__byte_perm(lower, 0x43434343u, 0x4342), one,
                   __byte_perm(sign, 0xc3c3c3c3u, 0x4342))}};
}
TK_DEVICE uint32_t multiplyBf16(uint32_t a, uint32_t b) { return fmaBf16(a, b, 0x80008000u); }

TK_DEVICE int32_t dot4(uint32_t a, uint32_t b, int32_t c) {
  int32_t d;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
TK_DEVICE int32_t dot4Unsigned(uint32_t a, uint32_t b, int32_t c) {
  int32_t d;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

TK_DEVICE uint32_t loadWord(const void *p) { return *(const uint32_t *)p; }
TK_DEVICE Words2 loadWords2(const void *p) {
  uint2 v = *(const uint2 *)p;
  return {{v.x, v.y}};
}
TK_DEVICE Words4 loadWords4(const void *p) {
  uint4 v = *(const uint4 *)p;
  return {{v.x, v.y, v.z, v.w}};
}
TK_DEVICE Words4 streamWords4(const void *p) {
  Words4 v;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
      : "l"(__cvta_generic_to_global(p)));
  return v;
}
TK_DEVICE void storeWords4(void *p, Words4 v) {
  *(uint4 *)p = make_uint4(v.w[0], v.w[1], v.w[2], v.w[3]);
}

template <typename T> TK_DEVICE T *inGlobal(T *p) {
  __builtin_assume(__isGlobal(p));
  return p;
}
TK_DEVICE void prefetchLine(const void *p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(p)));
}

TK_DEVICE void copyAsync16(void *shared, const void *global) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(uint32_t(__cvta_generic_to_shared(shared))),
      "l"(__cvta_generic_to_global(global))
      : "memory");
}
TK_DEVICE void commitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
TK_DEVICE void waitCopies(int pending) {
#define TK_WAIT(n)                                                                                 \
  case n:                                                                                          \
    asm volatile("cp.async.wait_group " #n ";" ::: "memory");                                      \
    break
  switch (pending) { // folds
    TK_WAIT(7);
    TK_WAIT(6);
    TK_WAIT(5);
    TK_WAIT(4);
    TK_WAIT(3);
    TK_WAIT(2);
    TK_WAIT(1);
  default:
    asm volatile("cp.async.wait_group 0;" ::: "memory");
  }
#undef TK_WAIT
}

#define TK_MMA(constraint, instruction)                                                            \
  asm(instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"               \
      : "+" constraint(c[0]), "+" constraint(c[1]), "+" constraint(c[2]), "+" constraint(c[3])     \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
TK_DEVICE void mmaBf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  TK_MMA("f", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
}
TK_DEVICE void mmaHalf(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  TK_MMA("f", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
}
TK_DEVICE void mmaInt8(int32_t (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  TK_MMA("r", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32");
}
TK_DEVICE void mmaUint8(int32_t (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  TK_MMA("r", "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32");
}
#undef TK_MMA
} // namespace tk

#endif // TENON_CODEGEN_CUDA_KERNELS_DEVICE_CUDA_H
