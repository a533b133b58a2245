// What the kernels know about an instruction set: vectors, conversions, the integer dot step.
//
// Kernels are written over vectors of 16 floats (`Vec`), which the compiler cuts into the registers
// there are. Only the integer products name instructions; they work on `Lanes` outputs at a time,
// one register of 32-bit sums:  16 (AVX-512 VNNI), 8 (AVX2), 4 (x86-64-v2).
//
// Everything is inlined into the entry points, so that a constant shape folds every bound. Products
// and sums are written so that they contract within one expression only: the same source gives the
// same bits wherever it is inlined.
#ifndef TENON_KERNELS_ISA_H
#define TENON_KERNELS_ISA_H

#include "codegen/kernels/shapes.h"
#include "runtime/kernel_abi.h"
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
#define TK_LANES 16
#elif defined(__AVX2__)
#define TK_LANES 8
#else
#define TK_LANES 4
#endif

#define TK_INLINE static inline __attribute__((always_inline))

// The entry point of a kernel. Tests build several levels into one program and tell them by a
// suffix; benchmarks define their own TK_KERNEL.
#ifndef TK_KERNEL
#ifndef TK_SUFFIX
#define TK_SUFFIX
#endif
#define TK_JOIN_(a, b) a##b
#define TK_JOIN(a, b) TK_JOIN_(a, b)
#define TK_KERNEL(name)                                                                            \
  extern "C" void TK_JOIN(name, TK_SUFFIX)(const void *shape, void *const *io, const tenon_env *env)
#endif

namespace {

constexpr int Lanes = TK_LANES;
constexpr int Parts = 16 / Lanes; // registers that make up 16 outputs

typedef float Vec __attribute__((ext_vector_type(16)));
typedef int32_t IVec __attribute__((ext_vector_type(16)));
typedef uint16_t HalfVec __attribute__((ext_vector_type(16)));
typedef int8_t ByteVec __attribute__((ext_vector_type(16)));
typedef float FLanes __attribute__((ext_vector_type(TK_LANES)));
typedef int32_t ILanes __attribute__((ext_vector_type(TK_LANES)));

// ── loads and stores, at any address ───────────────────────────────────────────────────────────

template <class V> TK_INLINE V loadAs(const void *p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class V> TK_INLINE void storeAs(void *p, V v) { __builtin_memcpy(p, &v, sizeof v); }

TK_INLINE Vec load(const float *p) { return loadAs<Vec>(p); }
TK_INLINE void store(float *p, Vec v) { storeAs(p, v); }

// The first n <= 16 elements; the others read as 0 and are not touched in memory.
TK_INLINE Vec load(const float *p, int64_t n) {
  if (n >= 16)
    return load(p);
  Vec v = 0;
  for (int64_t i = 0; i < n; ++i)
    v[i] = p[i];
  return v;
}
TK_INLINE void store(float *p, Vec v, int64_t n) {
  if (n >= 16)
    return store(p, v);
  for (int64_t i = 0; i < n; ++i)
    p[i] = v[i];
}

TK_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
TK_INLINE int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// ── vectors ────────────────────────────────────────────────────────────────────────────────────

TK_INLINE Vec greater(Vec a, Vec b) { return a > b ? a : b; }

// Of each chunk of `Width` lanes of a and of b the first half, those of a before those of b; and
// the second halves.
template <int Width, class V> TK_INLINE V lowHalves(V a, V b) {
  if constexpr (Width == 16)
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  else if constexpr (Width == 8)
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
  else if constexpr (Width == 4)
    return __builtin_shufflevector(a, b, 0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29);
  else
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}
template <int Width, class V> TK_INLINE V highHalves(V a, V b) {
  if constexpr (Width == 16)
    return __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30,
                                   31);
  else if constexpr (Width == 8)
    return __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30,
                                   31);
  else if constexpr (Width == 4)
    return __builtin_shufflevector(a, b, 2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30,
                                   31);
  else
    return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}

