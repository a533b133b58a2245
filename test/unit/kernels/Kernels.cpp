#include "Kernels.h"
#include "CudaKernels.h"
#include "Tiles.h"
#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>

#define DECLARE(kernel)                                                                            \
  extern "C" tenon_kernel kernel##_generic, kernel##_avx2, kernel##_avx512, kernel##_avx512bf16,   \
      kernel##_amx;
TENON_FOR_EACH_KERNEL(DECLARE)
#undef DECLARE

const std::vector<Level> &availableLevels() {
  static const std::vector<Level> levels = [] {
    std::vector<Level> result;
#define GENERIC(kernel) kernel##_generic,
#define AVX2(kernel) kernel##_avx2,
#define AVX512(kernel) kernel##_avx512,
#define AVX512BF16(kernel) kernel##_avx512bf16,
#define AMX(kernel) kernel##_amx,
    result.push_back({"generic", false, TENON_FOR_EACH_KERNEL(GENERIC)});
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
      result.push_back({"avx2", false, TENON_FOR_EACH_KERNEL(AVX2)});
    if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw"))
      result.push_back({"avx512", false, TENON_FOR_EACH_KERNEL(AVX512)});
    if (__builtin_cpu_supports("avx512bf16")) {
      enableTiles();
      result.push_back({"avx512bf16", false, TENON_FOR_EACH_KERNEL(AVX512BF16)});
      result.push_back({"amx", false, TENON_FOR_EACH_KERNEL(AMX)});
    }
    result.push_back(emulatedCudaLevel());
    return result;
  }();
  return levels;
}

Batch::Batch(std::vector<int32_t> counts, std::vector<int32_t> cached,
             std::vector<int32_t> scoredRows)
    : scoredRows(std::move(scoredRows)) {
  int32_t sequences = int32_t(counts.size()), maxBlocks = 1;
  cached.resize(sequences, 0);
  starts.push_back(0);
  for (int32_t s = 0; s < sequences; ++s) {
    for (int32_t i = 0; i < counts[s]; ++i) {
      ids.push_back(int32_t(ids.size() * 37 % 101));
      positions.push_back(cached[s] + i);
      sequenceOf.push_back(s);
    }
    starts.push_back(int32_t(ids.size()));
    lengths.push_back(cached[s] + counts[s]);
    maxBlocks = std::max(maxBlocks, (lengths[s] + TENON_BLOCK_TOKENS - 1) / TENON_BLOCK_TOKENS);
  }
  blockCount = sequences * maxBlocks;
  blockTable.resize(blockCount);
  std::iota(blockTable.begin(), blockTable.end(), 0);
  std::shuffle(blockTable.begin(), blockTable.end(), std::mt19937(7));
  batch = {int32_t(ids.size()),
           sequences,
           int32_t(this->scoredRows.size()),
           maxBlocks,
           ids.data(),
           positions.data(),
           sequenceOf.data(),
           starts.data(),
           lengths.data(),
           blockTable.data(),
           this->scoredRows.data(),
           nullptr,
           nullptr,
           nullptr,
           0};
}

namespace {

struct Team {
  std::mutex mutex;
  std::condition_variable arrived;
  int waiting = 0, round = 0;
};

void barrier(const tenon_env *env) {
  Team &team = *static_cast<Team *>(env->team);
  std::unique_lock<std::mutex> lock(team.mutex);
  int round = team.round;
  if (++team.waiting == env->threads) {
    team.waiting = 0;
    ++team.round;
    team.arrived.notify_all();
  }
  team.arrived.wait(lock, [&] { return team.round != round; });
}

float readAs(tenon_dtype type, const void *data, int64_t index) {
  if (type == TENON_F32)
    return static_cast<const float *>(data)[index];
  uint32_t bits = uint32_t(static_cast<const uint16_t *>(data)[index]) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

int matmul(tenon_dtype type, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
           const void *b, int64_t ldb, float *c, int64_t ldc) {
  if (matmulAnswer != 0 || (type != TENON_F32 && type != TENON_BF16))
    return 1;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += double(readAs(type, a, i * lda + l)) * readAs(type, b, l * ldb + j);
      c[i * ldc + j] = float(sum);
    }
  return 0;
}

} // namespace

int matmulAnswer = 0;

void runKernel(tenon_kernel *kernel, const void *shape, std::vector<const void *> io,
               const Batch &batch, int threads, int64_t scratchBytes, bool withMatmul) {
  ASSERT_NE(kernel, nullptr) << "this level has no such kernel";
  io.resize(TENON_LAUNCH_OPERANDS); // CUDA kernels get all of them
  constexpr int64_t Guard = 256;
  Team team;
  tenon_services services = {barrier, withMatmul ? matmul : nullptr, nullptr};
  std::vector<std::thread> workers;
  const int64_t stride = (scratchBytes + Guard + 63) / 64 * 64;
  std::unique_ptr<char, decltype(&std::free)> memory(
      static_cast<char *>(std::aligned_alloc(64, stride * threads)), std::free);
  char *scratch = memory.get();
  std::memset(scratch, 0xff, stride * threads);
  auto work = [&](int thread) {
    tenon_env env = {
        &batch.get(), &services, scratch + thread * stride, thread, threads, batch.blocks(),
        &team,        nullptr,   batch.memoryBlocks,        stride};
    kernel(shape, const_cast<void *const *>(io.data()), &env);
  };
  for (int t = 1; t < threads; ++t)
    workers.emplace_back(work, t);
  work(0);
  for (std::thread &worker : workers)
    worker.join();
  for (int t = 0; t < threads; ++t)
    for (int64_t i = 0; i < Guard; ++i)
      ASSERT_EQ(scratch[t * stride + scratchBytes + i], char(0xff)) << "written behind the scratch";
}

std::vector<float> randomFloats(int64_t count, unsigned seed, float scale) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution(0, scale);
  std::vector<float> values(count);
  for (float &value : values)
    value = distribution(generator);
  return values;
}

void expectNear(const std::vector<float> &got, const std::vector<double> &want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  double squares = 0;
  for (double value : want)
    squares += value * value;
  double rms = std::sqrt(squares / double(want.size()));
  for (size_t i = 0; i < got.size(); ++i)
    if (!(std::fabs(got[i] - want[i]) <= tolerance * (std::fabs(want[i]) + rms))) {
      ADD_FAILURE() << "element " << i << ": " << got[i] << ", not " << want[i];
      return;
    }
}
