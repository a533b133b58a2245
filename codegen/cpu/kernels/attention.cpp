// tk_attention: paged attention with causal visibility by position, grouped queries, an optional
// window, softcap and score bias; over an encoder's memory, and bidirectional over the batch's own
// rows. Decode attends one row at a time, prefill blocks of rows.
#include "attend_block.h"
#include "attend_row.h"

TK_KERNEL(tk_attention) {
  const auto &s = *(const tk_attention_shape *)shape;
  const float *q = (const float *)io[0];
  bool isCached = s.keys != TK_KEYS_TOKENS;
  void *const *next = io + (isCached ? 2 : 3);
  const float *bias = s.bias ? (const float *)*next++ : nullptr;
  const float *sinks = s.sinks ? (const float *)*next++ : nullptr;
  float *out = (float *)*next++;
  if (s.decode && isCached) {
    attendBatch(s, io[1], bias, sinks, out, env, queriesOfThread(s, env),
                [&](const RowAttention &a, int64_t row, bool) __attribute__((always_inline)) {
                  for (int64_t i = 0; i < a.group; ++i)
                    setQuery(a, i, q + row * s.q_stride + (a.firstQuery + i) * s.head_dim);
                });
    return;
  }
  KeyRows source = {io[1]};
  if (!isCached)
    source = {nullptr, {(const float *)io[1], (const float *)io[2]}};
  // Blocks are dealt out in turn, since later ones of a sequence see more keys.
  int64_t group = s.heads / s.kv_heads, item = 0;
  for (int64_t sequence = 0; sequence < env->batch->sequences; ++sequence) {
    int64_t rows = (env->batch->starts[sequence + 1] - env->batch->starts[sequence]) * group;
    for (int64_t first = 0; first < rows; first += Queries)
      for (int64_t head = 0; head < s.kv_heads; ++head)
        if (item++ % env->threads == env->thread)
          attendBlock(s, q, source, bias, sinks, out, env, sequence, head, first,
                      least(Queries, rows - first));
  }
}
