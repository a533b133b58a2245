// Launches of the kernels around attention.
//
// Decode: every row is cut into shares of its spans, and they are merged by a second launch,
// whatever its length is: a recorded sequence of launches serves a context that grows. Few rows
// take a block for each share, many rows several shares in one block; the bits are the same.
#ifndef TENON_CODEGEN_CUDA_KERNELS_PLAN_ATTENTION_H
#define TENON_CODEGEN_CUDA_KERNELS_PLAN_ATTENTION_H

#include "attention_cut.h"
#include "launch.h"

static inline tk_launch tk_token_launch(const char *function, int32_t threads, int32_t columns) {
  tk_launch launch = {};
  launch.function = function;
  launch.threads = threads;
  launch.columns = columns;
  launch.rows_per_block = 1;
  launch.rows = TK_ROWS_TOKENS;
  return launch;
}

static inline int tk_plan_rope_angles(const tk_rope_angles_shape &s, int, tk_launch *launches) {
  launches[0] = tk_token_launch("tk_rope_angles", s.rotary_dim <= 64 ? 32 : 64, 1);
  return 1;
}

static inline int tk_plan_rope(const tk_rope_shape &s, int, tk_launch *launches) {
  int32_t pieces = s.heads * (s.head_dim - s.rotary_dim / 2);
  launches[0] = tk_token_launch("tk_rope", 256, tk_divide_up(pieces, 256));
  return 1;
}

static inline int tk_plan_kv_append(const tk_kv_append_shape &s, int, tk_launch *launches) {
  int32_t threads = s.head_dim < 256 ? tk_divide_up(s.head_dim, 32) * 32 : 256;
  launches[0] = tk_token_launch("tk_kv_append", threads, s.kv_heads);
  return 1;
}

// `split` and `merge` name the kernels; `append` one that must come first where several blocks take
// the queries of a kv head.
static inline int tk_plan_split(const tk_attention_shape &s, const char *append, const char *split,
                                const char *merge, tk_launch *launches) {
  if (tk_value_dim(s.head_dim, s.value_dim) > 1024) // more than the registers of a block hold
    return 0;
  tk_split_cut cut = tk_cut_split(s);
  int32_t pieces = s.kv_heads * cut.runs;
  int count = 0;
  if (append && cut.runs > 1) {
    launches[count] = tk_token_launch(append, 128, s.kv_heads);
    launches[count++].shared_bytes = 4 * s.head_dim;
  }
  // Few rows: a block for each share. With many, a sixteenth will do.
  const int32_t rows[] = {8, 0}, fold[] = {1, 16};
  for (int i = 0; i < 2; ++i) {
    int32_t step = tk_divide_up(cut.splits, fold[i]);
    tk_launch &launch = launches[count++];
    launch = tk_token_launch(split, 32 * TK_SPLIT_WARPS, pieces * step);
    launch.shared_bytes = cut.sharedBytes;
    launch.least_rows = i ? rows[i - 1] + 1 : 0;
    launch.most_rows = step == 1 ? 0 : rows[i];
    if (step == 1)
      break;
  }
  if (cut.splits > 1) {
    launches[count++] = tk_token_launch(merge, 128, s.heads);
    for (int i = 0; i < count; ++i)
      launches[i].workspace_row_bytes = (int64_t)4 * cut.splits * s.heads * tk_split_floats(s);
  }
  return count;
}

static inline int tk_plan_attention(const tk_attention_shape &s, int, tk_launch *launches) {
  if (tk_attention_has_tiles(s)) {
    tk_tile_cut cut = tk_cut_tile(s);
    launches[0] =
        tk_token_launch("tk_attention_tile", cut.threads, s.kv_heads * cut.runs * TK_TILE_SHARES);
    launches[0].rows_per_block = cut.tokens;
    launches[0].shared_bytes = cut.sharedBytes;
    return 1;
  }
  return tk_plan_split(s, nullptr, "tk_attention_split", "tk_attention_merge", launches);
}

static inline int tk_plan_rope_attention(const tk_rope_attention_shape &s, int,
                                         tk_launch *launches) {
  return tk_plan_split(s.attention, "tk_rope_attention_append", "tk_rope_attention_split",
                       "tk_rope_attention_merge", launches);
}

#endif // TENON_CODEGEN_CUDA_KERNELS_PLAN_ATTENTION_H
