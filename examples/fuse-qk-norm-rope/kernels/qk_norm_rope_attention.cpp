// qk_norm_rope_attention (decode): as Tenon's tk_rope_attention, with the norms before the
// rotation.
#include "attend_row.h"
#include "norm_rope.h"

TK_KERNEL(qk_norm_rope_attention) {
  const auto &s = *(const qk_norm_rope_attention_shape *)shape;
  const tk_rope_attention_shape &rope = s.rope;
  const tk_attention_shape &base = rope.attention;
  const float *q = (const float *)io[0], *k = (const float *)io[1], *v = (const float *)io[2];
  const float *angles = (const float *)io[3];
  float *partials = base.split ? (float *)io[6] : nullptr;
  void *const *weights = io + (base.split ? 7 : 6);
  int64_t dim = base.head_dim;
  auto normRope = [&](float eps, int64_t row, const float *x, const void *weight,
                      float *out) __attribute__((always_inline)) {
    float scale = scaleOf(sumOfSquares(x, dim), dim, eps)[0];
    scaleAndRotate(rope.style, rope.rotary_dim, dim, x, scale, (const float *)weight,
                   angles + row * rope.angles_stride, out);
  };
  attendBatch(base, io[4], (float *)io[5], partials, env,
              [&](const RowAttention &a, int64_t row, bool append) __attribute__((always_inline)) {
                for (int64_t i = 0; i < a.group; ++i) {
                  normRope(s.q_eps, row, q + row * base.q_stride + (a.head * a.group + i) * dim,
                           weights[0], a.keys);
                  setQuery(a, i, a.keys);
                }
                if (!append)
                  return;
                int64_t block = a.blocks[a.position / TENON_BLOCK_TOKENS];
                normRope(s.k_eps, row, k + row * rope.k_stride + a.head * dim, weights[1], a.keys);
                appendRow(a.cache, a.cache.keys(block, a.head), a.position, a.keys);
                appendRow(a.cache, a.cache.values(block, a.head), a.position,
                          v + row * rope.v_stride + a.head * dim);
              });
}
