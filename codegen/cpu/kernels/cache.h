// The paged KV cache of one layer, as kernel_abi.h draws it, and the sequence it is read for.
#ifndef TENON_KERNELS_CACHE_H
#define TENON_KERNELS_CACHE_H

#include "codegen/kernels/visible.h"
#include "isa.h"

namespace {

// Of a block's rows of `dim` elements.
TK_INLINE int64_t scaleBytes(int32_t dtype, int64_t dim) {
  int64_t groups = (dim + TENON_CACHE_GROUP - 1) / TENON_CACHE_GROUP;
  return dtype == TENON_I8 ? groups * TENON_BLOCK_TOKENS * 2 : 0;
}

// The rows of one head in a physical block: keys or values of TENON_BLOCK_TOKENS positions.
struct BlockRows {
  char *data;
  int32_t dtype;
  int64_t dim;    // elements of a row
  bool byElement; // int8 [dim][TENON_BLOCK_TOKENS]

  __attribute__((always_inline)) int64_t rowBytes() const { return dim * elementBytes(dtype); }
  __attribute__((always_inline)) char *row(int64_t slot) const {
    return elements() + slot * rowBytes();
  }
  // n <= 16 elements from d on, a multiple of 16; the others are 0. Not if they lie by element.
  __attribute__((always_inline)) Vec load(int64_t slot, int64_t d, int64_t n) const {
    Vec x = loadCodes(slot, d, n);
    return dtype == TENON_I8 ? x * floatOf((uint32_t)scales(d)[slot] << 16) : x;
  }
  // The same without the scales that int8 elements have; and element d of all slots, if they lie
  // so.
  __attribute__((always_inline)) Vec loadCodes(int64_t slot, int64_t d, int64_t n) const {
    return loadElements(dtype, row(slot) + d * elementBytes(dtype), n);
  }
  __attribute__((always_inline)) Vec loadCodes(int64_t d) const {
    return loadElements(dtype, elements() + d * TENON_BLOCK_TOKENS);
  }
  // The scales of element d in all slots; int8 only.
  __attribute__((always_inline)) Vec loadScales(int64_t d) const {
    return fromBfloat(loadAs<HalfVec>(scales(d)));
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
  __attribute__((always_inline)) char *elements() const { return data + scaleBytes(dtype, dim); }
  __attribute__((always_inline)) uint16_t *scales(int64_t d) const {
    return (uint16_t *)data + d / TENON_CACHE_GROUP * TENON_BLOCK_TOKENS;
  }

  // Each group has 127 steps to its largest magnitude. The step is what its own rounding leaves of
  // that. A NaN makes the scale one, since in integers it is larger than any number, and so is
  // kept; a group whose scale would be less than the smallest normal number is zero.
  __attribute__((always_inline)) void quantise(int64_t slot, const float *x) const {
    for (int64_t d = 0; d < dim; d += TENON_CACHE_GROUP) {
      Vec parts[2] = {::load(x + d, least(16, dim - d)),
                      ::load(x + d + 16, least(16, dim - d - 16))};
      IVec low = bitsOf(parts[0]) & 0x7fffffff, high = bitsOf(parts[1]) & 0x7fffffff;
      float largest = floatOf((uint32_t)__builtin_reduce_max(low > high ? low : high));
      uint16_t stored = toBfloat((Vec)(largest * (1.0f / 127)))[0];
      float step = floatOf((uint32_t)stored << 16);
      float inverse = step >= 0x1p-126f ? 1 / step : 0;
      scales(d)[slot] = stored;
      for (int i = 0; i < 2; ++i) {
        ByteVec codes = __builtin_convertvector(roundToInteger(parts[i] * inverse), ByteVec);
        int64_t first = d + 16 * i, n = least(16, dim - first);
        if (byElement)
          for (int64_t j = 0; j < n; ++j)
            elements()[(first + j) * TENON_BLOCK_TOKENS + slot] = codes[j];
        else if (n >= 16)
          storeAs(row(slot) + first, codes);
        else
          for (int64_t j = 0; j < n; ++j)
            row(slot)[first + j] = codes[j];
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

  __attribute__((always_inline)) int64_t blockBytes(int64_t dim) const {
    return scaleBytes(dtype, dim) + TENON_BLOCK_TOKENS * dim * elementBytes(dtype);
  }
  // The keys (or values) of a head in a physical block.
  __attribute__((always_inline)) BlockRows keys(int64_t block, int64_t head) const {
    return {pool + (head * blocks + block) * blockBytes(headDim), dtype, headDim, keysByElement()};
  }
  __attribute__((always_inline)) bool keysByElement() const {
    return dtype == TENON_I8 && !valuesInKeys;
  }
  __attribute__((always_inline)) BlockRows values(int64_t block, int64_t head) const {
    if (valuesInKeys)
      return keys(block, head);
    return {pool + kvHeads * blocks * blockBytes(headDim) +
                (head * blocks + block) * blockBytes(valueDim),
            dtype, valueDim, false};
  }
};

TK_INLINE int64_t keyBlockCount(const tk_attention_shape &s, const tenon_env *env) {
  return s.keys == TK_KEYS_MEMORY ? env->memory_blocks : env->cache_blocks;
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
