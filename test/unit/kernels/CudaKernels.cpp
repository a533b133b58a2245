#include "CudaKernels.h"
#include "Kernels.h"
#include "codegen/cuda/kernels/device.h"
#include "codegen/cuda/kernels/plan_attention.h"
#include "codegen/cuda/kernels/plan_elementwise.h"
#include "codegen/cuda/kernels/plan_products.h"
#include "ir/Storage.h"
#include "test/emulator/Emulator.h"
#include "test/emulator/Memory.h"
#include <algorithm>
#include <cstring>
#include <vector>

using namespace tenon;

namespace {

// What the compiler knows from the phase: shapes tell it, or else the batch.
bool isDecode(const tk_linear_shape &s, const tenon_batch &) { return !s.may_round; }
bool isDecode(const tk_gated_mlp_shape &s, const tenon_batch &) { return !s.may_round; }
bool isDecode(const tk_attention_shape &s, const tenon_batch &) { return s.decode; }
bool isDecode(const tk_rope_attention_shape &s, const tenon_batch &) { return s.attention.decode; }
template <typename Shape> bool isDecode(const Shape &, const tenon_batch &batch) {
  return batch.tokens == batch.sequences;
}

// The parameters of a launch. On a device the shape is a constant of the code.
struct Call {
  CudaKernel *kernel;
  bool early;
  tk_args args;
  alignas(16) char shape[256];
};

void runLaunch(const tk_launch &launch, const Call &parameters, int64_t rows) {
  Call call = parameters;
  call.kernel = findCudaKernel(launch.function);
  call.early = launch.early != 0;
  ASSERT_NE(call.kernel, nullptr) << launch.function << " is not in cuda_kernels.cpp";
  emulator::Grid grid;
  grid.name = launch.function;
  grid.columns = launch.columns;
  grid.rows = tenon_grid_height(&launch, rows);
  grid.threads = launch.threads;
  grid.sharedBytes = launch.shared_bytes;
  grid.beginsEarly = true;
  grid.constants = &call;
  grid.constantBytes = sizeof call;
  // Whose turn it is must not matter: every launch is run in another order than the last.
  static uint64_t launches = 0;
  emulator::Schedule schedule = {emulator::Order(launches % 3), launches};
  ++launches;
  std::string error = emulator::run(
      grid,
      [](const void *parameters) {
        auto *call = static_cast<const Call *>(parameters);
        if (!call->early)
          tk::awaitLaunch(); // as TK_SPECIALISE does
        call->kernel(call->shape, call->args);
      },
      &call, schedule);
  EXPECT_EQ(error, "");
}

// What the device's library would do.
void runProduct(const tenon_product &product, const tk_args &args, int64_t rows) {
  auto value = [&](const void *from, int64_t i) {
    uint16_t bits = static_cast<const uint16_t *>(from)[i];
    return product.dtype == TENON_BF16 ? bfloatToFloat(bits) : halfToFloat(bits);
  };
  const char *results = args.workspace + tenon_product_at(rows, product.depth);
  auto *out = (float *)(product.out < 0 ? results : args.io[product.out]);
  auto *add = product.add < 0 ? nullptr : static_cast<const float *>(args.io[product.add]);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < product.cols; ++c) {
      double sum = add ? add[r * product.add_stride + c] : 0;
      for (int64_t k = 0; k < product.depth; ++k)
        sum += double(value(args.workspace, r * product.depth + k)) *
               value(args.io[product.weight], c * product.depth + k);
      out[r * product.out_stride + c] = float(sum);
    }
}

