// tk_rope_angles and tk_rope: a block for each row, or several for many heads.
#include "rotate.h"

TK_DEVICE void tk_rope_angles(const tk_rope_angles_shape &s, const tk_args &args) {
  using namespace tk;
  const tenon_batch &batch = *args.batch;
  int64_t token = blockY();
  int32_t half = s.rotary_dim / 2;
  const double *frequencies = (const double *)args.io[0];
  float *out = (float *)args.io[1] + token * s.out_stride;
  double stretch = 1; // of the dynamic base
  if (s.original) {
    int32_t length = batch.lengths[batch.sequence_of[token]];
    if (length > s.original) {
      if (s.dynamic == 0)
        frequencies += half;
      else
        stretch = (double)s.dynamic * length / s.original - s.dynamic + 1;
    }
  }
  double position = batch.positions[token];
  for (int32_t i = threadIndex(); i < half; i += threadCount()) {
    double frequency = frequencies[i];
    if (stretch != 1)
      frequency *= power(stretch, -(double)i / (half - 1));
    double angle = frequency * position;
    out[i] = (float)(cosine(angle) * s.factor);
    out[half + i] = (float)(sine(angle) * s.factor);
  }
}

TK_DEVICE void tk_rope(const tk_rope_shape &s, const tk_args &args) {
  using namespace tk;
  int64_t token = blockY();
  const float *x = (const float *)args.io[0] + token * s.x_stride;
  const float *angles = (const float *)args.io[1] + token * s.angles_stride;
  float *out = (float *)args.io[2] + token * s.out_stride;
  // Pieces of a head: its first elements, then pairs, then those behind them.
  int32_t pieces = s.head_dim - s.rotary_dim / 2;
  bool copies = out != x;
  for (int64_t item = blockX() * threadCount() + threadIndex(); item < s.heads * pieces;
       item += gridX() * threadCount()) {
    int64_t head = item / pieces;
    int32_t piece = (int32_t)(item % pieces);
    const float *from = x + head * s.head_dim;
    float *to = out + head * s.head_dim;
    if (piece < s.first) {
      if (copies)
        to[piece] = from[piece];
      continue;
    }
    piece -= s.first;
    if (piece < s.rotary_dim / 2 || copies)
      rotatePiece(s.style, s.rotary_dim, from + s.first, angles, piece,
                  [&](int32_t d, float value) { to[s.first + d] = value; });
  }
}
