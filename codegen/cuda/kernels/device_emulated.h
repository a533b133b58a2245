// device.h on the SIMT emulator (test/emulator): every thread of a block is a fibre of the host's,
// which leaves the processor only where it waits for others. What concerns other threads is a
// function of the emulator's.
#ifndef TENON_CODEGEN_CUDA_KERNELS_DEVICE_EMULATED_H
#define TENON_CODEGEN_CUDA_KERNELS_DEVICE_EMULATED_H

#include <math.h>
#include <string.h>

#define TK_DEVICE static inline
#define TK_METHOD inline
#define TK_UNROLL

#define TK_ENTRY(name, function, Shape, threads, words, begin)                                     \
  extern "C" {                                                                                     \
  extern const int32_t name##_threads;                                                             \
  __attribute__((visibility("default"))) const int32_t name##_threads = threads;                   \
  __attribute__((visibility("default"))) void name(const tk_args *args) {                          \
    constexpr Shape shape = __builtin_bit_cast(Shape, words);                                      \
    begin;                                                                                         \
    function(shape, *args);                                                                        \
  }                                                                                                \
  }
#define TK_SPECIALISE(name, function, Shape, threads, words)                                       \
  TK_ENTRY(name, function, Shape, threads, words, tk::awaitLaunch())
#define TK_SPECIALISE_EARLY(name, function, Shape, threads, words)                                 \
  TK_ENTRY(name, function, Shape, threads, words, )

extern "C" {
// The thread that runs.
struct tk_emulated_thread {
  int32_t index, count; // in its block
  int64_t block_x, block_y, grid_x, grid_y;
  char *shared;
};
extern tk_emulated_thread tk_emulated_current;

void tk_emulated_await();
void tk_emulated_prefetch(const void *p);
void tk_emulated_sync();
void tk_emulated_sync_warp();
uint32_t tk_emulated_shuffle(uint32_t v, int32_t lane);
uint32_t tk_emulated_ballot(int32_t b);
float tk_emulated_add_float(float *p, float v);
int32_t tk_emulated_add_int(int32_t *p, int32_t v);
uint64_t tk_emulated_add_long(uint64_t *p, uint64_t v);
int32_t tk_emulated_max_int(int32_t *p, int32_t v);
void tk_emulated_copy(void *shared, const void *global);
void tk_emulated_commit();
void tk_emulated_wait(int32_t pending);
void tk_emulated_misaligned(const void *p, int32_t bytes);
void tk_emulated_mma_bf16(float *c, const uint32_t *a, const uint32_t *b);
void tk_emulated_mma_half(float *c, const uint32_t *a, const uint32_t *b);
void tk_emulated_mma_int8(int32_t *c, const uint32_t *a, const uint32_t *b);
void tk_emulated_mma_uint8(int32_t *c, const uint32_t *a, const uint32_t *b);
}

