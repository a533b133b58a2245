// tk_rope_angles and tk_rope: rows over threads.
#include "rotate.h"
#include "vmath.h"

namespace {

// s^(1/m) for s >= 1 by Newton's method, from above: each step is nearer or the last.
TK_INLINE double rootOf(double s, int64_t m) {
  double root = 1 + (s - 1) / (double)m;
  for (int64_t step = 0; step < 200; ++step) {
    double power = 1;
    for (int64_t i = 1; i < m; ++i)
      power *= root;
    double next = root - (root - s / power) / (double)m;
    if (!(next < root))
      break;
    root = next;
  }
  return root;
}

} // namespace

TK_KERNEL(tk_rope_angles) {
  const auto &s = *(const tk_rope_angles_shape *)shape;
  const tenon_batch &batch = *env->batch;
  float *out = (float *)io[1];
  int64_t half = s.rotary_dim / 2;
  Range share = shareOf(batch.tokens, env);
  int64_t known = -1; // the sequence that `shrink` and `frequencies` are of
  const double *frequencies = (const double *)io[0];
  double shrink = 1; // of each frequency against the one before it
  for (int64_t t = share.begin; t < share.end; ++t) {
    if (s.original && batch.sequence_of[t] != known) {
      known = batch.sequence_of[t];
      int64_t length = batch.lengths[known];
      bool longer = length > s.original;
      if (s.dynamic == 0)
        frequencies = (const double *)io[0] + (longer ? half : 0);
      else
        shrink = longer
                     ? 1 / rootOf((double)s.dynamic * length / s.original - s.dynamic + 1, half - 1)
                     : 1;
    }
    double scale = 1;
    for (int64_t i = 0; i < half; i += 8) {
      int64_t n = least(8, half - i);
      DVec angle = 0, sine, cosine;
      for (int64_t j = 0; j < n; ++j) {
        angle[j] = frequencies[i + j] * scale;
        if (s.dynamic != 0)
          scale *= shrink;
      }
      sineCosine(angle * (double)batch.positions[t], sine, cosine);
      float *row = out + t * s.out_stride + i;
      for (int64_t j = 0; j < n; ++j) {
        row[j] = (float)(cosine[j] * s.factor);
        row[half + j] = (float)(sine[j] * s.factor);
      }
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
