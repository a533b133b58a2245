// The shape structs of the kernels, the order of their operands, and the scratch they need.
//
// The code generator makes one constant struct for each distinct (kernel, shape); every bound in it
// folds when the kernel is specialised. Conventions:
//
//   - activations are f32 and row-major; `*_stride` is the distance of two rows in elements, so an
//     operand may be a view into a wider buffer: its pointer is that of row 0, column 0 of the
//     view;
//   - `rows` chooses the number of rows: the batch's tokens or its scored rows;
//   - weights are packed (packed_layout.h), vectors (norm weights, biases) are PLAIN_F32;
//   - an operand in [brackets] is in `io` only if the field of the same name is set;
//   - a result may lie exactly on an operand of the same kernel (in place) where stated only;
//   - a kernel of one phase must not read what another kernel of the same stage writes.
#ifndef TENON_CODEGEN_KERNELS_SHAPES_H
#define TENON_CODEGEN_KERNELS_SHAPES_H

#include "codegen/kernels/packed_layout.h"
#include "runtime/kernel_abi.h"

enum tk_rows { TK_ROWS_TOKENS = 0, TK_ROWS_SCORED = 1 };

enum tk_norm_kind {
  TK_NORM_NONE = 0,
  TK_NORM_RMS = 1,          // x / sqrt(mean(x²) + eps) · w
  TK_NORM_RMS_PLUS_ONE = 2, // x / sqrt(mean(x²) + eps) · (1 + w)
  TK_NORM_LAYER = 3,        // (x - mean) / sqrt(var + eps) · w [+ b]
};

enum tk_activation_kind {
  TK_ACT_NONE = 0,
  TK_ACT_RELU = 1,
  TK_ACT_RELU2 = 2, // relu(x)²
  TK_ACT_SILU = 3,
  TK_ACT_GELU_ERF = 4,
  TK_ACT_GELU_TANH = 5,
  TK_ACT_QUICK_GELU = 6, // x · sigmoid(1.702 x)
  TK_ACT_SIGMOID = 7,
  TK_ACT_TANH = 8,
};

enum tk_rope_style {
  TK_ROPE_HALF = 0,        // pairs (i, i + rotary_dim / 2)
  TK_ROPE_INTERLEAVED = 1, // pairs (2i, 2i + 1)
};

enum tk_bias {
  TK_BIAS_NONE = 0,
  TK_BIAS_DISTANCE = 1, // by key position - query position
  TK_BIAS_KEY = 2,      // by key position
};

enum tk_group_score {
  TK_GROUP_LARGEST = 0,     // the largest score of the group
  TK_GROUP_LARGEST_TWO = 1, // the sum of the two largest
};

// ── tk_embedding ───────────────────────────────────────────────────────────────────────────────
// out[t] = scale · table[index[t] + offset], by ids, positions or types          io: table, out
enum tk_index { TK_INDEX_IDS = 0, TK_INDEX_POSITIONS = 1, TK_INDEX_TYPES = 2 };

typedef struct tk_embedding_shape {
  int32_t vocab; // rows of the table
  int32_t cols;
  int32_t format; // tk_format of the table
  int32_t out_stride;
  float scale;
  int32_t index;  // tk_index
  int32_t offset; // the row of index 0
} tk_embedding_shape;

// ── tk_linear ──────────────────────────────────────────────────────────────────────────────────
// out = act(norm(x) · Wᵀ + bias) + residual
// io: x, weight, [norm_weight], [norm_bias], [bias], [residual], out
// norm_weight is there iff norm != TK_NORM_NONE. `out` may lie on `residual`, and on no other
// operand.
typedef struct tk_linear_shape {
  int32_t rows;     // tk_rows
  int32_t cols;     // K
  int32_t out_cols; // N
  int32_t format;   // tk_format of W [N, K]
  int32_t x_stride;
  int32_t out_stride;
  int32_t norm; // tk_norm_kind
  float eps;
  int32_t norm_bias;  // 0 or 1; [K]
  int32_t bias;       // 0 or 1; [N]
  int32_t activation; // tk_activation_kind
  int32_t residual;   // 0 or 1; [rows, N]
  int32_t residual_stride;
  // 1: kernels may round what they do not round in @decode, and f32, bf16 or f16 weights may go
  // through the runtime's matrix product. Set it in @prefill only: without it a row's result does
  // not depend on the rows beside it, bit for bit, nor on the instructions that a CPU has for many
  // rows.
  int32_t may_round;
} tk_linear_shape;