// A square of 16 rows becomes its columns: the quarters off the diagonal change places, then those
// of each quarter, and so on.
template <int Half = 8> TK_INLINE void transpose(Vec *rows) {
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    if (i & Half)
      continue;
    Vec a = rows[i], b = rows[i + Half];
    if constexpr (Half == 8) {
      rows[i] =
          __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
      rows[i + 8] = __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28,
                                            29, 30, 31);
    } else if constexpr (Half == 4) {
      rows[i] =
          __builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
      rows[i + 4] =
          __builtin_shufflevector(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
    } else if constexpr (Half == 2) {
      rows[i] =
          __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
      rows[i + 2] =
          __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    } else {
      rows[i] =
          __builtin_shufflevector(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
      rows[i + 1] =
          __builtin_shufflevector(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
    }
  }
  if constexpr (Half > 1)
    transpose<Half / 2>(rows);
}

TK_INLINE IVec bitsOf(Vec v) { return __builtin_bit_cast(IVec, v); }
TK_INLINE Vec floatOf(IVec v) { return __builtin_bit_cast(Vec, v); }
TK_INLINE float floatOf(uint32_t v) { return __builtin_bit_cast(float, v); }
TK_INLINE uint32_t bitsOf(float v) { return __builtin_bit_cast(uint32_t, v); }

// Nearest integers, to even, of numbers below 2^22; of others any.
TK_INLINE IVec roundToInteger(Vec v) {
  const float magic = 0x1.8p23f;
  return bitsOf(v + magic) - (int32_t)bitsOf(magic);
}

// The sum of all elements, in a fixed order.
TK_INLINE float sum(Vec v) {
  typedef float V8 __attribute__((ext_vector_type(8)));
  typedef float V4 __attribute__((ext_vector_type(4)));
  V8 a = v.lo + v.hi;
  V4 b = a.lo + a.hi;
  return (b.x + b.z) + (b.y + b.w);
}

// ── 16-bit floats ──────────────────────────────────────────────────────────────────────────────

TK_INLINE Vec fromBfloat(HalfVec h) { return floatOf(__builtin_convertvector(h, IVec) << 16); }

// Finite values only where the CPU has no conversion.
template <class F, class H> TK_INLINE F fromHalfBits(H h) {
  typedef decltype(F{} > F{}) I;
  I bits = __builtin_convertvector(h, I);
  F magnitude = __builtin_bit_cast(F, (I)((bits & 0x7fff) << 13)) * 0x1p112f;
  return __builtin_bit_cast(F, (I)(__builtin_bit_cast(I, magnitude) | (bits & 0x8000) << 16));
}
TK_INLINE Vec fromHalf(HalfVec h) {
#if TK_LANES == 16
  return __builtin_bit_cast(Vec, _mm512_cvtph_ps(__builtin_bit_cast(__m256i, h)));
#elif defined(__F16C__)
  const char *p = (const char *)&h;
  __m256 v[2] = {_mm256_cvtph_ps(loadAs<__m128i>(p)), _mm256_cvtph_ps(loadAs<__m128i>(p + 16))};
  return loadAs<Vec>(v);
#else
  return fromHalfBits<Vec>(h);
#endif
}

template <class H> TK_INLINE FLanes fromHalfLanes(H h) {
#if TK_LANES == 16
  return fromHalf(h);
#elif TK_LANES == 8 && defined(__F16C__)
  return _mm256_cvtph_ps(__builtin_bit_cast(__m128i, h));
#else
  return fromHalfBits<FLanes>(h);
#endif
}

// Round to nearest even; a NaN stays one.
TK_INLINE HalfVec toBfloat(Vec v) {
  typedef uint32_t U __attribute__((ext_vector_type(16)));
  U bits = __builtin_bit_cast(U, v);
  U rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  U nan = bits >> 16 | 0x40;
  return __builtin_convertvector(v == v ? rounded : nan, HalfVec);
}
TK_INLINE HalfVec toHalf(Vec v) {
#if TK_LANES == 16
  return __builtin_bit_cast(HalfVec, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  __m128i h[2] = {_mm256_cvtps_ph(v.lo, _MM_FROUND_TO_NEAREST_INT),
                  _mm256_cvtps_ph(v.hi, _MM_FROUND_TO_NEAREST_INT)};
  return loadAs<HalfVec>(h);
#else
  // Normal halves by rounding the float's mantissa, small ones by letting an addition round; too
  // large is infinity.
  typedef uint32_t U __attribute__((ext_vector_type(16)));
  U bits = __builtin_bit_cast(U, v), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  U normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
  Vec shifted = __builtin_bit_cast(Vec, magnitude) + 0.5f;
  U small = __builtin_bit_cast(U, shifted) - (126u << 23);
  U half = magnitude < (113u << 23) ? small : normal;
  half = half > 0x7c00 ? 0x7c00 : half;
  half = magnitude > (255u << 23) ? 0x7e00 : half;
  return __builtin_convertvector(half | sign, HalfVec);
#endif
}

TK_INLINE int64_t elementBytes(int32_t dtype) {
  return dtype == TENON_F32 ? 4 : dtype == TENON_I8 ? 1 : 2;
}

// n <= 16 elements stored as `dtype`, as f32; the others read as 0.
TK_INLINE Vec loadElements(int32_t dtype, const char *p, int64_t n = 16) {
  if (dtype == TENON_F32)
    return load((const float *)p, n);
  if (dtype == TENON_I8) {
    ByteVec bytes = 0;
    if (n >= 16)
      bytes = loadAs<ByteVec>(p);
    else
      for (int64_t i = 0; i < n; ++i)
        bytes[i] = ((const int8_t *)p)[i];
    return __builtin_convertvector(bytes, Vec);
  }
  HalfVec h = 0;
  if (n >= 16)
    h = loadAs<HalfVec>(p);
  else
    for (int64_t i = 0; i < n; ++i)
      h[i] = ((const uint16_t *)p)[i];
  return dtype == TENON_BF16 ? fromBfloat(h) : fromHalf(h);
}
// Not int8.
TK_INLINE void storeElements(int32_t dtype, char *p, Vec v, int64_t n = 16) {
  if (dtype == TENON_F32)
    return store((float *)p, v, n);
  HalfVec h = dtype == TENON_BF16 ? toBfloat(v) : toHalf(v);
  if (n >= 16)
    return storeAs(p, h);
  for (int64_t i = 0; i < n; ++i)
    ((uint16_t *)p)[i] = h[i];
}

// ── integer products ───────────────────────────────────────────────────────────────────────────

// Four consecutive codes of an activation row, for all lanes.
TK_INLINE ILanes broadcast4(const int8_t *x) { return (ILanes)(loadAs<int32_t>(x)); }

#if TK_LANES == 16
TK_INLINE ILanes dpbusd(ILanes acc, ILanes u, ILanes s) {
  return (ILanes)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)u, (__m512i)s);
}
#elif TK_LANES == 8
typedef __m256i Reg;
TK_INLINE Reg maddubs(Reg u, Reg s) { return _mm256_maddubs_epi16(u, s); }
TK_INLINE Reg add16(Reg a, Reg b) { return _mm256_add_epi16(a, b); }
TK_INLINE ILanes widen(Reg pairs) { return (ILanes)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }
TK_INLINE Reg absolute(Reg a) { return _mm256_abs_epi8(a); }
TK_INLINE Reg withSign(Reg a, Reg sign) { return _mm256_sign_epi8(a, sign); }
#else
typedef __m128i Reg;
TK_INLINE Reg maddubs(Reg u, Reg s) { return _mm_maddubs_epi16(u, s); }
TK_INLINE Reg add16(Reg a, Reg b) { return _mm_add_epi16(a, b); }
TK_INLINE ILanes widen(Reg pairs) { return (ILanes)_mm_madd_epi16(pairs, _mm_set1_epi16(1)); }
TK_INLINE Reg absolute(Reg a) { return _mm_abs_epi8(a); }
TK_INLINE Reg withSign(Reg a, Reg sign) { return _mm_sign_epi8(a, sign); }
#endif

