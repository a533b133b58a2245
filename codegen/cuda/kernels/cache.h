// The paged KV cache of one layer, as runtime/kernel_abi.h draws it, and what a token sees of it.
// How an element is stored is known here alone.
#ifndef TENON_CODEGEN_CUDA_KERNELS_CACHE_H
#define TENON_CODEGEN_CUDA_KERNELS_CACHE_H

#include "codegen/kernels/visible.h"
#include "device.h"

namespace tk {

TK_DEVICE int64_t elementBytes(int32_t dtype) {
  return dtype == TENON_F32 ? 4 : dtype == TENON_I8 ? 1 : 2;
}

// A float in 16 bits of the type that a cache's rows are multiplied in: its own or, beside int8,
// bf16. And back.
TK_DEVICE uint16_t toShort(int32_t dtype, float v) {
  return dtype == TENON_F16 ? floatToHalf(v) : floatToBf16(v);
}
TK_DEVICE float fromShort(int32_t dtype, uint16_t bits) {
  return dtype == TENON_F16 ? halfToFloat(bits) : bf16ToFloat(bits);
}

// A row of the cache, or of f32 in the batch.
struct CacheRow {
  char *elements;   // null: none
  uint16_t *scales; // of int8: bf16, for each TENON_CACHE_GROUP elements one, a block's slots apart

  TK_METHOD uint16_t *scaleAt(int64_t d) const {
    return inGlobal(scales + d / TENON_CACHE_GROUP * TENON_BLOCK_TOKENS);
  }
  TK_METHOD float scale(int64_t d) const { return bf16ToFloat(*scaleAt(d)); }
};

TK_DEVICE float loadElement(int32_t dtype, const CacheRow &row, int64_t d) {
  if (dtype == TENON_F32)
    return ((const float *)row.elements)[d];
  if (dtype == TENON_I8)
    return (float)((const int8_t *)row.elements)[d] * row.scale(d);
  return fromShort(dtype, ((const uint16_t *)row.elements)[d]);
}

// Elements d .. d + 7 (a multiple of 8) in 16 bits; those of int8 without their scale.
TK_DEVICE Words4 loadShorts(int32_t dtype, const CacheRow &row, int64_t d) {
  if (dtype != TENON_I8)
    return loadWords4(inGlobal(row.elements + 2 * d));
  Words2 codes = loadWords2(inGlobal(row.elements + d));
  Words2 low = bytesToBf16(codes.w[0]), high = bytesToBf16(codes.w[1]);
  return {{low.w[0], low.w[1], high.w[0], high.w[1]}};
}
// With it, rounded again.
TK_DEVICE Words4 loadScaledShorts(int32_t dtype, const CacheRow &row, int64_t d) {
  Words4 x = loadShorts(dtype, row, d);
  if (dtype == TENON_I8) {
    uint16_t scale = *row.scaleAt(d);
    TK_UNROLL
    for (int i = 0; i < 4; ++i)
      x.w[i] = multiplyBf16(x.w[i], pack(scale, scale));
  }
  return x;
}

// Not of int8.
TK_DEVICE void storeElement(int32_t dtype, const CacheRow &row, int64_t d, float v) {
  if (dtype == TENON_F32)
    ((float *)row.elements)[d] = v;
  else
    ((uint16_t *)row.elements)[d] = toShort(dtype, v);
}

// A warp writes the int8 elements d .. d + 31 of a row as far as its dim goes; `x` is element d +
// lane(), 0 behind the last. As on the CPU: 127 steps to the largest magnitude, which is found in
// integers, where a NaN is larger than any number.
TK_DEVICE void storeGroup(const CacheRow &row, int64_t d, int64_t dim, float x) {
  uint32_t largest = floatToBits(x) & 0x7fffffff;
  TK_UNROLL
  for (int mask = 16; mask > 0; mask /= 2) {
    uint32_t other = shuffleXor(largest, mask);
    largest = other > largest ? other : largest;
  }
  uint16_t stored = floatToBf16(bitsToFloat(largest) * (1.0f / 127));
  float step = bf16ToFloat(stored), inverse = step >= 0x1p-126f ? 1 / step : 0;
  if (lane() == 0)
    *row.scaleAt(d) = stored;
  const float magic = 0x1.8p23f; // adding it rounds to an integer
  if (d + lane() < dim)
    row.elements[d + lane()] = (char)(floatToBits(x * inverse + magic) - floatToBits(magic));
}

// The block writes a row; element(d) is what it holds.
template <class Element>
TK_DEVICE void storeRow(int32_t dtype, const CacheRow &row, int64_t dim, Element element) {
  if (dtype == TENON_I8) {
    for (int64_t d = warp() * TENON_CACHE_GROUP; d < dim; d += warps() * TENON_CACHE_GROUP)
      storeGroup(row, d, dim, d + lane() < dim ? element(d + lane()) : 0);
    return;
  }
  for (int64_t d = threadIndex(); d < dim; d += threadCount())
    storeElement(dtype, row, d, element(d));
}

struct Cache {
  char *pool;
  int64_t blocks; // of the whole pool
  int32_t kvHeads, headDim, valueDim, dtype;
  bool valuesInKeys; // a value is the first elements of its key