// ── tk_gated_mlp ───────────────────────────────────────────────────────────────────────────────
// out = act(norm(x) · Wgᵀ + bg) ⊙ (norm(x) · Wuᵀ + bu)       W = [Wg; Wu] [2F, K]
// io: x, weight, [norm_weight], [norm_bias], [bias], out     bias = [bg; bu] [2F]
typedef struct tk_gated_mlp_shape {
  int32_t rows;
  int32_t cols;     // K
  int32_t out_cols; // F
  int32_t format;   // of W, packed as one matrix of 2F rows
  int32_t x_stride;
  int32_t out_stride;
  int32_t norm;
  float eps;
  int32_t norm_bias;
  int32_t bias;
  int32_t activation; // of the gate
  int32_t may_round;
} tk_gated_mlp_shape;

// ── tk_expert_linear ───────────────────────────────────────────────────────────────────────────
// Slot k of row t goes through the weight of expert e = choice[t, k], or e = k without a choice:
//   out[t, k] = W[e] x + b[e]        gated: act(W[e] x + b[e]) ⊙ (U[e] x + c[e])
// W and U are `experts` packed matrices [N, K], one after another; b and c [experts, N].
// io: x, [choice], weight, [bias], [gated: up], [gated and bias: up bias], out
//
// (row, slot) pairs are sorted by expert, so that a weight is read once for all that chose it; the
// threads share (expert, run of columns) pieces of equal cost.
typedef struct tk_expert_linear_shape {
  int32_t rows;
  int32_t experts;
  int32_t slots;
  int32_t cols;     // K
  int32_t out_cols; // N
  int32_t format;
  int32_t x_stride;
  int32_t shared; // 1: all slots read columns 0 .. K - 1; 0: slot k reads k K .. (k + 1) K - 1
  int32_t choice; // 0 or 1
  int32_t choice_stride;
  int32_t out_stride;
  int32_t bias;
  int32_t gated;
  int32_t activation; // of the gate
} tk_expert_linear_shape;

// Pairs that are sorted at a time.
#define TK_EXPERT_PAIRS 4096

// ── tk_top_k ───────────────────────────────────────────────────────────────────────────────────
// out[t] = the numbers of the `count` largest columns of x[t] + bias, the largest first; only in
// the `top_groups` best of `groups` equal groups.                            io: x, [bias], out
typedef struct tk_top_k_shape {
  int32_t rows;
  int32_t cols;
  int32_t count;
  int32_t groups; // 1: no groups
  int32_t top_groups;
  int32_t group_score; // tk_group_score
  int32_t bias;
  int32_t x_stride;
  int32_t out_stride;
} tk_top_k_shape;

// ── tk_gather_columns, tk_combine ──────────────────────────────────────────────────────────────
// tk_gather_columns: out[t, k] = x[t, y[t, k]]          y [rows, slots]                io: x, y,
// out tk_combine:        out[t] = Σ_k y[t, k] · x[t, k]     x [rows, slots, cols]          io: x,
// y, out
typedef struct tk_slots_shape {
  int32_t rows;
  int32_t slots;
  int32_t cols; // of x (tk_gather_columns), of out (tk_combine)
  int32_t x_stride;
  int32_t y_stride;
  int32_t out_stride;
} tk_slots_shape;

// ── tk_join_heads, tk_slice_heads ──────────────────────────────────────────────────────────────
// tk_join_heads:  out[t, h] = [a[t, h], b[t, h]]; heads of a_dim and b_dim         io: a, b, out
// tk_slice_heads: out[t, h] = a[t, h, first .. first + out_dim - 1]                io: a, out
typedef struct tk_heads_shape {
  int32_t rows;
  int32_t heads;
  int32_t a_dim;
  int32_t b_dim;   // tk_join_heads only
  int32_t first;   // tk_slice_heads only
  int32_t out_dim; // tk_slice_heads only
  int32_t a_stride;
  int32_t b_stride;
  int32_t out_stride;
} tk_heads_shape;

