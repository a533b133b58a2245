// Kernels of Llama 3 8B with the shapes and threads that its plans have.
#include "kernels.cu"

#define EPS 0x3727c5ac   // 1e-5f
#define SCALE 0x3db504f3 // 1 / sqrt(128)

// norm, q, k and v: 4096 to 6144 columns
#define QKV(format, may_round)                                                                     \
  {TK_ROWS_TOKENS, 4096, 6144, format, 4096, 6144, TK_NORM_RMS, EPS, 0, 0, 0, 0, 0, may_round}
static constexpr int qkv_bf16[] = QKV(TK_BF16_ROWS, 0);
static constexpr int qkv_s8[] = QKV(TK_S8, 0);
static constexpr int qkv_u4m[] = QKV(TK_U4M, 0);
static constexpr int qkv_bf16_prefill[] = QKV(TK_BF16_ROWS, 1);
static constexpr int qkv_f16_prefill[] = QKV(TK_F16_ROWS, 1);
TK_SPECIALISE_EARLY(one_bf16, tk_linear_one, tk_linear_shape, 256, qkv_bf16)
TK_SPECIALISE_EARLY(one_s8, tk_linear_one, tk_linear_shape, 256, qkv_s8)
TK_SPECIALISE_EARLY(one_u4m, tk_linear_one, tk_linear_shape, 256, qkv_u4m)
TK_SPECIALISE(prepare_bf16, tk_linear_prepare, tk_linear_shape, 256, qkv_bf16_prefill)
TK_SPECIALISE(prepare_u4m, tk_linear_prepare, tk_linear_shape, 256, qkv_u4m)
TK_SPECIALISE(few_bf16, tk_linear_few, tk_linear_shape, 256, qkv_bf16)
TK_SPECIALISE(few_s8, tk_linear_few, tk_linear_shape, 256, qkv_s8)
TK_SPECIALISE(few_u4m, tk_linear_few, tk_linear_shape, 256, qkv_u4m)
TK_SPECIALISE(many_bf16, tk_linear_many, tk_linear_shape, 256, qkv_bf16_prefill)
TK_SPECIALISE(tall_bf16, tk_linear_many_tall, tk_linear_shape, 256, qkv_bf16_prefill)
TK_SPECIALISE(tall_f16, tk_linear_many_tall, tk_linear_shape, 256, qkv_f16_prefill)
TK_SPECIALISE(many_s8, tk_linear_many, tk_linear_shape, 256, qkv_s8)
TK_SPECIALISE(many_u4m, tk_linear_many, tk_linear_shape, 256, qkv_u4m)
TK_SPECIALISE(round_bf16, tk_linear_round, tk_linear_shape, 256, qkv_bf16_prefill)
TK_SPECIALISE(round_f16, tk_linear_round, tk_linear_shape, 256, qkv_f16_prefill)

// gate and up: 4096 to 2 x 14336 columns
#define MLP(format, may_round)                                                                     \
  {TK_ROWS_TOKENS, 4096, 14336, format, 4096, 14336, TK_NORM_RMS, EPS, 0, 0, TK_ACT_SILU, may_round}
static constexpr int mlp_bf16[] = MLP(TK_BF16_ROWS, 0);
static constexpr int mlp_u4m[] = MLP(TK_U4M, 0);
static constexpr int mlp_bf16_prefill[] = MLP(TK_BF16_ROWS, 1);
TK_SPECIALISE_EARLY(mlp_one_bf16, tk_gated_mlp_one, tk_gated_mlp_shape, 256, mlp_bf16)
TK_SPECIALISE_EARLY(mlp_one_u4m, tk_gated_mlp_one, tk_gated_mlp_shape, 256, mlp_u4m)
TK_SPECIALISE(mlp_tall_bf16, tk_gated_mlp_many_tall, tk_gated_mlp_shape, 256, mlp_bf16_prefill)
TK_SPECIALISE(mlp_finish_bf16, tk_gated_mlp_finish, tk_gated_mlp_shape, 256, mlp_bf16_prefill)

// attention of 32 heads of 128 over 8 of keys: @decode in 16 shares, @prefill
#define ATTENTION(decode, type, splits)                                                            \
  32, 8, 128, 6144, 4096, type, SCALE, 0, 0, decode, 8192, TK_KEYS_CONTEXT, 0, 0, 0, 0, 0, 0, 0,   \
      0, splits
#define ROPE 6144, 6144, 128, TK_ROPE_HALF, 128
static constexpr int decode[] = {ATTENTION(1, TENON_BF16, 16), ROPE};
static constexpr int prefill[] = {ATTENTION(0, TENON_BF16, 0)};
static constexpr int decode_s8[] = {ATTENTION(1, TENON_I8, 16), ROPE};
static constexpr int prefill_s8[] = {ATTENTION(0, TENON_I8, 0)};
TK_SPECIALISE(split, tk_rope_attention_split, tk_rope_attention_shape, 256, decode)
TK_SPECIALISE(split_s8, tk_rope_attention_split, tk_rope_attention_shape, 256, decode_s8)
TK_SPECIALISE(merge, tk_rope_attention_merge, tk_rope_attention_shape, 128, decode)
TK_SPECIALISE(tile, tk_attention_tile, tk_attention_shape, 128, prefill)
TK_SPECIALISE(tile_s8, tk_attention_tile, tk_attention_shape, 128, prefill_s8)

static constexpr int vocab[] = {128256};
TK_SPECIALISE(sample, tk_sample, tk_sample_shape, 1024, vocab)
