// Which grids embedding, norms, routing, sampling and elementwise kernels run on.
#ifndef TENON_CODEGEN_CUDA_KERNELS_PLAN_ELEMENTWISE_H
#define TENON_CODEGEN_CUDA_KERNELS_PLAN_ELEMENTWISE_H

#include "codegen/kernels/shapes.h"
#include "launch.h"

// A row for each y, an element for each thread in x.
static inline int tk_plan_elements(const char *function, int32_t rows, int64_t cols,
                                   tk_launch *launches) {
  tk_launch launch = {};
  launch.function = function;
  launch.threads = cols < 256 ? (int32_t)tk_round_up(cols, 32) : 256;
  launch.columns = (int32_t)((cols + launch.threads - 1) / launch.threads);
  launch.rows_per_block = 1;
  launch.rows = rows;
  launches[0] = launch;
  return 1;
}

// A block of threads for each vector of `cols`, of which a row has `vectors`.
static inline int tk_plan_vectors(const char *function, int32_t rows, int32_t vectors, int64_t cols,
                                  tk_launch *launches) {
  tk_launch launch = {};
  launch.function = function;
  launch.threads = (int32_t)tk_round_up(cols < 512 ? cols : 512, 32);
  launch.columns = vectors;
  launch.rows_per_block = 1;
  launch.rows = rows;
  launch.shared_bytes = 2 * launch.threads / 32 * 4; // two sums of its warps
  launches[0] = launch;
  return 1;
}

static inline int tk_plan_embedding(const tk_embedding_shape &s, int, tk_launch *launches) {
  return tk_plan_elements("tk_embedding", TK_ROWS_TOKENS, s.cols, launches);
}
static inline int tk_plan_add(const tk_binary_shape &s, int, tk_launch *launches) {
  return tk_plan_elements("tk_add", s.rows, s.cols, launches);
}
static inline int tk_plan_mul(const tk_binary_shape &s, int, tk_launch *launches) {
  return tk_plan_elements("tk_mul", s.rows, s.cols, launches);
}
static inline int tk_plan_activation(const tk_unary_shape &s, int, tk_launch *launches) {
  return tk_plan_elements("tk_activation", s.rows, s.cols, launches);
}
static inline int tk_plan_scale(const tk_unary_shape &s, int, tk_launch *launches) {
  return tk_plan_elements("tk_scale", s.rows, s.cols, launches);
}
static inline int tk_plan_softcap(const tk_unary_shape &s, int, tk_launch *launches) {
  return tk_plan_elements("tk_softcap", s.rows, s.cols, launches);
}
static inline int tk_plan_shift(const tk_unary_shape &s, int, tk_launch *launches) {
  return tk_plan_elements("tk_shift", s.rows, s.cols, launches);
}
static inline int tk_plan_clamp(const tk_clamp_shape &s, int, tk_launch *launches) {
  return tk_plan_elements("tk_clamp", s.rows, s.cols, launches);
}
static inline int tk_plan_copy(const tk_unary_shape &s, int, tk_launch *launches) {
  return tk_plan_elements("tk_copy", s.rows, s.cols, launches);
}
static inline int tk_plan_gather_rows(const tk_unary_shape &s, int, tk_launch *launches) {
  return tk_plan_elements("tk_gather_rows", TK_ROWS_SCORED, s.cols, launches);
}
static inline int tk_plan_gather_columns(const tk_slots_shape &s, int, tk_launch *launches) {
  return tk_plan_elements("tk_gather_columns", s.rows, s.slots, launches);
}
static inline int tk_plan_combine(const tk_slots_shape &s, int, tk_launch *launches) {
  return tk_plan_elements("tk_combine", s.rows, s.cols, launches);
}
static inline int tk_plan_join_heads(const tk_heads_shape &s, int, tk_launch *launches) {
  return tk_plan_elements("tk_join_heads", s.rows, (int64_t)s.heads * (s.a_dim + s.b_dim),
                          launches);
}
static inline int tk_plan_slice_heads(const tk_heads_shape &s, int, tk_launch *launches) {
  return tk_plan_elements("tk_slice_heads", s.rows, (int64_t)s.heads * s.out_dim, launches);
}
static inline int tk_plan_norm(const tk_norm_shape &s, int, tk_launch *launches) {
  return tk_plan_vectors("tk_norm", s.rows, s.groups, s.cols, launches);
}
static inline int tk_plan_add_norm(const tk_norm_shape &s, int, tk_launch *launches) {
  return tk_plan_vectors("tk_add_norm", s.rows, s.groups, s.cols, launches);
}
static inline int tk_plan_softmax(const tk_unary_shape &s, int, tk_launch *launches) {
  return tk_plan_vectors("tk_softmax", s.rows, 1, s.cols, launches);
}
static inline int tk_plan_normalise(const tk_unary_shape &s, int, tk_launch *launches) {
  return tk_plan_vectors("tk_normalise", s.rows, 1, s.cols, launches);
}
static inline int tk_plan_top_k(const tk_top_k_shape &s, int, tk_launch *launches) {
  tk_plan_vectors("tk_top_k", s.rows, 1, 32, launches);
  launches[0].shared_bytes = (int64_t)(s.cols + s.groups) * 4;
  return 1;
}

static inline int tk_plan_sample(const tk_sample_shape &s, int, tk_launch *launches) {
  tk_plan_vectors("tk_sample", TK_ROWS_SCORED, 1, s.vocab, launches);
  launches[0].threads = (int32_t)tk_round_up(s.vocab < 1024 ? s.vocab : 1024, 32);
  launches[0].shared_bytes = TK_SAMPLE_WORDS * 8;
  return 1;
}

#endif // TENON_CODEGEN_CUDA_KERNELS_PLAN_ELEMENTWISE_H