// ── tk_norm, tk_add_norm ───────────────────────────────────────────────────────────────────────
// tk_norm:      out = norm(x)                   io: x, weight, [bias], out            in place
// allowed tk_add_norm:  sum = x + y, out = norm(sum)    io: x, y, weight, [bias], sum, out    sum
// may lie on x or y A row is `groups` vectors of `cols` elements, each normed by itself with the
// same weight [cols] (groups > 1: q/k norm over heads).
typedef struct tk_norm_shape {
  int32_t rows;
  int32_t groups;
  int32_t cols;
  int32_t x_stride;
  int32_t y_stride;   // tk_add_norm only
  int32_t sum_stride; // tk_add_norm only
  int32_t out_stride;
  int32_t norm; // not TK_NORM_NONE
  float eps;
  int32_t bias;
} tk_norm_shape;

// ── tk_rope_angles ─────────────────────────────────────────────────────────────────────────────
// out[t] = factor · (cos(p·f[0]) ... cos(p·f[d/2-1]), sin(p·f[0]) ... sin(p·f[d/2-1])),  p =
// positions[t] io: inv_freq (PLAIN_F64 [d/2]), out [tokens, d]
//
// For sequences of L > original tokens: with `dynamic` F, f[i] · s^(-i / (d/2 - 1)) in place of
// f[i], s = F·L/original - F + 1; without, the second row of inv_freq [2, d/2].
typedef struct tk_rope_angles_shape {
  int32_t rotary_dim; // d, even
  int32_t out_stride;
  float factor;     // attention factor of YaRN and longrope, else 1
  int32_t original; // 0: none
  float dynamic;    // 0: none
} tk_rope_angles_shape;

// ── tk_rope ────────────────────────────────────────────────────────────────────────────────────
// Rotates rotary_dim elements of each head from element `first` on, copies the others.
// io: x [tokens, heads · head_dim], angles [tokens, rotary_dim], out      in place allowed
typedef struct tk_rope_shape {
  int32_t heads;
  int32_t head_dim;
  int32_t rotary_dim;
  int32_t style; // tk_rope_style
  int32_t x_stride;
  int32_t angles_stride;
  int32_t out_stride;
  int32_t first;
} tk_rope_shape;

// ── tk_kv_append ───────────────────────────────────────────────────────────────────────────────
// Writes k and v of every token to its place in the paged cache.     io: k, v, cache
typedef struct tk_kv_append_shape {
  int32_t kv_heads;
  int32_t head_dim;
  int32_t k_stride;
  int32_t v_stride;
  int32_t kv_dtype;       // tenon_dtype
  int32_t value_dim;      // 0: head_dim
  int32_t values_in_keys; // 1: v is the first elements of k, and is not stored; no v in io
  int32_t memory;         // 1: the cache is that of cross-attention
} tk_kv_append_shape;

// ── tk_attention ───────────────────────────────────────────────────────────────────────────────
// Key j is visible to the token at position p of the same sequence if p - window < j <= p.
// io: q [tokens, heads · head_dim], cache, [bias], [sinks [heads]],
//     out [tokens, heads · value_dim]
//
// `bias` is a table [heads, bias_length] (PLAIN_F32). What it has at
// clamp(x + bias_origin, 0, bias_length - 1) is added to a score behind scale and softcap, x being
// j - p or j. A sink is one more score of a head, to which no value belongs.
//
// With TK_KEYS_MEMORY the cache is that of the memory, all of which is visible. TK_KEYS_TOKENS is
// an encoder's: the keys and values are rows of the batch's own tokens, those of the whole sequence
// are visible, and io: q, k, v [tokens, kv_heads · head_dim], [bias], out. Neither has a window.
//
// The context is always cut into spans of TK_SPAN positions whose results are merged in order, so a
// row depends on its own length only. In decode, where rows and heads are few, threads share the
// spans of one (flash decoding) and meet at a barrier before merging.
enum tk_keys { TK_KEYS_CONTEXT = 0, TK_KEYS_MEMORY = 1, TK_KEYS_TOKENS = 2 };

typedef struct tk_attention_shape {
  int32_t heads;
  int32_t kv_heads; // divides heads; query head h reads kv head h / (heads / kv_heads)
  int32_t head_dim;
  int32_t q_stride;
  int32_t out_stride;
  int32_t kv_dtype;
  float scale;
  float softcap;    // 0: none
  int32_t window;   // 0: none
  int32_t decode;   // 1: @decode (one token for each sequence)
  int32_t context;  // the longest sequence, which scratch is sized for; 0: spans are not shared
  int32_t keys;     // tk_keys
  int32_t k_stride; // TK_KEYS_TOKENS
  int32_t v_stride;
  int32_t bias; // tk_bias
  int32_t bias_length;
  int32_t bias_origin;
  int32_t sinks;          // 0 or 1
  int32_t value_dim;      // 0: head_dim
  int32_t values_in_keys; // 1: a value is the first value_dim elements of its key
  int32_t splits;         // devices: shares of a row's spans, as their plan chose
} tk_attention_shape;

