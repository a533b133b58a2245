// See LaunchPlan.h. One row for each kernel of codegen/kernels/shapes.h, in its order.
#include "codegen/cuda/LaunchPlan.h"
#include "codegen/cuda/kernels/plan_attention.h"
#include "codegen/cuda/kernels/plan_elementwise.h"
#include "codegen/cuda/kernels/plan_products.h"
#include "codegen/kernels/shapes.h"
#include <cassert>
#include <cstring>

namespace tenon::cuda {

namespace {

// Many rows may be rounded to the weights' 16 bits. Beside other weights that says nothing, and two
// kernels that differ in it alone are one.
template <typename Shape> void dropRounding(Shape &) {}
void dropRounding(tk_linear_shape &shape) { shape.may_round &= tk_is_rows(shape.format); }
void dropRounding(tk_gated_mlp_shape &shape) { shape.may_round &= tk_is_rows(shape.format); }

// A plan may complete its shape.
template <typename Shape, auto plan>
int planShape(std::vector<uint8_t> &bytes, int decode, tk_launch *launches) {
  assert(bytes.size() == sizeof(Shape));
  Shape shape;
  std::memcpy(&shape, bytes.data(), sizeof shape);
  dropRounding(shape);
  int count = plan(shape, decode, launches);
  std::memcpy(bytes.data(), &shape, sizeof shape);
  return count;
}

struct Row {
  const char *function, *shapeType;
  int (*plan)(std::vector<uint8_t> &, int, tk_launch *);
};

// clang-format off
#define KERNEL(name, shape) {"tk_" #name, #shape, planShape<shape, tk_plan_##name>}
constexpr Row rows[] = {
    KERNEL(embedding, tk_embedding_shape),
    KERNEL(linear, tk_linear_shape),
    KERNEL(gated_mlp, tk_gated_mlp_shape),
    KERNEL(expert_linear, tk_expert_linear_shape),
    KERNEL(top_k, tk_top_k_shape),
    KERNEL(gather_columns, tk_slots_shape),
    KERNEL(combine, tk_slots_shape),
    KERNEL(join_heads, tk_heads_shape),
    KERNEL(slice_heads, tk_heads_shape),
    KERNEL(norm, tk_norm_shape),
    KERNEL(add_norm, tk_norm_shape),
    KERNEL(rope_angles, tk_rope_angles_shape),
    KERNEL(rope, tk_rope_shape),
    KERNEL(kv_append, tk_kv_append_shape),
    KERNEL(attention, tk_attention_shape),
    KERNEL(rope_attention, tk_rope_attention_shape),
    KERNEL(activation, tk_unary_shape),
    KERNEL(scale, tk_unary_shape),
    KERNEL(softcap, tk_unary_shape),
    KERNEL(shift, tk_unary_shape),
    KERNEL(copy, tk_unary_shape),
    KERNEL(softmax, tk_unary_shape),
    KERNEL(normalise, tk_unary_shape),
    KERNEL(gather_rows, tk_unary_shape),
    KERNEL(clamp, tk_clamp_shape),
    KERNEL(add, tk_binary_shape),
    KERNEL(mul, tk_binary_shape),
    KERNEL(sample, tk_sample_shape),
};
#undef KERNEL
// clang-format on

} // namespace

std::optional<LaunchPlan> planLaunches(llvm::StringRef function, llvm::ArrayRef<uint8_t> shape,
                                       bool isDecode) {
  for (const Row &row : rows)
    if (function == row.function) {
      tk_launch launches[TK_MAX_LAUNCHES] = {};
      LaunchPlan plan{row.shapeType, shape.vec(), {}};
      int count = row.plan(plan.shape, isDecode, launches);
      plan.launches.assign(launches, launches + count);
      return count > 0 ? std::optional(std::move(plan)) : std::nullopt;
    }
  return std::nullopt;
}

} // namespace tenon::cuda
