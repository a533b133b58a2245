// Every CUDA kernel as ordinary code for the emulator, with a shape that is no constant. Compiled
// with calls before every access (test/emulator/Races.h).
#include "CudaKernels.h"
#include "codegen/cuda/kernels/device.h"
#include <cstring>

#include "codegen/cuda/kernels/elementwise.cu"
#include "codegen/cuda/kernels/embedding.cu"
#include "codegen/cuda/kernels/norm.cu"
#include "codegen/cuda/kernels/routing.cu"
#include "codegen/cuda/kernels/sample.cu"
#define ELEMENTWISE(X)                                                                             \
  X(tk_embedding, tk_embedding_shape)                                                              \
  X(tk_add, tk_binary_shape)                                                                       \
  X(tk_mul, tk_binary_shape)                                                                       \
  X(tk_activation, tk_unary_shape)                                                                 \
  X(tk_scale, tk_unary_shape)                                                                      \
  X(tk_softcap, tk_unary_shape)                                                                    \
  X(tk_shift, tk_unary_shape)                                                                      \
  X(tk_clamp, tk_clamp_shape)                                                                      \
  X(tk_copy, tk_unary_shape)                                                                       \
  X(tk_gather_rows, tk_unary_shape)                                                                \
  X(tk_gather_columns, tk_slots_shape)                                                             \
  X(tk_combine, tk_slots_shape)                                                                    \
  X(tk_join_heads, tk_heads_shape)                                                                 \
  X(tk_slice_heads, tk_heads_shape)                                                                \
  X(tk_norm, tk_norm_shape)                                                                        \
  X(tk_add_norm, tk_norm_shape)                                                                    \
  X(tk_softmax, tk_unary_shape)                                                                    \
  X(tk_normalise, tk_unary_shape)                                                                  \
  X(tk_top_k, tk_top_k_shape)                                                                      \
  X(tk_sample, tk_sample_shape)

#include "codegen/cuda/kernels/experts.cu"
#include "codegen/cuda/kernels/gated_mlp.cu"
#include "codegen/cuda/kernels/linear.cu"
#define PRODUCTS(X)                                                                                \
  X(tk_linear_one, tk_linear_shape)                                                                \
  X(tk_linear_prepare, tk_linear_shape)                                                            \
  X(tk_linear_few, tk_linear_shape)                                                                \
  X(tk_linear_many, tk_linear_shape)                                                               \
  X(tk_linear_many_tall, tk_linear_shape)                                                          \
  X(tk_linear_round, tk_linear_shape)                                                              \
  X(tk_linear_finish, tk_linear_shape)                                                             \
  X(tk_gated_mlp_one, tk_gated_mlp_shape)                                                          \
  X(tk_gated_mlp_prepare, tk_gated_mlp_shape)                                                      \
  X(tk_gated_mlp_few, tk_gated_mlp_shape)                                                          \
  X(tk_gated_mlp_many, tk_gated_mlp_shape)                                                         \
  X(tk_gated_mlp_many_tall, tk_gated_mlp_shape)                                                    \
  X(tk_gated_mlp_round, tk_gated_mlp_shape)                                                        \
  X(tk_gated_mlp_finish, tk_gated_mlp_shape)                                                       \
  X(tk_expert_linear_one, tk_expert_linear_shape)                                                  \
  X(tk_expert_linear_sort, tk_expert_linear_shape)                                                 \
  X(tk_expert_linear_prepare, tk_expert_linear_shape)                                              \
  X(tk_expert_linear_many, tk_expert_linear_shape)

#include "codegen/cuda/kernels/attention.cu"
#include "codegen/cuda/kernels/kv_append.cu"
#include "codegen/cuda/kernels/rope.cu"
#include "codegen/cuda/kernels/rope_attention.cu"
#define ATTENTION(X)                                                                               \
  X(tk_rope_angles, tk_rope_angles_shape)                                                          \
  X(tk_rope, tk_rope_shape)                                                                        \
  X(tk_kv_append, tk_kv_append_shape)                                                              \
  X(tk_attention_split, tk_attention_shape)                                                        \
  X(tk_attention_tile, tk_attention_shape)                                                         \
  X(tk_attention_merge, tk_attention_shape)                                                        \
  X(tk_rope_attention_append, tk_rope_attention_shape)                                             \
  X(tk_rope_attention_split, tk_rope_attention_shape)                                              \
  X(tk_rope_attention_merge, tk_rope_attention_shape)

CudaKernel *findCudaKernel(const char *name) {
#define FIND(function, Shape)                                                                      \
  if (!std::strcmp(name, #function))                                                               \
    return [](const void *shape, const tk_args &args) {                                            \
      function(*static_cast<const Shape *>(shape), args);                                          \
    };
  ELEMENTWISE(FIND)
  PRODUCTS(FIND)
  ATTENTION(FIND)
#undef FIND
  return nullptr;
}
