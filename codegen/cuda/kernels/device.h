// What a kernel may use of the machine. There are two: a CUDA device (device_cuda.h: NVRTC and
// nvcc, sm_80 and later, no CUDA headers) and the SIMT emulator of the tests (device_emulated.h,
// any C++17 compiler).
//
//   TK_DEVICE            before every function of a kernel; TK_METHOD before those of a struct
//   TK_UNROLL            before a loop over registers; its bounds fold once the shape is constant
//   TK_SPECIALISE(name, function, Shape, threads, words)
//                        an entry `name` that calls function(shape, args) with a constant shape,
//                        the bytes of which are the int array `words`
//   TK_SPECIALISE_EARLY  likewise, where the function itself calls awaitLaunch()
//
// A grid has gridX() × gridY() blocks of threadCount() threads; 32 threads are a warp.
//
//   threadIndex() threadCount() lane() warp() warps() blockX() blockY() gridX() gridY()
//   awaitLaunch()        until the launch before this one is done, and what it wrote is there: a
//                        kernel begins while that one still runs, and may only prefetch until then
//   sync()               all threads of the block meet, and see what the others wrote before it
//   syncWarp()           likewise those of the warp
//   shuffle(v, lane)     v of that lane     shuffleXor(v, mask)  v of lane ^ mask; 32 or 64 bits
//   anyLane(b) ballotLanes(b)     of the warp's lanes (any and ballot are global names of CUDA's)
//                        Whole warps take part in all of these, whole blocks in sync().
//   shared()             dynamic shared memory of the block, aligned to 128; undefined at first
//
//   atomicAdd(float *|int32_t *|uint64_t *, v), atomicMax(int32_t *, v)      return what was there
//
//   exponential hyperbolicTangent errorFunction squareRoot logarithm      of floats
//   sine cosine power                                                     of doubles
//   infinity() notANumber()
//   bf16ToFloat(bits) bf16Low(word) bf16High(word) floatToBf16(v)   nearest even; a NaN stays one
//   halfToFloat(bits) halfLow(word) halfHigh(word) floatToHalf(v)
//   pack(low, high)                                                 two 16-bit values in a word
//   bytesToBf16(word)    its signed bytes, in two words      multiplyBf16(a, b)    two products
//
//   dot4(a, b, c)        c + Σ a[i] b[i], i < 4: signed bytes of words     dot4Unsigned: those of a
//                        are unsigned
//
//   loadWord loadWords2 loadWords4(const void *)      4, 8, 16 bytes, aligned to their size
//   streamWords4(const void *)                        what is read once and written by nobody
//   storeWords4(void *, Words4)
//   prefetchLine(const void *)                        asks for 128 bytes of global memory
//   inGlobal(pointer)                                 the pointer, known to be to global memory
//
//   copyAsync16(void *shared, const void *global)     begins to copy 16 bytes
//   commitCopies()                                    closes a group of copies
//   waitCopies(pending)    until only the last `pending` groups (0 .. 7) may be on their way; the
//                          others' bytes are there for this thread, and for others behind a barrier
//
// mma: c += a · b, one product of a warp. Lane 4g + t holds, of A [16, K], B [K, 8], C [16, 8]:
//
//   mmaBf16, mmaHalf: K = 16; floats in c, two k in a register (the lower one in the low half)
//
//              k  2t,2t+1   2t+8,2t+9               col g                     col  2t   2t+1
//        row g    a[0]      a[2]         k 2t,2t+1  b[0]         row g        c[0] c[1]
//        row g+8  a[1]      a[3]         k 2t+8,+9  b[1]         row g+8      c[2] c[3]
//
//   mmaInt8 (s8 · s8), mmaUint8 (u8 · s8): K = 32; int32 in c, four k in a register
//
//              k  4t..4t+3  4t+16..4t+19            col g
//        row g    a[0]      a[2]         k 4t..     b[0]         c as above
//        row g+8  a[1]      a[3]         k 4t+16..  b[1]
//
// Rows, columns and k may be permuted at will as long as A, B and C agree.
#ifndef TENON_CODEGEN_CUDA_KERNELS_DEVICE_H
#define TENON_CODEGEN_CUDA_KERNELS_DEVICE_H

#include "launch.h"
#include <stdint.h>

namespace tk {
struct alignas(8) Words2 {
  uint32_t w[2];
};
struct alignas(16) Words4 {
  uint32_t w[4];
};
} // namespace tk

#ifdef __CUDACC__
#include "device_cuda.h"
#else
#include "device_emulated.h"
#endif

namespace tk {
TK_DEVICE float exponential(float x) { return expf(x); }
TK_DEVICE float hyperbolicTangent(float x) { return tanhf(x); }
TK_DEVICE float errorFunction(float x) { return erff(x); }
TK_DEVICE float squareRoot(float x) { return sqrtf(x); }
TK_DEVICE float logarithm(float x) { return logf(x); }
TK_DEVICE double sine(double x) { return sin(x); }
TK_DEVICE double cosine(double x) { return cos(x); }
TK_DEVICE double power(double x, double y) { return pow(x, y); }

TK_DEVICE float infinity() { return bitsToFloat(0x7f800000u); }
TK_DEVICE float notANumber() { return bitsToFloat(0x7fc00000u); }

TK_DEVICE int lane() { return threadIndex() % 32; }
TK_DEVICE int warp() { return threadIndex() / 32; }
TK_DEVICE int warps() { return threadCount() / 32; }

TK_DEVICE float bf16Low(uint32_t word) { return bitsToFloat(word << 16); }
TK_DEVICE float bf16High(uint32_t word) { return bitsToFloat(word & 0xffff0000u); }
TK_DEVICE float bf16ToFloat(uint16_t bits) { return bf16Low(bits); }
TK_DEVICE float halfLow(uint32_t word) { return halfToFloat(uint16_t(word)); }
TK_DEVICE float halfHigh(uint32_t word) { return halfToFloat(uint16_t(word >> 16)); }
TK_DEVICE uint32_t pack(uint16_t low, uint16_t high) { return low | uint32_t(high) << 16; }
} // namespace tk

#endif // TENON_CODEGEN_CUDA_KERNELS_DEVICE_H
