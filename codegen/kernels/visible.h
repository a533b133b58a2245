// What a token sees, and where in a paged cache it lies: the same for the kernels of every backend.
#ifndef TENON_CODEGEN_KERNELS_VISIBLE_H
#define TENON_CODEGEN_KERNELS_VISIBLE_H

#include "codegen/kernels/shapes.h"

// The physical block of each logical block of a sequence.
static inline const int32_t *tk_blocks_of(const tenon_batch *batch, int64_t sequence) {
  return batch->block_table + sequence * batch->max_blocks;
}

// The same of what attention reads.
static inline const int32_t *tk_key_blocks_of(const tk_attention_shape *s, const tenon_batch *batch,
                                              int64_t sequence) {
  return s->keys == TK_KEYS_MEMORY ? batch->memory_table + sequence * batch->memory_max_blocks
                                   : tk_blocks_of(batch, sequence);
}

// The last position that a token sees; -1: none.
static inline int32_t tk_last_visible(const tk_attention_shape *s, const tenon_batch *batch,
                                      int64_t token) {
  int64_t sequence = batch->sequence_of[token];
  return s->keys == TK_KEYS_MEMORY   ? batch->memory_lengths[sequence] - 1
         : s->keys == TK_KEYS_TOKENS ? batch->starts[sequence + 1] - batch->starts[sequence] - 1
                                     : batch->positions[token];
}

// The first position that a token sees whose last is `last`.
static inline int32_t tk_first_visible(const tk_attention_shape *s, int32_t last) {
  return s->window && last >= s->window ? last - s->window + 1 : 0;
}

#endif // TENON_CODEGEN_KERNELS_VISIBLE_H
