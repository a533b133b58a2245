// tk_kv_append: k and v of every token into the paged cache.
#include "cache.h"

TK_DEVICE void tk_kv_append(const tk_kv_append_shape &s, const tk_args &args) {
  using namespace tk;
  const tenon_batch &batch = *args.batch;
  int32_t valueDim = s.value_dim ? s.value_dim : s.head_dim;
  Cache cache = {(char *)args.io[s.values_in_keys ? 1 : 2],
                 s.memory ? args.memory_blocks : args.cache_blocks,
                 s.kv_heads,
                 s.head_dim,
                 valueDim,
                 s.kv_dtype,
                 s.values_in_keys != 0};
  int64_t token = blockY();
  int32_t position = batch.positions[token];
  int64_t block = tk_blocks_of(&batch, batch.sequence_of[token])[position / TENON_BLOCK_TOKENS];
  int64_t slot = position % TENON_BLOCK_TOKENS;
  const float *k = (const float *)args.io[0] + token * s.k_stride;
  for (int64_t head = blockX(); head < s.kv_heads; head += gridX())
    storeRow(s.kv_dtype, cache.key(head, block, slot), s.head_dim,
             [&](int64_t d) { return k[head * s.head_dim + d]; });
  if (s.values_in_keys)
    return;
  const float *v = (const float *)args.io[1] + token * s.v_stride;
  for (int64_t head = blockX(); head < s.kv_heads; head += gridX())
    storeRow(s.kv_dtype, cache.value(head, block, slot), valueDim,
             [&](int64_t d) { return v[head * valueDim + d]; });
}
