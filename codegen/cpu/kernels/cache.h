// The paged KV cache of one layer, as kernel_abi.h draws it, and the sequence it is read for.
#ifndef TENON_KERNELS_CACHE_H
#define TENON_KERNELS_CACHE_H

#include "isa.h"

namespace {

// The rows of one head in a physical block: keys or values of TENON_BLOCK_TOKENS positions.
struct BlockRows {
  char *data;
  int32_t dtype;
  int64_t dim; // elements of a row

  __attribute__((always_inline)) int64_t rowBytes() const { return dim * elementBytes(dtype); }
  __attribute__((always_inline)) char *row(int64_t slot) const { return data + slot * rowBytes(); }
  // Those of one group, for all slots; int8 only.
  __attribute__((always_inline)) uint16_t *scales(int64_t group) const {
    return (uint16_t *)row(TENON_BLOCK_TOKENS) + group * TENON_BLOCK_TOKENS;
  }
  __attribute__((always_inline)) float scale(int64_t slot, int64_t d) const {
    return floatOf((uint32_t)scales(d / TENON_CACHE_GROUP)[slot] << 16);
  }
  // n <= 16 elements from d on, a multiple of 16; the others are 0.
  __attribute__((always_inline)) Vec load(int64_t slot, int64_t d, int64_t n) const {
    Vec x = loadElements(dtype, row(slot) + d * elementBytes(dtype), n);
    return dtype == TENON_I8 ? x * scale(slot, d) : x;
  }
  __attribute__((always_inline)) void store(int64_t slot, const float *x) const {
    if (dtype == TENON_I8)
      return quantise(slot, x);
    for (int64_t d = 0; d < dim; d += 16) {
      int64_t n = least(16, dim - d);
      storeElements(dtype, row(slot) + d * elementBytes(dtype), ::load(x + d, n), n);
    }
  }

private:
  // Each group has 127 steps to its largest magnitude. The step is what its own rounding leaves of
  // that. A NaN makes the scale one, since in integers it is larger than any number, and so is
  // kept; a group whose scale would be less than the smallest normal number is zero.
  __attribute__((always_inline)) void quantise(int64_t slot, const float *x) const {
    for (int64_t d = 0; d < dim; d += TENON_CACHE_GROUP) {
      int64_t counts[2] = {least(16, dim - d), least(16, dim - d - 16)};
      Vec parts[2] = {::load(x + d, counts[0]), ::load(x + d + 16, counts[1])};
      IVec low = bitsOf(parts[0]) & 0x7fffffff, high = bitsOf(parts[1]) & 0x7fffffff;
      float largest = floatOf((uint32_t)__builtin_reduce_max(low > high ? low : high));
      uint16_t stored = toBfloat((Vec)(largest * (1.0f / 127)))[0];
      float step = floatOf((uint32_t)stored << 16);
      float inverse = step >= 0x1p-126f ? 1 / step : 0;
      scales(d / TENON_CACHE_GROUP)[slot] = stored;
      for (int i = 0; i < 2; ++i) {
        Vec scaled = parts[i] * inverse;
        const float magic = 0x1.8p23f; // adding it rounds to an integer
        ByteVec codes =
            __builtin_convertvector(bitsOf(scaled + magic) - (int32_t)bitsOf(magic), ByteVec);
        char *to = row(slot) + d + 16 * i;
        if (counts[i] >= 16)
          storeAs(to, codes);
        else
          for (int64_t j = 0; j < counts[i]; ++j)
            to[j] = codes[j];
      }
    }
  }
};

struct Cache {
  char *pool;
  int64_t blocks; // of the whole pool
  int64_t kvHeads, headDim;
  int32_t dtype;
  int64_t valueDim;
  int32_t valuesInKeys; // a value is the first elements of its key

  // Bytes of TENON_BLOCK_TOKENS rows.
  __attribute__((always_inline)) int64_t blockBytes(int64_t dim) const {
    int64_t groups = (dim + TENON_CACHE_GROUP - 1) / TENON_CACHE_GROUP;
    return TENON_BLOCK_TOKENS * (dim * elementBytes(dtype) + (dtype == TENON_I8 ? 2 * groups : 0));
  }
  // The keys (or values) of a head in a physical block.
  __attribute__((always_inline)) BlockRows keys(int64_t block, int64_t head) const {
    return {pool + (head * blocks + block) * blockBytes(headDim), dtype, headDim};
  }
  __attribute__((always_inline)) BlockRows values(int64_t block, int64_t head) const {
    if (valuesInKeys)
      return keys(block, head);
    return {pool + kvHeads * blocks * blockBytes(headDim) +
                (head * blocks + block) * blockBytes(valueDim),
            dtype, valueDim};
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

// Writes one head's key (f32) at a position of a sequence.
TK_INLINE void appendKey(const Cache &cache, int64_t block, int64_t head, int64_t position,
                         const float *x) {
  cache.keys(block, head).store(position % TENON_BLOCK_TOKENS, x);
}
// Not where it is part of the key.
TK_INLINE void appendValue(const Cache &cache, int64_t block, int64_t head, int64_t position,
                           const float *x) {
  cache.values(block, head).store(position % TENON_BLOCK_TOKENS, x);
}

} // namespace

#endif // TENON_KERNELS_CACHE_H
