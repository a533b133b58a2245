// The paged KV cache of one layer, as runtime/kernel_abi.h draws it, and what a token sees of it.
// How an element is stored is known here alone.
#ifndef TENON_CODEGEN_CUDA_KERNELS_CACHE_H
#define TENON_CODEGEN_CUDA_KERNELS_CACHE_H

#include "codegen/kernels/visible.h"
#include "device.h"

namespace tk {

TK_DEVICE int64_t elementBytes(int32_t dtype) { return dtype == TENON_F32 ? 4 : 2; }

TK_DEVICE float loadElement(int32_t dtype, const char *row, int64_t d) {
  if (dtype == TENON_F32)
    return ((const float *)row)[d];
  uint16_t bits = ((const uint16_t *)row)[d];
  return dtype == TENON_BF16 ? bf16ToFloat(bits) : halfToFloat(bits);
}

// A float in 16 bits of a cache's own type, and back.
TK_DEVICE uint16_t toShort(int32_t dtype, float v) {
  return dtype == TENON_BF16 ? floatToBf16(v) : floatToHalf(v);
}
TK_DEVICE float fromShort(int32_t dtype, uint16_t bits) {
  return dtype == TENON_BF16 ? bf16ToFloat(bits) : halfToFloat(bits);
}

TK_DEVICE void storeElement(int32_t dtype, char *row, int64_t d, float v) {
  if (dtype == TENON_F32)
    ((float *)row)[d] = v;
  else
    ((uint16_t *)row)[d] = toShort(dtype, v);
}

struct Cache {
  char *pool;
  int64_t blocks; // of the whole pool
  int32_t kvHeads, headDim, valueDim, dtype;
  bool valuesInKeys; // a value is the first elements of its key

  TK_METHOD int64_t keyBytes() const { return headDim * elementBytes(dtype); }
  TK_METHOD int64_t valueBytes() const {
    return valuesInKeys ? keyBytes() : valueDim * elementBytes(dtype);
  }
  // The row of a head at a slot of a physical block.
  TK_METHOD char *key(int64_t head, int64_t block, int64_t slot) const {
    return pool + ((head * blocks + block) * TENON_BLOCK_TOKENS + slot) * keyBytes();
  }
  TK_METHOD char *value(int64_t head, int64_t block, int64_t slot) const {
    if (valuesInKeys)
      return key(head, block, slot);
    return pool + kvHeads * blocks * TENON_BLOCK_TOKENS * keyBytes() +
           ((head * blocks + block) * TENON_BLOCK_TOKENS + slot) * valueBytes();
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

  TK_METHOD const char *key(int64_t position) const {
    if (!table)
      return (const char *)(keys + position * keyStride);
    return cache.key(head, table[position / TENON_BLOCK_TOKENS], position % TENON_BLOCK_TOKENS);
  }
  TK_METHOD const char *value(int64_t position) const {
    if (!table)
      return (const char *)(values + position * valueStride);
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
