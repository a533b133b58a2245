// machine --threads N: what this CPU can do at most, as one JSON object.
//
//   memory_gb_s    reading 1 GiB, far more than the caches hold
//   f32_gops       multiply-adds in registers, two operations each
//   bf16_gops      dot products of bf16 pairs     } null where the CPU has no instruction for them
//   int8_gops      dot products of int8 quads     }
//
// Each is the best of seven trials of all threads together, each thread on a CPU of its own. Build
// it for the CPU that it runs on: c++ -std=c++17 -O3 -march=native -pthread machine.cpp
#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <sched.h>
#include <sys/mman.h>
#include <thread>
#include <vector>
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace {

#ifdef __AVX512F__
constexpr int registerBytes = 64;
#else
constexpr int registerBytes = 32;
#endif
using Floats = float __attribute__((vector_size(registerBytes)));
using Words = uint64_t __attribute__((vector_size(registerBytes)));

// Enough independent chains to hide an instruction's latency, few enough for the registers.
constexpr int chains = 12;
constexpr int trials = 7;
constexpr long steps = 20'000'000;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Keeps the compiler from computing, or leaving out, what nobody looks at.
template <typename T> void opaque(T &value) { asm volatile("" : "+m"(value) : : "memory"); }

class Barrier {
public:
  explicit Barrier(int threads) : threads(threads) {}
  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    const long mine = generation;
    if (++arrived == threads) {
      arrived = 0;
      ++generation;
      all.notify_all();
    } else {
      all.wait(lock, [&] { return generation != mine; });
    }
  }

private:
  std::mutex mutex;
  std::condition_variable all;
  const int threads;
  int arrived = 0;
  long generation = 0;
};

void stayOn(int which) {
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && which-- == 0)
      CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
}

// The least over trials of the seconds from the first thread's start to the last one's end.
double seconds(int threads, const std::function<void(int)> &work) {
  Barrier barrier(threads);
  std::vector<std::array<double, trials>> begins(threads), ends(threads);
  std::vector<std::thread> team;
  for (int thread = 0; thread < threads; ++thread)
    team.emplace_back([&, thread] {
      stayOn(thread);
      work(thread); // warms up
      for (int trial = 0; trial < trials; ++trial) {
        barrier.wait();
        begins[thread][trial] = now();
        work(thread);
        ends[thread][trial] = now();
      }
    });
  for (std::thread &member : team)
    member.join();
  double least = 1e9;
  for (int trial = 0; trial < trials; ++trial) {
    double begin = begins[0][trial], end = ends[0][trial];
    for (int thread = 1; thread < threads; ++thread) {
      begin = std::min(begin, begins[thread][trial]);
      end = std::max(end, ends[thread][trial]);
    }
    least = std::min(least, end - begin);
  }
  return least;
}

double memoryRate(int threads) {
  constexpr size_t size = size_t(1) << 30, unroll = 8;
  void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("machine: mmap");
    std::exit(1);
  }
  madvise(memory, size, MADV_HUGEPAGE);
  std::memset(memory, 1, size);
  const Words *words = static_cast<const Words *>(memory);
  const size_t share = size / sizeof(Words) / threads / unroll * unroll;
  const double time = seconds(threads, [=](int thread) {
    const Words *mine = words + share * thread;
    Words sums[unroll] = {};
    for (size_t i = 0; i < share; i += unroll)
      for (size_t k = 0; k < unroll; ++k)
        sums[k] += mine[i + k];
    opaque(sums);
  });
  munmap(memory, size);
  return double(share) * threads * sizeof(Words) / time / 1e9;
}

// Gop/s of `step`, which adds to an accumulator and counts as `operations`.
template <typename Accumulator, typename Step>
double arithmeticRate(int threads, int operations, Step step) {
  const double time = seconds(threads, [=](int) {
    Accumulator sums[chains] = {};
    opaque(sums);
    for (long i = 0; i < steps; ++i)
#pragma GCC unroll 12
      for (int k = 0; k < chains; ++k)
        sums[k] = step(sums[k]);
    opaque(sums);
  });
  return double(threads) * steps * chains * operations / time / 1e9;
}

double f32Rate(int threads) {
  Floats factor = {}, term = {};
  opaque(factor), opaque(term);
  return arithmeticRate<Floats>(threads, registerBytes / 4 * 2,
                                [=](Floats sum) { return sum * factor + term; });
}

double bf16Rate([[maybe_unused]] int threads) {
#ifdef __AVX512BF16__
  __m512i bits = _mm512_setzero_si512();
  opaque(bits);
  const auto pairs = (__m512bh)bits;
  return arithmeticRate<__m512>(threads, 64,
                                [=](__m512 sum) { return _mm512_dpbf16_ps(sum, pairs, pairs); });
#else
  return 0;
#endif
}

double int8Rate([[maybe_unused]] int threads) {
#if defined(__AVX512VNNI__)
  __m512i quads = _mm512_setzero_si512();
  opaque(quads);
  return arithmeticRate<__m512i>(
      threads, 128, [=](__m512i sum) { return _mm512_dpbusd_epi32(sum, quads, quads); });
#elif defined(__AVXVNNI__)
  __m256i quads = _mm256_setzero_si256();
  opaque(quads);
  return arithmeticRate<__m256i>(
      threads, 64, [=](__m256i sum) { return _mm256_dpbusd_avx_epi32(sum, quads, quads); });
#else
  return 0;
#endif
}

void print(const char *name, double rate, const char *after) {
  if (rate > 0)
    std::printf("\"%s\": %.1f%s", name, rate, after);
  else
    std::printf("\"%s\": null%s", name, after);
}

} // namespace

int main(int count, char **arguments) {
  const bool asked = count == 3 && std::strcmp(arguments[1], "--threads") == 0;
  const int threads = asked ? std::atoi(arguments[2]) : 0;
  if (threads < 1 || threads > CPU_SETSIZE) {
    std::fprintf(stderr, "usage: machine --threads N (1 or more)\n");
    return 1;
  }
  std::printf("{");
  print("memory_gb_s", memoryRate(threads), ", ");
  print("f32_gops", f32Rate(threads), ", ");
  print("bf16_gops", bf16Rate(threads), ", ");
  print("int8_gops", int8Rate(threads), "}\n");
}
