// tk_rope_attention (decode): rotates q and k, appends k and v, attends; one (sequence, kv head) at
// a time.
#include "attend_row.h"
#include "rotate.h"

TK_KERNEL(tk_rope_attention) {
  const auto &s = *(const tk_rope_attention_shape *)shape;
  const tk_attention_shape &base = s.attention;
  const float *q = (const float *)io[0], *k = (const float *)io[1], *v = (const float *)io[2];
  const float *angles = (const float *)io[3];
  void *const *next = io + 5;
  const float *bias = base.bias ? (const float *)*next++ : nullptr;
  const float *sinks = base.sinks ? (const float *)*next++ : nullptr;
  float *out = (float *)*next;
  int64_t dim = base.head_dim;
  attendBatch(base, io[4], bias, sinks, out, env, base.heads / base.kv_heads,
              [&](const RowAttention &a, int64_t row, bool append) __attribute__((always_inline)) {
                const float *angle = angles + row * s.angles_stride;
                for (int64_t i = 0; i < a.group; ++i) {
                  const float *x = q + row * base.q_stride + (a.firstQuery + i) * dim;
                  rotate(s.style, s.rotary_dim, dim, x, angle, a.keys);
                  setQuery(a, i, a.keys);
                }
                if (!append)
                  return;
                int64_t block = a.blocks[a.position / TENON_BLOCK_TOKENS];
                rotate(s.style, s.rotary_dim, dim, k + row * s.k_stride + a.head * dim, angle,
                       a.keys);
                appendKey(a.cache, block, a.head, a.position, a.keys);
                appendValue(a.cache, block, a.head, a.position,
                            v + row * s.v_stride + a.head * a.cache.valueDim);
              });
}