// Products of 4 steps (16 columns) of unsigned codes w and signed codes x. `Bits` bounds w: sums of
// 4-bit products stay in 16 bits.
template <int Bits> TK_INLINE ILanes dotUnsigned(const ILanes *w, const int8_t *x) {
#if TK_LANES == 16
  ILanes acc = 0;
#pragma unroll
  for (int s = 0; s < 4; ++s)
    acc = dpbusd(acc, w[s], broadcast4(x + 4 * s));
  return acc;
#else
  Reg p[4];
#pragma unroll
  for (int s = 0; s < 4; ++s)
    p[s] = maddubs((Reg)w[s], (Reg)broadcast4(x + 4 * s));
  if (Bits == 4)
    return widen(add16(add16(p[0], p[1]), add16(p[2], p[3])));
  return (widen(p[0]) + widen(p[1])) + (widen(p[2]) + widen(p[3]));
#endif
}

// The same with w stored as a signed code plus 128; `correction` is -128 · the sum of the 16 x.
TK_INLINE ILanes dotBiased(const ILanes *w, const int8_t *x, [[maybe_unused]] int32_t correction) {
#if TK_LANES == 16
  ILanes acc = correction;
#pragma unroll
  for (int s = 0; s < 4; ++s)
    acc = dpbusd(acc, w[s], broadcast4(x + 4 * s));
  return acc;
#else
  ILanes acc = 0;
#pragma unroll
  for (int s = 0; s < 4; ++s) {
    Reg code = (Reg)(w[s] ^ (int32_t)0x80808080);
    acc += widen(maddubs(absolute(code), withSign((Reg)broadcast4(x + 4 * s), code)));
  }
  return acc;
#endif
}

// ── cutting the work ───────────────────────────────────────────────────────────────────────────

struct Range {
  int64_t begin, end;
};

// This thread's share of `total` items.
TK_INLINE Range shareOf(int64_t total, const tenon_env *env) {
  return {total * env->thread / env->threads, total * (env->thread + 1) / env->threads};
}

TK_INLINE int64_t countRows(int32_t rows, const tenon_env *env) {
  return rows == TK_ROWS_SCORED ? env->batch->scored : env->batch->tokens;
}

} // namespace

#endif // TENON_KERNELS_ISA_H