static inline int64_t tk_value_dim(int32_t head_dim, int32_t value_dim) {
  return value_dim ? value_dim : head_dim;
}

// ── tk_rope_attention ──────────────────────────────────────────────────────────────────────────
// @decode only: rotates q and k, appends k and v to the cache, attends. Each thread owns whole
// (sequence, kv head) pairs, or the last spans of them, so no barrier is needed in between.
// io: q, k, v, angles, cache, [bias], [sinks], out
typedef struct tk_rope_attention_shape {
  tk_attention_shape attention; // `decode` must be 1
  int32_t k_stride;
  int32_t v_stride;
  int32_t rotary_dim;
  int32_t style;
  int32_t angles_stride;
} tk_rope_attention_shape;

#define TK_SPAN 256

// ── element by element ─────────────────────────────────────────────────────────────────────────
// tk_activation, tk_scale, tk_softcap, tk_shift, tk_copy:   io: x, out      in place allowed
// tk_softmax, tk_normalise (each row by its sum):                     io: x, out      in place
// allowed tk_gather_rows: out[r] = x[scored_rows[r]]      io: x, out      (`rows` is not read)
typedef struct tk_unary_shape {
  int32_t rows;
  int32_t cols;
  int32_t x_stride;
  int32_t out_stride;
  int32_t activation; // tk_activation only
  float value; // tk_scale: the factor; tk_softcap: the cap c of c · tanh(x / c); tk_shift: the
               // summand
} tk_unary_shape;

// tk_clamp: out = min(max(x, low), high)      io: x, out      in place allowed
typedef struct tk_clamp_shape {
  int32_t rows;
  int32_t cols;
  int32_t x_stride;
  int32_t out_stride;
  float low;
  float high;
} tk_clamp_shape;

// tk_add, tk_mul:   io: a, b, out      in place allowed
typedef struct tk_binary_shape {
  int32_t rows;
  int32_t cols;
  int32_t a_stride;
  int32_t b_stride;
  int32_t out_stride;
} tk_binary_shape;

// ── tk_sample ──────────────────────────────────────────────────────────────────────────────────
// The next token of each scored row; on devices. io: logits, draws (tenon_draw), out (int32_t)
typedef struct tk_sample_shape {
  int32_t vocab; // columns of the logits
} tk_sample_shape;
#define TK_SAMPLE_WORDS (256 + 2) // of shared memory, 64 bits each

// ── scratch ────────────────────────────────────────────────────────────────────────────────────
// Bytes of env->scratch that a kernel uses; kernels that are not named here use none.

// Bytes of 32 activations in int8, with their scale and sums.
#define TK_ACTIVATION_GROUP_BYTES 48

// A row in scratch, as quantised weights or others want it.
static inline int64_t tk_scratch_row_bytes(int32_t format, int64_t cols) {
  int64_t padded = tk_round_up(cols, TK_GROUP);
  return tk_is_quantised(format) ? padded / TK_GROUP * TK_ACTIVATION_GROUP_BYTES : padded * 4;
}

// Rows that are brought into scratch at a time: what leaves room beside it in the second cache. A
// tile of weights is unpacked once for all of them.
#define TK_MOST_ROWS 256
static inline int64_t tk_row_block(int32_t format, int64_t cols) {
  int64_t rows = (384 << 10) / tk_scratch_row_bytes(format, cols) / 64 * 64;
  return rows < 64 ? 64 : rows > TK_MOST_ROWS ? TK_MOST_ROWS : rows;
}

// A row in f32, with zeros up to the 16 groups that are quantised at a time.
static inline int64_t tk_spare_row_bytes(int64_t cols) {
  return tk_round_up(cols, 16 * TK_GROUP) * 4;
}