namespace tk {
TK_DEVICE int threadIndex() { return tk_emulated_current.index; }
TK_DEVICE int threadCount() { return tk_emulated_current.count; }
TK_DEVICE int64_t blockX() { return tk_emulated_current.block_x; }
TK_DEVICE int64_t blockY() { return tk_emulated_current.block_y; }
TK_DEVICE int64_t gridX() { return tk_emulated_current.grid_x; }
TK_DEVICE int64_t gridY() { return tk_emulated_current.grid_y; }
TK_DEVICE char *shared() { return tk_emulated_current.shared; }

TK_DEVICE void awaitLaunch() { tk_emulated_await(); }
TK_DEVICE void sync() { tk_emulated_sync(); }
TK_DEVICE void syncWarp() { tk_emulated_sync_warp(); }

template <typename To, typename From> TK_DEVICE To bitsAs(From from) {
  static_assert(sizeof(To) == 4 && sizeof(From) == 4, "a register has 32 bits");
  To to;
  memcpy(&to, &from, 4);
  return to;
}
template <typename T> TK_DEVICE T shuffle(T v, int lane) {
  return bitsAs<T>(tk_emulated_shuffle(bitsAs<uint32_t>(v), lane));
}
TK_DEVICE uint64_t shuffle(uint64_t v, int lane) {
  return shuffle((uint32_t)v, lane) | (uint64_t)shuffle((uint32_t)(v >> 32), lane) << 32;
}
template <typename T> TK_DEVICE T shuffleXor(T v, int mask) {
  return shuffle(v, (threadIndex() ^ mask) % 32);
}
TK_DEVICE uint32_t ballotLanes(bool b) { return tk_emulated_ballot(b); }
TK_DEVICE bool anyLane(bool b) { return ballotLanes(b) != 0; }

TK_DEVICE float atomicAdd(float *p, float v) { return tk_emulated_add_float(p, v); }
TK_DEVICE int32_t atomicAdd(int32_t *p, int32_t v) { return tk_emulated_add_int(p, v); }
TK_DEVICE uint64_t atomicAdd(uint64_t *p, uint64_t v) { return tk_emulated_add_long(p, v); }
TK_DEVICE int32_t atomicMax(int32_t *p, int32_t v) { return tk_emulated_max_int(p, v); }

TK_DEVICE float bitsToFloat(uint32_t bits) { return bitsAs<float>(bits); }
TK_DEVICE uint32_t floatToBits(float v) { return bitsAs<uint32_t>(v); }
TK_DEVICE uint16_t floatToBf16(float v) {
  uint32_t bits = floatToBits(v);
  return v != v ? 0x7fff : uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
TK_DEVICE float halfToFloat(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) // infinite, NaN
    return bitsToFloat(sign | 0x7f800000 | magnitude << 13);
  // The exponent's bias is 112 less; a multiplication also normalises what is subnormal.
  return bitsToFloat(sign | floatToBits(bitsToFloat(magnitude << 13) * 0x1p112f));
}
TK_DEVICE uint16_t floatToHalf(float v) {
  uint32_t bits = floatToBits(v), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (v != v)
    return 0x7fff;
  if (magnitude >= 0x477ff000) // 65520 rounds to infinity
    return uint16_t(sign | 0x7c00);
  if (magnitude < 0x38800000) // subnormal: the sum rounds to its last bits
    return uint16_t(sign | (floatToBits(bitsToFloat(magnitude) + 0.5f) - 0x3f000000));
  return uint16_t(sign | (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

TK_DEVICE Words2 bytesToBf16(uint32_t bytes) {
  Words2 pairs = {};
  for (int i = 0; i < 4; ++i)
    pairs.w[i / 2] |= (uint32_t)floatToBf16((float)(int8_t)(bytes >> 8 * i)) << 16 * (i % 2);
  return pairs;
}
TK_DEVICE uint32_t multiplyBf16(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (int i = 0; i < 32; i += 16)
    product |= (uint32_t)floatToBf16(bitsToFloat(a >> i << 16) * bitsToFloat(b >> i << 16)) << i;
  return product;
}

TK_DEVICE int32_t dot4(uint32_t a, uint32_t b, int32_t c) {
  for (int i = 0; i < 32; i += 8)
    c += int8_t(a >> i) * int8_t(b >> i);
  return c;
}
TK_DEVICE int32_t dot4Unsigned(uint32_t a, uint32_t b, int32_t c) {
  for (int i = 0; i < 32; i += 8)
    c += uint8_t(a >> i) * int8_t(b >> i);
  return c;
}

template <typename Words> TK_DEVICE Words loadAligned(const void *p) {
  if ((uintptr_t)p % sizeof(Words))
    tk_emulated_misaligned(p, sizeof(Words));
  Words v;
  memcpy(&v, p, sizeof v);
  return v;
}
TK_DEVICE uint32_t loadWord(const void *p) { return loadAligned<uint32_t>(p); }
TK_DEVICE Words2 loadWords2(const void *p) { return loadAligned<Words2>(p); }
TK_DEVICE Words4 loadWords4(const void *p) { return loadAligned<Words4>(p); }
TK_DEVICE Words4 streamWords4(const void *p) { return loadAligned<Words4>(p); }
TK_DEVICE void storeWords4(void *p, Words4 v) {
  if ((uintptr_t)p % sizeof v)
    tk_emulated_misaligned(p, sizeof v);
  memcpy(p, &v, sizeof v);
}

template <typename T> TK_DEVICE T *inGlobal(T *p) { return p; }
TK_DEVICE void prefetchLine(const void *p) { tk_emulated_prefetch(p); }

TK_DEVICE void copyAsync16(void *shared, const void *global) { tk_emulated_copy(shared, global); }
TK_DEVICE void commitCopies() { tk_emulated_commit(); }
TK_DEVICE void waitCopies(int pending) { tk_emulated_wait(pending); }

TK_DEVICE void mmaBf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  tk_emulated_mma_bf16(c, a, b);
}
TK_DEVICE void mmaHalf(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  tk_emulated_mma_half(c, a, b);
}
TK_DEVICE void mmaInt8(int32_t (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  tk_emulated_mma_int8(c, a, b);
}
TK_DEVICE void mmaUint8(int32_t (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  tk_emulated_mma_uint8(c, a, b);
}
} // namespace tk

#endif // TENON_CODEGEN_CUDA_KERNELS_DEVICE_EMULATED_H
