// How a product x · Wᵀ is cut, in numbers that its kernels and their plans share. Plain C++.
//
// Columns are taken in steps of 32, one group of a quantised format. A span is a run of steps that
// one warp adds up from first to last, and a result is the sum of its spans, from first to last:
// whoever computes a row, and beside whom, gets the same bits.
//
//   K   [ step step step | step step step | ... ]      up to 16 spans
//         span 0           span 1
//
// Rows are prepared (normed, and in the form that the weights are multiplied with) as panels of R
// rows, 8 or 1, in which a step of all rows is one run of bytes:
//
//   quantised   [R][32] codes, [R][2] floats: scale, scale · Σ codes
//               (U4MG16: [R][4] floats: scale, scale · Σ of the first 16 codes, of the others, 0)
//   16 bits     [parts][R][32] 16-bit floats, whose sum is the activation; one part is its rounding
//   F32         [R][32] floats
//
// f16 has a small range, so a row is multiplied with a power of two in each span; behind the last
// step lie [spans][R] floats that undo it.
#ifndef TENON_CODEGEN_CUDA_KERNELS_PRODUCT_SHAPE_H
#define TENON_CODEGEN_CUDA_KERNELS_PRODUCT_SHAPE_H

#include "codegen/kernels/shapes.h"

#define TK_SPANS 16
#define TK_PANEL_ROWS 8

// Rows of a block of tk_..._few.
#define TK_FEW_ROWS 16

// The work of a block of tk_..._many is up to 4 pairs of tiles, two warps for each, and 64 rows, or
// 128 where registers are enough (device_model.h chooses).
#define TK_MANY_PAIRS 4
#define TK_MANY_ROWS 64
static inline int32_t tk_most_tile_rows(int32_t format, int32_t parts) {
  return tk_is_rows(format) && parts == 1 ? 128 : TK_MANY_ROWS;
}

// More rows than this are many.
#define TK_MOST_FEW_ROWS 64

// Whether activations are rounded to 16 bits beside weights of 16 bits, which @prefill may do.
static inline int32_t tk_rounds(int32_t may_round, int64_t rows) {
  return may_round && rows > TK_MOST_FEW_ROWS;
}

// How many 16-bit parts stand for an activation: enough for all bits of f32, or one.
static inline int32_t tk_parts(int32_t format, int32_t rounded) {
  return rounded ? 1 : format == TK_BF16_ROWS ? 3 : 2;
}

static inline int64_t tk_steps(int64_t cols) { return (cols + TK_GROUP - 1) / TK_GROUP; }
static inline int64_t tk_span_steps(int64_t cols) {
  int64_t steps = (tk_steps(cols) + TK_SPANS - 1) / TK_SPANS;
  return steps < 2 ? 2 : steps;
}
static inline int64_t tk_spans(int64_t cols) {
  return (tk_steps(cols) + tk_span_steps(cols) - 1) / tk_span_steps(cols);
}
static inline int64_t tk_span_end(int64_t cols, int64_t span) {
  int64_t end = (span + 1) * tk_span_steps(cols), steps = tk_steps(cols);
  return end < steps ? end : steps;
}
static inline int tk_spans_equal(int64_t cols) { return tk_steps(cols) % tk_span_steps(cols) == 0; }

// Floats beside the codes of a row's step.
static inline int64_t tk_step_numbers(int32_t format) { return format == TK_U4MG16 ? 4 : 2; }

// Bytes of a row's step, and of a whole row.
static inline int64_t tk_step_bytes(int32_t format, int32_t parts) {
  return tk_is_quantised(format) ? TK_GROUP + 4 * tk_step_numbers(format)
         : format == TK_F32      ? TK_GROUP * 4
                                 : TK_GROUP * 2 * parts;
}
static inline int64_t tk_prepared_bytes(int32_t format, int32_t parts, int64_t cols) {
  int64_t steps = tk_steps(cols) * tk_step_bytes(format, parts);
  return tk_round_up(format == TK_F16_ROWS ? steps + 4 * tk_spans(cols) : steps, 16);
}

// Steps that tk_..._many brings into shared memory at a time.
static inline int64_t tk_stage_steps(int32_t format) { return tk_is_quantised(format) ? 4 : 2; }

// Places of `slots` rows that are sorted by expert, those of each from a whole panel on; and the
// words of all lists about them (experts.cu).
static inline int64_t tk_expert_places(int64_t experts, int64_t slots) {
  return slots + experts * (TK_PANEL_ROWS - 1);
}
static inline int64_t tk_expert_list_length(int64_t experts, int64_t slots) {
  return 2 * experts + 1 + slots + tk_expert_places(experts, slots);
}

#endif // TENON_CODEGEN_CUDA_KERNELS_PRODUCT_SHAPE_H
