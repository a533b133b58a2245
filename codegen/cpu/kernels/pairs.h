// Pairs of bf16 in the place of one float: what the bf16 dot instruction takes. Where it is missing
// nobody calls these (HasPairs).
#ifndef TENON_KERNELS_PAIRS_H
#define TENON_KERNELS_PAIRS_H

#include "isa.h"

namespace {

typedef uint16_t PairVec __attribute__((ext_vector_type(32)));

#if defined(__AVX512BF16__)
constexpr bool HasPairs = true;
// acc + the two products of each pair.
TK_INLINE Vec addPairs(Vec acc, Vec x, Vec y) {
  return _mm512_dpbf16_ps(acc, __builtin_bit_cast(__m512bh, x), __builtin_bit_cast(__m512bh, y));
}
#else
constexpr bool HasPairs = false;
TK_INLINE Vec addPairs(Vec acc, Vec, Vec) { return acc; }
#endif

// Elements 0 .. 15 of two rows, or 16 .. 31, as pairs (a[i], b[i]).
TK_INLINE Vec pairLow(PairVec a, PairVec b) {
  return __builtin_bit_cast(Vec, __builtin_shufflevector(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5,
                                                         37, 6, 38, 7, 39, 8, 40, 9, 41, 10, 42, 11,
                                                         43, 12, 44, 13, 45, 14, 46, 15, 47));
}
TK_INLINE Vec pairHigh(PairVec a, PairVec b) {
  return __builtin_bit_cast(Vec,
                            __builtin_shufflevector(a, b, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52,
                                                    21, 53, 22, 54, 23, 55, 24, 56, 25, 57, 26, 58,
                                                    27, 59, 28, 60, 29, 61, 30, 62, 31, 63));
}
TK_INLINE Vec pairUp(HalfVec a, HalfVec b) {
  return floatOf(__builtin_convertvector(a, IVec) | __builtin_convertvector(b, IVec) << 16);
}
// The same of floats, rounded.
TK_INLINE Vec pairUp(Vec a, Vec b) {
#if defined(__AVX512BF16__)
  PairVec both = __builtin_bit_cast(PairVec, _mm512_cvtne2ps_pbh(b, a));
  return __builtin_bit_cast(Vec,
                            __builtin_shufflevector(both, both, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20,
                                                    5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11,
                                                    27, 12, 28, 13, 29, 14, 30, 15, 31));
#else
  return pairUp(toBfloat(a), toBfloat(b));
#endif
}

} // namespace

#endif // TENON_KERNELS_PAIRS_H
