// Running kernels of every level on a team of threads, with ragged batches and a shuffled paged
// cache.
#ifndef TENON_TEST_KERNELS_KERNELS_H
#define TENON_TEST_KERNELS_KERNELS_H

#include "codegen/kernels/shapes.h"
#include "runtime/kernel_abi.h"
#include <gtest/gtest.h>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#define TENON_FOR_EACH_KERNEL(X)                                                                   \
  X(tk_embedding)                                                                                  \
  X(tk_linear)                                                                                     \
  X(tk_gated_mlp)                                                                                  \
  X(tk_norm)                                                                                       \
  X(tk_add_norm)                                                                                   \
  X(tk_rope_angles)                                                                                \
  X(tk_rope)                                                                                       \
  X(tk_kv_append)                                                                                  \
  X(tk_attention)                                                                                  \
  X(tk_rope_attention)                                                                             \
  X(tk_add)                                                                                        \
  X(tk_mul)                                                                                        \
  X(tk_activation)                                                                                 \
  X(tk_scale)                                                                                      \
  X(tk_softcap)                                                                                    \
  X(tk_shift)                                                                                      \
  X(tk_clamp)                                                                                      \
  X(tk_copy)                                                                                       \
  X(tk_softmax)                                                                                    \
  X(tk_normalise)                                                                                  \
  X(tk_top_k)                                                                                      \
  X(tk_gather_columns)                                                                             \
  X(tk_combine)                                                                                    \
  X(tk_join_heads)                                                                                 \
  X(tk_slice_heads)                                                                                \
  X(tk_expert_linear)                                                                              \
  X(tk_gather_rows)

struct Level {
  const char *name;
  bool emulated; // on a machine that is not this one
#define DECLARE(kernel) tenon_kernel *kernel;
  TENON_FOR_EACH_KERNEL(DECLARE)
#undef DECLARE
};
inline void PrintTo(const Level &level, std::ostream *out) { *out << level.name; }

// The levels that this CPU has, the best last. "amx" is among them on every CPU with AVX512-BF16.
const std::vector<Level> &availableLevels();

// A test that runs once for each level: `level()` has the kernels.
class KernelTest : public ::testing::TestWithParam<Level> {
protected:
  const Level &level() const { return GetParam(); }
  // Sizes of teams to try: those, or one where kernels leave it all to one thread.
  std::vector<int> teams(std::vector<int> sizes) const {
    return level().emulated ? std::vector<int>{1} : sizes;
  }
};
#define TENON_KERNEL_TEST_SUITE(suite)                                                             \
  INSTANTIATE_TEST_SUITE_P(, suite, ::testing::ValuesIn(availableLevels()),                        \
                           [](const auto &info) { return std::string(info.param.name); })

// A ragged batch: `counts` new tokens for each sequence after `cached` earlier ones, blocks
// shuffled.
class Batch {
public:
  Batch(std::vector<int32_t> counts, std::vector<int32_t> cached = {},
        std::vector<int32_t> scoredRows = {});
  explicit Batch(int32_t tokens) : Batch(std::vector<int32_t>{tokens}) {}
  Batch(const Batch &) = delete;

  const tenon_batch &get() const { return batch; }
  int32_t tokens() const { return batch.tokens; }
  int64_t blocks() const { return blockCount; }

  std::vector<int32_t> ids, positions, sequenceOf, starts, lengths, blockTable, scoredRows;
  int64_t memoryBlocks = 0; // of the pool of cross-attention

private:
  tenon_batch batch;
  int64_t blockCount;
};

// Runs a kernel on `threads` threads and checks that none wrote behind its scratch.
void runKernel(tenon_kernel *kernel, const void *shape, std::vector<const void *> io,
               const Batch &batch, int threads = 1, int64_t scratchBytes = 0, bool matmul = false);

// What the runtime's product does in tests: 0 works, 1 refuses.
extern int matmulAnswer;

std::vector<float> randomFloats(int64_t count, unsigned seed, float scale = 1);

// |got - want| <= tolerance · (|want| + the root mean square of all wanted values).
void expectNear(const std::vector<float> &got, const std::vector<double> &want, double tolerance);

#endif // TENON_TEST_KERNELS_KERNELS_H
