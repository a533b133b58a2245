// tk_rope_angles and tk_rope: rows over threads.
#include "rotate.h"
#include "vmath.h"

TK_KERNEL(tk_rope_angles) {
  const auto &s = *(const tk_rope_angles_shape *)shape;
  const double *frequencies = (const double *)io[0];
  float *out = (float *)io[1];
  int64_t half = s.rotary_dim / 2;
  Range share = shareOf(env->batch->tokens, env);
  for (int64_t t = share.begin; t < share.end; ++t)
    for (int64_t i = 0; i < half; i += 8) {
      int64_t n = least(8, half - i);
      DVec angle = 0, sine, cosine;
      for (int64_t j = 0; j < n; ++j)
        angle[j] = frequencies[i + j];
      sineCosine(angle * (double)env->batch->positions[t], sine, cosine);
      float *row = out + t * s.out_stride + i;
      for (int64_t j = 0; j < n; ++j) {
        row[j] = (float)(cosine[j] * s.factor);
        row[half + j] = (float)(sine[j] * s.factor);
      }
    }
}

TK_KERNEL(tk_rope) {
  const auto &s = *(const tk_rope_shape *)shape;
  const float *x = (const float *)io[0], *angles = (const float *)io[1];
  float *out = (float *)io[2];
  Range share = shareOf(env->batch->tokens, env);
  for (int64_t t = share.begin; t < share.end; ++t)
    for (int64_t h = 0; h < s.heads; ++h) {
      const float *from = x + t * s.x_stride + h * s.head_dim;
      float *to = out + t * s.out_stride + h * s.head_dim;
      for (int64_t i = 0; i < s.first && to != from; i += 16)
        store(to + i, load(from + i, least(16, s.first - i)), least(16, s.first - i));
      rotate(s.style, s.rotary_dim, s.head_dim - s.first, from + s.first,
             angles + t * s.angles_stride, to + s.first);
    }
}
