// The cases of one level: kernels forced inline over constant shapes, which is what the code
// generator does.
#define TK_KERNEL(name)                                                                            \
  static inline __attribute__((always_inline)) void name(const void *shape, void *const *io,       \
                                                         const tenon_env *env)
#include "Cases.h"
#include "attention.cpp"
#include "gated_mlp.cpp"
#include "linear.cpp"
#include "rope_attention.cpp"

namespace {

constexpr tk_linear_shape linear(int32_t format, int32_t k, int32_t n,
                                 int32_t norm = TK_NORM_NONE) {
  tk_linear_shape s = {};
  s.cols = s.x_stride = k;
  s.out_cols = s.out_stride = n;
  s.format = format;
  s.norm = norm;
  s.eps = 1e-5f;
  return s;
}
constexpr tk_attention_shape attention(int32_t decode, int32_t dtype) {
  tk_attention_shape s = {};
  s.heads = 9;
  s.kv_heads = 3;
  s.head_dim = 64;
  s.q_stride = s.out_stride = 576;
  s.kv_dtype = dtype;
  s.scale = 0.125f;
  s.decode = decode;
  return s;
}

template <int32_t Format, int32_t K, int32_t N, int32_t Norm>
__attribute__((noinline)) void runLinear(void *const *io, const tenon_env *env) {
  static constexpr tk_linear_shape shape = linear(Format, K, N, Norm);
  tk_linear(&shape, io, env);
}
template <int32_t Format, int32_t K, int32_t N, int32_t Norm = TK_NORM_NONE>
bench_case linearCase(const char *name, int32_t tokens) {
  tk_linear_shape shape = linear(Format, K, N);
  return {name,
          runLinear<Format, K, N, Norm>,
          tokens,
          0,
          tk_packed_bytes(Format, N, K),
          2.0 * K * N * tokens,
          tk_linear_scratch(&shape)};
}

constexpr tk_gated_mlp_shape gatedShape = {0,           576,   1536, TK_U4M, 576,         1536,
                                           TK_NORM_RMS, 1e-5f, 0,    0,      TK_ACT_SILU, 0};
__attribute__((noinline)) void runGated(void *const *io, const tenon_env *env) {
  tk_gated_mlp(&gatedShape, io, env);
}
bench_case gatedCase(const char *name, int32_t tokens) {
  return {name,
          runGated,
          tokens,
          0,
          tk_packed_bytes(TK_U4M, 3072, 576),
          2.0 * 576 * 3072 * tokens,
          tk_gated_mlp_scratch(&gatedShape)};
}

template <int32_t Decode, int32_t Dtype>
constexpr tk_attention_shape attentionShape = attention(Decode, Dtype);
template <int32_t Decode, int32_t Dtype>
__attribute__((noinline)) void runAttention(void *const *io, const tenon_env *env) {
  tk_attention(&attentionShape<Decode, Dtype>, io, env);
}
// Scores and sums for each (query, visible key) pair of 9 heads.
constexpr double attentionOperations(double tokens, double cached) {
  return 4.0 * 64 * 9 * (tokens * cached + tokens * (tokens + 1) / 2);
}
// `bytes` of the cache are read; each run reads those `advance` bytes behind the last one's.
template <int32_t Decode, int32_t Dtype>
bench_case attentionCase(const char *name, int32_t tokens, int32_t cached, int64_t bytes = 0,
                         int64_t advance = 0) {
  return {name,
          runAttention<Decode, Dtype>,
          tokens,
          cached,
          bytes,
          attentionOperations(tokens, cached),
          tk_attention_scratch(&attentionShape<Decode, Dtype>),
          advance};
}

const bench_case cases[] = {
    linearCase<TK_F32, 2048, 8192>("gemv f32", 1),
    linearCase<TK_BF16, 2048, 16384>("gemv bf16", 1),
    linearCase<TK_F16, 2048, 16384>("gemv f16", 1),
    linearCase<TK_U4M, 2048, 65536>("gemv u4m", 1),
    linearCase<TK_U8M, 2048, 32768>("gemv u8m", 1),
    linearCase<TK_S8, 2048, 32768>("gemv s8", 1),
    linearCase<TK_S8G16, 2048, 32768>("gemv s8g16", 1),
    linearCase<TK_U4MG16, 2048, 65536>("gemv u4mg16", 1),
    linearCase<TK_F32, 1536, 576>("gemm f32", 64),
    linearCase<TK_BF16, 1536, 576>("gemm bf16", 64),
    linearCase<TK_U4M, 1536, 576>("gemm u4m", 64),
    linearCase<TK_U8M, 1536, 576>("gemm u8m", 64),
    linearCase<TK_S8, 1536, 576>("gemm s8", 64),
    linearCase<TK_S8G16, 1536, 576>("gemm s8g16", 64),
    linearCase<TK_U4MG16, 1536, 576>("gemm u4mg16", 64),
    linearCase<TK_U4M, 1536, 576>("gemm u4m x2", 2),
    linearCase<TK_U4M, 1536, 576>("gemm u4m x8", 8),
    // SmolLM2-135M, one layer and the head, in cache
    linearCase<TK_U4M, 576, 960, TK_NORM_RMS>("smol qkv", 1),
    linearCase<TK_U4M, 576, 576>("smol o", 1),
    gatedCase("smol gate_up", 1),
    linearCase<TK_U4M, 1536, 576>("smol down", 1),
    linearCase<TK_U4M, 576, 49152, TK_NORM_RMS>("smol head", 1),
    gatedCase("smol gate_up", 64),
    attentionCase<0, TENON_BF16>("attention prefill", 512, 0),
    attentionCase<0, TENON_BF16>("attention prefill", 128, 1024),
    attentionCase<0, TENON_I8>("attention prefill i8", 128, 1024),
    attentionCase<1, TENON_BF16>("attention decode", 1, 127),
    attentionCase<1, TENON_BF16>("attention decode", 1, 4095),
    attentionCase<1, TENON_BF16>("attention decode", 1, 1023),
    attentionCase<1, TENON_I8>("attention decode i8", 1, 1023),
    attentionCase<1, TENON_BF16>("attention cold", 1, 1023, 2 * 2 * 192 * 1024, 3 << 20),
    attentionCase<1, TENON_I8>("attention cold i8", 1, 1023, 2 * (192 + 12) * 1024, 3 << 20),
};

} // namespace

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
extern "C" bench_level JOIN(bench_, LEVEL)() {
  return {cases, int32_t(sizeof cases / sizeof cases[0])};
}