  // Of the scales of a block's rows, which come before them.
  TK_METHOD int64_t scaleBytes(int64_t dim) const {
    int64_t groups = (dim + TENON_CACHE_GROUP - 1) / TENON_CACHE_GROUP;
    return dtype == TENON_I8 ? groups * TENON_BLOCK_TOKENS * 2 : 0;
  }
  TK_METHOD int64_t blockBytes(int64_t dim) const {
    return scaleBytes(dim) + TENON_BLOCK_TOKENS * dim * elementBytes(dtype);
  }
  // The row of a head at a slot of a physical block.
  TK_METHOD CacheRow key(int64_t head, int64_t block, int64_t slot) const {
    return row(pool + (head * blocks + block) * blockBytes(headDim), headDim, slot);
  }
  TK_METHOD CacheRow value(int64_t head, int64_t block, int64_t slot) const {
    if (valuesInKeys)
      return key(head, block, slot);
    char *values = pool + kvHeads * blocks * blockBytes(headDim);
    return row(values + (head * blocks + block) * blockBytes(valueDim), valueDim, slot);
  }

private:
  TK_METHOD CacheRow row(char *block, int64_t dim, int64_t slot) const {
    return {block + scaleBytes(dim) + slot * dim * elementBytes(dtype), (uint16_t *)block + slot};
  }
};

TK_DEVICE int32_t valueDimOf(const tk_attention_shape &s) {
  return s.value_dim ? s.value_dim : s.head_dim;
}

TK_DEVICE Cache cacheOf(const tk_attention_shape &s, void *pool, const tk_args &args) {
  return {(char *)pool,         s.keys == TK_KEYS_MEMORY ? args.memory_blocks : args.cache_blocks,
          s.kv_heads,           s.head_dim,
          valueDimOf(s),        s.kv_dtype,
          s.values_in_keys != 0};
}

// Where attention finds the keys and values of one head of a sequence: in the cache, or in rows of
// the batch's tokens (f32).
struct KeyRows {
  Cache cache;
  const int32_t *table; // null: rows
  int64_t head;
  const float *keys, *values;
  int64_t keyStride, valueStride;

  TK_METHOD CacheRow key(int64_t position) const {
    if (!table)
      return {(char *)(keys + position * keyStride), nullptr};
    return cache.key(head, table[position / TENON_BLOCK_TOKENS], position % TENON_BLOCK_TOKENS);
  }
  TK_METHOD CacheRow value(int64_t position) const {
    if (!table)
      return {(char *)(values + position * valueStride), nullptr};
    return cache.value(head, table[position / TENON_BLOCK_TOKENS], position % TENON_BLOCK_TOKENS);
  }
};

// The operands of tk_attention.
struct AttentionOperands {
  const float *q;
  void *pool;                 // null with rows
  const float *keys, *values; // rows of tokens
  const float *bias, *sinks;  // null: none
  float *out;

  TK_METHOD KeyRows rowsOf(const tk_attention_shape &s, const tk_args &args, int64_t sequence,
                           int64_t head) const {
    Cache cache = cacheOf(s, pool, args);
    if (s.keys != TK_KEYS_TOKENS)
      return {cache, tk_key_blocks_of(&s, args.batch, sequence), head, nullptr, nullptr, 0, 0};
    int64_t token = args.batch->starts[sequence];
    return {cache,
            nullptr,
            head,
            keys + token * s.k_stride + head * s.head_dim,
            values + token * s.v_stride + head * valueDimOf(s),
            s.k_stride,
            s.v_stride};
  }
};

} // namespace tk

#endif // TENON_CODEGEN_CUDA_KERNELS_CACHE_H
