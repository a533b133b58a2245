// The paged KV cache of one layer, as kernel_abi.h draws it, and the sequence it is read for.
#ifndef TENON_KERNELS_CACHE_H
#define TENON_KERNELS_CACHE_H

#include "isa.h"

namespace {

struct Cache {
  char *pool;
  int64_t blocks; // of the whole pool
  int64_t kvHeads, headDim;
  int32_t dtype;
  int64_t valueDim;
  int32_t valuesInKeys; // a value is the first elements of its key

  __attribute__((always_inline)) int64_t rowBytes() const { return headDim * elementBytes(dtype); }
  __attribute__((always_inline)) int64_t valueRowBytes() const {
    return valuesInKeys ? rowBytes() : valueDim * elementBytes(dtype);
  }
  // The TENON_BLOCK_TOKENS keys (or values) of a head in a physical block.
  __attribute__((always_inline)) char *keys(int64_t block, int64_t head) const {
    return pool + (head * blocks + block) * TENON_BLOCK_TOKENS * rowBytes();
  }
  __attribute__((always_inline)) char *values(int64_t block, int64_t head) const {
    if (valuesInKeys)
      return keys(block, head);
    return pool + TENON_BLOCK_TOKENS *
                      (kvHeads * blocks * rowBytes() + (head * blocks + block) * valueRowBytes());
  }
};

// The physical block of each logical block of a sequence.
TK_INLINE const int32_t *blocksOf(const tenon_batch &batch, int64_t sequence) {
  return batch.block_table + sequence * batch.max_blocks;
}

// The same of what attention reads.
TK_INLINE const int32_t *keyBlocksOf(const tk_attention_shape &s, const tenon_batch &batch,
                                     int64_t sequence) {
  return s.keys == TK_KEYS_MEMORY ? batch.memory_table + sequence * batch.memory_max_blocks
                                  : blocksOf(batch, sequence);
}

TK_INLINE int64_t keyBlockCount(const tk_attention_shape &s, const tenon_env *env) {
  return s.keys == TK_KEYS_MEMORY ? env->memory_blocks : env->cache_blocks;
}

// The last position that a token sees.
TK_INLINE int64_t lastVisible(const tk_attention_shape &s, const tenon_batch &batch,
                              int64_t token) {
  int64_t sequence = batch.sequence_of[token];
  return s.keys == TK_KEYS_MEMORY   ? batch.memory_lengths[sequence] - 1
         : s.keys == TK_KEYS_TOKENS ? batch.starts[sequence + 1] - batch.starts[sequence] - 1
                                    : batch.positions[token];
}

// The first position that a token sees whose last is `last`.
TK_INLINE int64_t firstVisible(const tk_attention_shape &s, int64_t last) {
  return s.window ? most(0, last - s.window + 1) : 0;
}

// Writes one head's row (f32) of `dim` elements at a position of a sequence.
TK_INLINE void appendRow(const Cache &cache, char *blockRows, int64_t position, const float *x,
                         int64_t dim) {
  char *row = blockRows + position % TENON_BLOCK_TOKENS * dim * elementBytes(cache.dtype);
  for (int64_t d = 0; d < dim; d += 16) {
    int64_t n = least(16, dim - d);
    storeElements(cache.dtype, row + d * elementBytes(cache.dtype), load(x + d, n), n);
  }
}
TK_INLINE void appendKey(const Cache &cache, int64_t block, int64_t head, int64_t position,
                         const float *x) {
  appendRow(cache, cache.keys(block, head), position, x, cache.headDim);
}
// Not where it is part of the key.
TK_INLINE void appendValue(const Cache &cache, int64_t block, int64_t head, int64_t position,
                           const float *x) {
  appendRow(cache, cache.values(block, head), position, x, cache.valueDim);
}

} // namespace

#endif // TENON_KERNELS_CACHE_H
