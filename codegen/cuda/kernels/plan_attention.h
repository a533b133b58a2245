// Launches of the kernels around attention.
//
// Decode: every row is cut into shares of its spans, and they are merged by a second launch,
// whatever its length is: a recorded sequence of launches serves a context that grows. Few rows
// take a block for each share, many rows several shares in one block; the bits are the same.
#ifndef TENON_CODEGEN_CUDA_KERNELS_PLAN_ATTENTION_H
#define TENON_CODEGEN_CUDA_KERNELS_PLAN_ATTENTION_H

#include "attention_cut.h"
#include "device_model.h"
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

// Bytes of the cache for each position of a kv head.
static inline double tk_position_bytes(const tk_attention_shape &s) {
  double element = s.kv_dtype == TENON_F32  ? 4
                   : s.kv_dtype == TENON_I8 ? 1 + 2.0 / TENON_CACHE_GROUP
                                            : 2;
  int64_t values = s.values_in_keys ? 0 : tk_value_dim(s.head_dim, s.value_dim);
  return element * (double)(s.head_dim + values);
}

// What the shares of one row take: those of the busiest processor, or the memory.
static inline double tk_split_seconds(const tk_device &d, const tk_attention_shape &s, int32_t runs,
                                      int32_t spans, int32_t splits) {
  const double span = TK_SPAN * tk_position_bytes(s);
  const int32_t shares = splits < spans ? splits : spans; // which have work
  const int32_t turns = tk_divide_up(s.kv_heads * runs * shares, d.processors);
  double processor = turns * tk_divide_up(spans, splits) * span / d.stream;
  double memory = s.kv_heads * spans * span / d.memory;
  double merge = splits > 1 ? d.launch + splits * d.merge : 0;
  return tk_largest(processor, memory) + d.launch + merge;
}

#define TK_MOST_SPLITS 64 // and all powers of two below

// How much longer than with the best number of shares a row takes, at the worst of 1024, 2048, 4096,
// ... positions and the longest: 1 if it is the best for all.
static inline double tk_split_regret(const tk_attention_shape &s, int32_t runs, int32_t spans,
                                     int32_t splits) {
  double worst = 1;
  int32_t seen = spans < 4 ? spans : 4;
  for (bool isLast = false; !isLast; seen = 2 * seen < spans ? 2 * seen : spans) {
    isLast = seen == spans;
    const double own = tk_split_seconds(tk_h200(), s, runs, seen, splits);
    for (int32_t other = 1; other <= TK_MOST_SPLITS; other *= 2)
      worst = tk_largest(worst, own / tk_split_seconds(tk_h200(), s, runs, seen, other));
  }
  return worst;
}

// Shares of a row's spans, no more than there are. Of a memory's length nothing is known, and 8192 is
// taken.
static inline int32_t tk_choose_splits(const tk_attention_shape &s, int32_t runs) {
  if (!s.decode || s.keys == TK_KEYS_TOKENS)
    return 1;
  int32_t spans = s.context && s.keys == TK_KEYS_CONTEXT ? tk_divide_up(s.context, TK_SPAN) : 32;
  if (s.window && s.window / TK_SPAN + 2 < spans)
    spans = s.window / TK_SPAN + 2;
  int32_t best = 1;
  for (int32_t splits = 2; splits <= TK_MOST_SPLITS; splits *= 2)
    if (tk_split_regret(s, runs, spans, splits) < tk_split_regret(s, runs, spans, best))
      best = splits;
  return best < spans ? best : spans;
}

// `split` and `merge` name the kernels; `append` one that must come first where several blocks take
// the queries of a kv head. Chooses the shape's shares.
static inline int tk_plan_split(tk_attention_shape &s, const char *append, const char *split,
                                const char *merge, tk_launch *launches) {
  if (tk_value_dim(s.head_dim, s.value_dim) > 1024) // more than the registers of a block hold
    return 0;
  s.splits = tk_choose_splits(s, tk_cut_split(s).runs);
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

static inline int tk_plan_attention(tk_attention_shape &s, int, tk_launch *launches) {
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

static inline int tk_plan_rope_attention(tk_rope_attention_shape &s, int, tk_launch *launches) {
  return tk_plan_split(s.attention, "tk_rope_attention_append", "tk_rope_attention_split",
                       "tk_rope_attention_merge", launches);
}

#endif // TENON_CODEGEN_CUDA_KERNELS_PLAN_ATTENTION_H
