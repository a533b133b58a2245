// qk_norm_rope: rows over threads, or heads when there are few rows.
#include "norm_rope.h"

// Some heads of one token.
TK_INLINE void normRope(const qk_norm_rope_shape &s, float eps, Range heads, const float *x,
                        const float *weight, const float *angles, float *out) {
  for (int64_t begin = heads.begin; begin < heads.end; begin += 16) {
    int64_t end = least(begin + 16, heads.end);
    float scale[16] = {};
    for (int64_t h = begin; h < end; ++h)
      scale[h - begin] = sumOfSquares(x + h * s.head_dim, s.head_dim);
    store(scale, scaleOf(load(scale), s.head_dim, eps));
    for (int64_t h = begin; h < end; ++h)
      scaleAndRotate(s.style, s.rotary_dim, s.head_dim, x + h * s.head_dim, scale[h - begin],
                     weight, angles, out + h * s.head_dim);
  }
}

TK_KERNEL(qk_norm_rope) {
  const auto &s = *(const qk_norm_rope_shape *)shape;
  int64_t tokens = env->batch->tokens;
  bool byRow = tokens >= env->threads;
  Range rows = byRow ? shareOf(tokens, env) : Range{0, tokens};
  auto run = [&](const qk_rows &set, int64_t row, const void *x, const void *weight,
                 void *out) __attribute__((always_inline)) {
    normRope(s, set.eps, byRow ? Range{0, set.heads} : shareOf(set.heads, env),
             (const float *)x + row * set.x_stride, (const float *)weight,
             (const float *)io[2] + row * s.angles_stride, (float *)out + row * set.out_stride);
  };
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    run(s.first, row, io[0], io[1], io[3]);
    if (s.second.heads)
      run(s.second, row, io[4], io[5], io[6]);
  }
}