// The launches of a stage, one after another, in a workspace of their own.
template <typename Shape>
void runLaunches(const std::vector<tk_launch> &launches, const Shape &shape, void *const *io,
                 const tenon_env &env) {
  const tenon_batch &batch = *env.batch;
  auto rowsOf = [&](const tk_launch &launch) {
    return int64_t(launch.rows == TK_ROWS_SCORED ? batch.scored : batch.tokens);
  };
  int64_t bytes = 0;
  for (const tk_launch &launch : launches)
    bytes = std::max(bytes, tenon_workspace_bytes(&launch, rowsOf(launch)));
  emulator::GuardedBytes workspace(size_t(bytes), 256, true);
  std::memset(workspace.begin(), 0xff, workspace.size());

  Call call = {};
  static_assert(sizeof shape <= sizeof call.shape);
  std::memcpy(call.shape, &shape, sizeof shape);
  tk_args &args = call.args;
  std::copy_n(io, TENON_LAUNCH_OPERANDS, args.io);
  args.batch = env.batch;
  args.cache_blocks = env.cache_blocks;
  args.memory_blocks = env.memory_blocks;
  args.workspace = workspace.begin();
  for (const tk_launch &launch : launches) {
    int64_t rows = rowsOf(launch);
    if (!tenon_is_launched(&launch, rows, /*has_library=*/1))
      continue;
    if (launch.product.cols)
      runProduct(launch.product, args, rows);
    else
      runLaunch(launch, call, rows);
  }
  EXPECT_EQ(workspace.overwritten(), nullptr) << "written outside of the workspace";
}

// A tenon_kernel: thread 0 does it all.
template <auto plan, typename Shape>
void runPlan(const void *shape, void *const *io, const tenon_env *env) {
  if (env->thread != 0)
    return;
  Shape s = *static_cast<const Shape *>(shape);
  tk_launch launches[TK_MAX_LAUNCHES] = {};
  int count = plan(s, isDecode(s, *env->batch), launches);
  ASSERT_TRUE(count > 0 && count <= TK_MAX_LAUNCHES);
  runLaunches({launches, launches + count}, s, io, *env);
}

template <auto productOf, typename Shape>
int planByLibrary(const Shape &shape, int, tk_launch *launches) {
  return tk_plan_library(productOf(shape), /*library_rows=*/1, launches);
}

} // namespace

Level emulatedCudaLevel() {
  Level level = {};
  level.name = "cuda";
  level.emulated = true;
#define PLAN(name, Shape) level.tk_##name = runPlan<tk_plan_##name, Shape>;
  PLAN(embedding, tk_embedding_shape)
  PLAN(norm, tk_norm_shape)
  PLAN(add_norm, tk_norm_shape)
  PLAN(add, tk_binary_shape)
  PLAN(mul, tk_binary_shape)
  PLAN(activation, tk_unary_shape)
  PLAN(scale, tk_unary_shape)
  PLAN(softcap, tk_unary_shape)
  PLAN(shift, tk_unary_shape)
  PLAN(clamp, tk_clamp_shape)
  PLAN(copy, tk_unary_shape)
  PLAN(softmax, tk_unary_shape)
  PLAN(normalise, tk_unary_shape)
  PLAN(top_k, tk_top_k_shape)
  PLAN(gather_columns, tk_slots_shape)
  PLAN(combine, tk_slots_shape)
  PLAN(join_heads, tk_heads_shape)
  PLAN(slice_heads, tk_heads_shape)
  PLAN(gather_rows, tk_unary_shape)
  PLAN(linear, tk_linear_shape)
  PLAN(gated_mlp, tk_gated_mlp_shape)
  PLAN(expert_linear, tk_expert_linear_shape)
  PLAN(rope_angles, tk_rope_angles_shape)
  PLAN(rope, tk_rope_shape)
  PLAN(kv_append, tk_kv_append_shape)
  PLAN(attention, tk_attention_shape)
  PLAN(rope_attention, tk_rope_attention_shape)
#undef PLAN
  return level;
}

tenon_kernel *emulatedLinearByLibrary() {
  return runPlan<planByLibrary<tk_linear_product, tk_linear_shape>, tk_linear_shape>;
}
tenon_kernel *emulatedGatedMlpByLibrary() {
  return runPlan<planByLibrary<tk_gated_mlp_product, tk_gated_mlp_shape>, tk_gated_mlp_shape>;
}

tenon_kernel *emulatedSample() { return runPlan<tk_plan_sample, tk_sample_shape>; }
