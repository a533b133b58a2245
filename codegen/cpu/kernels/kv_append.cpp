// tk_kv_append: k and v of every token into the paged cache; tokens over threads.
#include "cache.h"

TK_KERNEL(tk_kv_append) {
  const auto &s = *(const tk_kv_append_shape *)shape;
  const float *k = (const float *)io[0], *v = s.values_in_keys ? nullptr : (const float *)io[1];
  int64_t valueDim = tk_value_dim(s.head_dim, s.value_dim);
  Cache cache = {(char *)io[s.values_in_keys ? 1 : 2],
                 s.memory ? env->memory_blocks : env->cache_blocks,
                 s.kv_heads,
                 s.head_dim,
                 s.kv_dtype,
                 valueDim,
                 s.values_in_keys};
  const tenon_batch &batch = *env->batch;
  Range share = shareOf(batch.tokens, env);
  for (int64_t t = share.begin; t < share.end; ++t) {
    int64_t position = batch.positions[t];
    int64_t block = tk_blocks_of(&batch, batch.sequence_of[t])[position / TENON_BLOCK_TOKENS];
    for (int64_t h = 0; h < s.kv_heads; ++h) {
      appendKey(cache, block, h, position, k + t * s.k_stride + h * s.head_dim);
      if (!s.values_in_keys)
        appendValue(cache, block, h, position, v + t * s.v_stride + h * valueDim);
    }
  }
}
