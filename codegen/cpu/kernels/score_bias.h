// The bias that is added to attention scores: a table [heads, bias_length], read at the distance
// from query to key or at the key's position. Beyond its ends its last entry goes on.
#ifndef TENON_KERNELS_SCORE_BIAS_H
#define TENON_KERNELS_SCORE_BIAS_H

#include "isa.h"

namespace {

// Where a head's row has the entry of a (query, key) pair.
TK_INLINE int64_t biasEntry(const tk_attention_shape &s, int64_t key, int64_t query) {
  return key + s.bias_origin - (s.bias == TK_BIAS_DISTANCE ? query : 0);
}
TK_INLINE float biasAt(const tk_attention_shape &s, const float *row, int64_t entry) {
  return row[most(0, least(entry, s.bias_length - 1))];
}

// 16 keys from `key` on, for one query.
TK_INLINE Vec biasOfKeys(const tk_attention_shape &s, const float *table, int64_t head, int64_t key,
                         int64_t query) {
  const float *row = table + head * s.bias_length;
  int64_t entry = biasEntry(s, key, query);
  if (entry >= 0 && entry + 16 <= s.bias_length)
    return load(row + entry);
  Vec v = 0;
  for (int64_t i = 0; i < 16; ++i)
    v[i] = biasAt(s, row, entry + i);
  return v;
}

// 64 keys from `first` on, for 64 query rows (token, head of the group).
//
// Rows of one head are consecutive positions, so that by distance the biases of a key are a run of
// one strip, in which distances fall:
//
//   strip[63 - j + i]: key first + j, query positions[0] + i
//
// Rows of several heads pick their entries one by one.
struct BlockBias {
  const tk_attention_shape &s;
  const float *table; // of the group's first head
  int64_t group, firstRow, first;
  const int32_t *positions; // [64]
  float strip[TK_ATTENTION_KEYS + TK_ATTENTION_QUERIES];

  __attribute__((always_inline)) BlockBias(const tk_attention_shape &s, const float *bias,
                                           int64_t head, int64_t firstRow, const int32_t *positions,
                                           int64_t first)
      : s(s), table(bias), group(s.heads / s.kv_heads), firstRow(firstRow), first(first),
        positions(positions) {
    if (!s.bias)
      return;
    table = bias + head * group * s.bias_length;
    if (group > 1 || s.bias != TK_BIAS_DISTANCE)
      return;
    int64_t entry = biasEntry(s, first + TK_ATTENTION_KEYS - 1, positions[0]);
    for (int64_t i = 0; i < TK_ATTENTION_KEYS + TK_ATTENTION_QUERIES; ++i)
      strip[i] = biasAt(s, table, entry - i);
  }

  // Key first + j for rows i to i + 15.
  __attribute__((always_inline)) Vec at(int64_t j, int64_t i) const {
    if (group == 1)
      return s.bias == TK_BIAS_DISTANCE ? load(strip + TK_ATTENTION_KEYS - 1 - j + i)
                                        : (Vec)biasAt(s, table, biasEntry(s, first + j, 0));
    Vec v = 0;
    for (int64_t lane = 0; lane < 16; ++lane)
      v[lane] = biasAt(s, table + (firstRow + i + lane) % group * s.bias_length,
                       biasEntry(s, first + j, positions[i + lane]));
    return v;
  }
};

} // namespace

#endif // TENON_KERNELS_SCORE_BIAS_H
