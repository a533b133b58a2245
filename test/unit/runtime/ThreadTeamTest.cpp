// The SPMD team: everybody runs, barriers order, sleeping threads wake, more threads than CPUs
// still end.
#include "runtime/ThreadTeam.h"

#include "runtime/Machine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <vector>

using namespace tenon::rt;

class ThreadTeamSizes : public testing::TestWithParam<int> {};

TEST_P(ThreadTeamSizes, EveryThreadRunsOnceForEachRun) {
  ThreadTeam team(GetParam());
  std::vector<int> calls(GetParam());
  for (int repeat = 0; repeat < 200; ++repeat)
    team.run([&](int thread) { ++calls[thread]; });
  for (int count : calls)
    EXPECT_EQ(count, 200);
}

TEST_P(ThreadTeamSizes, BarrierSeparatesStages) {
  const int threads = GetParam(), stages = 100;
  ThreadTeam team(threads);
  std::vector<int> stage(threads);
  std::atomic<int> wrong{0};
  team.run([&](int thread) {
    for (int s = 1; s <= stages; ++s) {
      stage[thread] = s; // plain memory: the barrier must order it
      team.barrier();
      for (int other : stage)
        wrong += other != s;
      team.barrier();
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(stage, std::vector<int>(threads, stages));
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadTeamSizes, testing::Values(1, 2, 3, 8));

TEST(ThreadTeam, WakesAfterSleeping) {
  ThreadTeam team(2);
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::atomic<int> calls{0};
    std::this_thread::sleep_for(std::chrono::milliseconds(5)); // longer than anyone spins
    team.run([&](int thread) {
      if (thread == 0)
        std::this_thread::sleep_for(
            std::chrono::milliseconds(5)); // the other sleeps in the barrier
      team.barrier();
      ++calls;
    });
    EXPECT_EQ(calls, 2);
  }
}

TEST(ThreadTeam, PinnedTeamRuns) {
  // In a thread of its own, because pinning stays.
  std::thread([] {
    ThreadTeam team(2, /*pin=*/true);
    std::atomic<int> calls{0};
    team.run([&](int) { ++calls; });
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(affinityCpus().size(), 1u);
  }).join();
}

TEST(Machine, CountsCpusAndKnowsFeatures) {
  EXPECT_GE(allowedCpus(), 1);
  EXPECT_LE(allowedCpus(), static_cast<int>(affinityCpus().size()));
  EXPECT_EQ(missingFeature(""), "");
  EXPECT_EQ(missingFeature("avx9000"), "avx9000");
#if defined(__x86_64__)
  EXPECT_EQ(missingFeature("sse2"), "");
  EXPECT_EQ(missingFeature("sse2,avx9000,sse"), "avx9000");
#endif
}

#if defined(__x86_64__)
TEST(Machine, FeaturesAgreeWithTheKernel) {
  FILE *file = fopen("/proc/cpuinfo", "re");
  ASSERT_TRUE(file);
  std::string flags;
  char line[8192];
  while (flags.empty() && fgets(line, sizeof line, file))
    if (!strncmp(line, "flags", 5))
      flags = std::string(line) + " ";
  fclose(file);
  for (std::string name :
       {"ssse3",       "sse4_1",     "sse4_2",       "popcnt",   "avx",         "avx2",
        "fma",         "f16c",       "bmi1",         "bmi2",     "abm",         "movbe",
        "avx512f",     "avx512bw",   "avx512dq",     "avx512vl", "avx512_vnni", "avx512_bf16",
        "avx512_fp16", "avx512vbmi", "avx512_vbmi2", "avx_vnni", "gfni",        "vaes",
        "amx_tile",    "amx_int8",   "amx_bf16"}) {
    bool listed = flags.find(" " + name + " ") != std::string::npos;
    EXPECT_EQ(missingFeature(name).empty(), listed) << name;
  }
}
#endif
