// The constants of the plugin's kernels, and the order of their operands. See
// codegen/kernels/shapes.h for the conventions.
#ifndef QK_SHAPES_H
#define QK_SHAPES_H

#include "codegen/kernels/shapes.h"

// The queries or the keys.
typedef struct qk_rows {
  int32_t heads;
  int32_t x_stride;
  int32_t out_stride;
  float eps;
} qk_rows;

// ── qk_norm_rope ───────────────────────────────────────────────────────────────────────────────
// out = rope(rms_norm(x)) for one or two sets of rows.
// io: x, weight, angles, out                          (second.heads == 0)
//     x, weight, angles, out, y, y_weight, y_out
typedef struct qk_norm_rope_shape {
  qk_rows first;
  qk_rows second;
  int32_t head_dim;
  int32_t rotary_dim;
  int32_t style; // tk_rope_style
  int32_t angles_stride;
} qk_norm_rope_shape;

#endif // QK_SHAPES_H