// Rows and columns of one call of the runtime's matrix product.
static inline int64_t tk_matmul_rows(int64_t cols) {
  int64_t rows = (1 << 18) / cols / 16 * 16;
  return rows < 64 ? 64 : rows > 256 ? 256 : rows;
}
static inline int64_t tk_matmul_cols(int64_t cols) {
  int64_t n = (1 << 18) / cols / 16 * 16;
  return n < 16 ? 16 : n > 256 ? 256 : n;
}

static inline int64_t tk_product_scratch(int32_t format, int64_t cols, int32_t may_round,
                                         int parts) {
  // Rows, and one row in f32 for the norm before it is quantised.
  int64_t own =
      tk_row_block(format, cols) * tk_scratch_row_bytes(format, cols) + tk_spare_row_bytes(cols);
  if (!may_round || tk_is_quantised(format))
    return own;
  int64_t rows = tk_matmul_rows(cols), n = tk_matmul_cols(cols),
          padded = tk_round_up(cols, TK_GROUP);
  int64_t product = padded * 4 + rows * padded * 4 + (padded + parts * rows) * (n + 16) * 4;
  return own > product ? own : product;
}
static inline int64_t tk_linear_scratch(const tk_linear_shape *s) {
  return tk_product_scratch(s->format, s->cols, s->may_round, 1);
}
static inline int64_t tk_gated_mlp_scratch(const tk_gated_mlp_shape *s) {
  return tk_product_scratch(s->format, s->cols, s->may_round, 2);
}
static inline int64_t tk_expert_linear_scratch(const tk_expert_linear_shape *s) {
  // Rows, then the pairs in order and where those of each expert begin.
  int64_t pairs = s->slots > TK_EXPERT_PAIRS ? s->slots : TK_EXPERT_PAIRS;
  return tk_product_scratch(s->format, s->cols, 0, 1) +
         tk_round_up((pairs + s->experts + 1) * 4, 64);
}
static inline int64_t tk_top_k_scratch(const tk_top_k_shape *s) {
  return tk_round_up((tk_round_up(s->cols, 16) + s->groups) * 4, 64);
}

// Query rows (tokens × heads of a group) and keys that prefill takes at a time.
#define TK_ATTENTION_QUERIES 64
#define TK_ATTENTION_KEYS 64

// (row, kv head) pairs for each thread, fewer than which are cut between spans.
#define TK_SPLIT_PAIRS 4

// Decode: q, two results, a block of keys, scores; maxima and sums; p times scales.
static inline int64_t tk_attention_row_bytes(const tk_attention_shape *s) {
  int64_t dim = tk_round_up(s->head_dim, 16), group = s->heads / s->kv_heads;
  int64_t value = tk_round_up(tk_value_dim(s->head_dim, s->value_dim), 16);
  int64_t floats = (group + TENON_BLOCK_TOKENS) * dim + 2 * group * value + group * (TK_SPAN + 4);
  if (s->kv_dtype == TENON_I8)
    floats += 4 * 2 * TENON_BLOCK_TOKENS; // p times scales: of four queries and two groups
  return tk_round_up(floats * 4, 64);
}

// The result of one span for a group: value_dim sums, maximum and sum of each query.
static inline int64_t tk_attention_span_bytes(const tk_attention_shape *s) {
  return s->heads / s->kv_heads * (tk_value_dim(s->head_dim, s->value_dim) + 2) * 4;
}

static inline int64_t tk_attention_scratch(const tk_attention_shape *s) {
  int64_t dim = tk_round_up(s->head_dim, 16);
  int64_t value = tk_round_up(tk_value_dim(s->head_dim, s->value_dim), 16);
  if (s->decode) {
    int64_t spans = (s->context + TK_SPAN - 1) / TK_SPAN;
    if (s->window && s->window / TK_SPAN + 2 < spans)
      spans = s->window / TK_SPAN + 2;
    return tk_round_up(
        tk_attention_row_bytes(s) + TK_SPLIT_PAIRS * spans * tk_attention_span_bytes(s), 64);
  }
  // prefill: q, result, keys, values, scores; maxima, sums, positions.
  int64_t block = (TK_ATTENTION_QUERIES + TK_ATTENTION_KEYS) * (dim + value) +
                  TK_ATTENTION_QUERIES * (TK_ATTENTION_KEYS + 3);
  return tk_round_up(block * 4, 64);
}
static inline int64_t tk_rope_attention_scratch(const tk_rope_attention_shape *s) {
  return tk_attention_scratch(&s->attention);
}

#endif // TENON_CODEGEN_KERNELS_SHAPES_H
