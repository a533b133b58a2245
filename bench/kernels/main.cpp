// Runs the cases on one thread and prints the best time, GB/s of streamed weights, and GOP/s.
#include "Cases.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace {

double secondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

char *allocate(int64_t bytes) {
  return static_cast<char *>(std::aligned_alloc(64, (bytes + 64 + 63) / 64 * 64));
}

constexpr int64_t WeightBytes = 192 << 20;

// Best of the runs that fit into a third of a second; their median where each reads
// other memory.
double measure(const bench_case &c, void **io, const tenon_env *env) {
  std::vector<double> times;
  char *base = static_cast<char *>(io[1]);
  int64_t at = 0;
  for (double end = secondsNow() + 0.3; secondsNow() < end;) {
    io[1] = base + at;
    at = at + 2 * c.advance <= WeightBytes ? at + c.advance : 0;
    double start = secondsNow();
    c.run(io, env);
    times.push_back(secondsNow() - start);
  }
  std::sort(times.begin(), times.end());
  return times[c.advance ? times.size() / 2 : 0];
}

void runLevel(const char *name, bench_level level, const std::string &filter) {
  // Weights are random bytes whose scales are small numbers; activations lie in -1 .. 1.
  constexpr int64_t FloatCount = 512 * 8192;
  static char *weights = nullptr;
  if (!weights) {
    weights = static_cast<char *>(std::aligned_alloc(2 << 20, WeightBytes));
    madvise(weights, WeightBytes, MADV_HUGEPAGE); // as the runtime's cache
    for (int64_t i = 0; i < WeightBytes; ++i)
      weights[i] = char((uint64_t(i) * 2654435761u >> 13 & 0x0f) | 0x20);
  }
  float *x = reinterpret_cast<float *>(allocate(FloatCount * 4));
  float *out = reinterpret_cast<float *>(allocate(FloatCount * 4));
  for (int64_t i = 0; i < FloatCount; ++i)
    x[i] = float(uint32_t(i * 2654435761u) >> 8) / float(1 << 23) - 1;

  std::vector<int32_t> ids(4096, 0), positions(4096), sequenceOf(4096, 0), blocks(256);
  std::iota(blocks.begin(), blocks.end(), 0);
  for (int32_t i = 0; i < level.count; ++i) {
    const bench_case &c = level.cases[i];
    if ((std::string(name) + " " + c.name).find(filter) == std::string::npos)
      continue;
    std::iota(positions.begin(), positions.end(), c.cached);
    int32_t starts[] = {0, c.tokens}, length = c.tokens + c.cached;
    tenon_batch batch = {
        c.tokens,          1,       0,       256,           ids.data(), positions.data(),
        sequenceOf.data(), starts,  &length, blocks.data(), nullptr,    nullptr,
        nullptr,           nullptr, 0};
    char *scratch = allocate(c.scratch_bytes);
    tenon_services services = {nullptr, nullptr, nullptr};
    tenon_env env = {&batch, &services, scratch, 0, 1, 256, nullptr, nullptr, 0, 0};
    bool normed = std::strstr(c.name, "smol qkv") || std::strstr(c.name, "gate") ||
                  std::strstr(c.name, "head");
    void *io[] = {x, weights, normed ? x : out, out};
    double seconds = measure(c, io, &env);
    std::printf("%-11s %-18s x%-4d %9.2f us %7.1f GB/s %8.1f GOP/s\n", name, c.name, c.tokens,
                seconds * 1e6, double(c.weight_bytes) / seconds * 1e-9,
                c.operations / seconds * 1e-9);
    std::free(scratch);
  }
  std::free(x);
  std::free(out);
}

} // namespace

int main(int argc, char **argv) {
  std::string filter = argc > 1 ? argv[1] : "";
  runLevel("generic", bench_generic(), filter);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    runLevel("avx2", bench_avx2(), filter);
  if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw"))
    runLevel("avx512", bench_avx512(), filter);
  if (__builtin_cpu_supports("avx512bf16"))
    runLevel("avx512bf16", bench_avx512bf16(), filter);
  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA: refused where there are no tiles.
  if (__builtin_cpu_supports("avx512bf16") && syscall(SYS_arch_prctl, 0x1023, 18) == 0)
    runLevel("amx", bench_amx(), filter);
}
