// What threads do together: results, and what is said when not all of them do.
#include "Emulated.h"

using namespace tenon::emulator;
using ::testing::HasSubstr;

std::string runKernel(const char *name, Operands operands, Grid grid, Schedule schedule) {
  Entry entry = findKernel(name);
  EXPECT_NE(entry, nullptr) << name;
  // A constant of the launch, which is there before anything is awaited.
  static Operands parameters;
  parameters = operands;
  grid.name = name;
  return run(grid, entry, &parameters, schedule);
}

namespace {

const Schedule schedules[] = {
    {Order::Forward, 0}, {Order::Reverse, 0}, {Order::Random, 1}, {Order::Random, 2}};

TEST(Together, Places) {
  for (Schedule schedule : schedules) {
    Array<int64_t> out(3 * 2 * 64);
    Grid grid = blocks(3, 64);
    grid.rows = 2;
    ASSERT_EQ(runKernel("places", {nullptr, out.data()}, grid, schedule), "");
    for (int64_t block = 0; block < 6; ++block)
      for (int64_t t = 0; t < 64; ++t)
        EXPECT_EQ(out[block * 64 + t], 1000000 * block + 20000 + 100 * (t / 32) + t % 32 + 2);
  }
}

TEST(Together, Shuffles) {
  for (Schedule schedule : schedules) {
    Array<float> in(64), out(128);
    for (int i = 0; i < 64; ++i)
      in[i] = float(i);
    ASSERT_EQ(runKernel("shuffles", {in.data(), out.data()}, blocks(1, 64), schedule), "");
    for (int i = 0; i < 64; ++i) {
      EXPECT_EQ(out[2 * i], float(i / 32 * 32 + 31 - i % 32));
      EXPECT_EQ(out[2 * i + 1], i < 32 ? 496.0f : 1520.0f);
    }
  }
}

TEST(Together, Votes) {
  Array<int32_t> in(64, 0);
  Array<uint32_t> out(128);
  in[3] = 1;
  in[31] = 2;
  in[40] = 9;
  ASSERT_EQ(runKernel("votes", {in.data(), out.data()}, blocks(1, 64)), "");
  EXPECT_EQ(out[0], 0x80000008u);
  EXPECT_EQ(out[1], 0u);
  EXPECT_EQ(out[2 * 63], 0x100u);
  EXPECT_EQ(out[2 * 63 + 1], 1u);
}

TEST(Together, BlockSum) {
  for (Schedule schedule : schedules) {
    Array<float> in(1024, 0.5f), out(3);
    ASSERT_EQ(runKernel("blockSum", {in.data(), out.data()}, blocks(3, 1024, 4096), schedule), "");
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(out[i], 512.0f);
  }
}

TEST(Together, Atomics) {
  Array<int32_t> out(6);
  ASSERT_EQ(runKernel("atomics", {nullptr, out.data()}, blocks(2, 64)), "");
  EXPECT_EQ(reinterpret_cast<float &>(out[0]), 128.0f);
  EXPECT_EQ(out[1], 2 * 63 * 32);
  EXPECT_EQ(out[2], 63);
  EXPECT_EQ(out[4], 0); // of 64 bits
  EXPECT_EQ(out[5], 2 * 63 * 32);
}

TEST(Together, CopiesArriveWhenWaitedFor) {
  for (int64_t pending : {0, 1, 2}) {
    Array<int32_t> in(8 * 64, 7), out(8 * 64, 0);
    ASSERT_EQ(runKernel("copies", {in.data(), out.data(), pending}, blocks(1, 64, 2048)), "");
    for (int i = 0; i < 64; ++i) {
      EXPECT_EQ(out[8 * i], pending < 2 ? 7 : -1);
      EXPECT_EQ(out[8 * i + 7], pending < 1 ? 7 : -1);
    }
  }
}

TEST(Together, CopiesNeedABarrierForOthers) {
  Array<int32_t> in(4 * 64, 7), out(4 * 64);
  EXPECT_THAT(runKernel("copiesUnseen", {in.data(), out.data()}, blocks(1, 64, 1024)),
              HasSubstr("thread 1: a race: writes at byte 16 of the shared memory of 1024 bytes, "
                        "which thread 0 read without a barrier in between"));
  EXPECT_EQ(runKernel("copyNotShared", {in.data(), out.data()}, blocks(1, 64, 1024)),
            "copyNotShared: block (0, 0), thread 0: copies to what is not in shared memory: 16 "
            "bytes at byte 0 of an allocation of 1024 bytes");
}

TEST(Together, BarrierOfSome) {
  EXPECT_EQ(runKernel("barrierOfSome", {nullptr, nullptr, 40}, blocks(2, 64)),
            "barrierOfSome: block (0, 0), thread 0: waits in sync, but thread 40 of its block has "
            "ended");
}

TEST(Together, OperationsOfSome) {
  EXPECT_EQ(runKernel("barrierInShuffle", {}, blocks(1, 32)),
            "barrierInShuffle: block (0, 0), thread 16: waits in shuffle, but thread 0 of its warp "
            "waits in sync");
  EXPECT_EQ(runKernel("shuffleOfSome", {}, blocks(1, 64)),
            "shuffleOfSome: block (0, 0), thread 0: waits in shuffle, but thread 7 of its warp has "
            "ended");
  EXPECT_EQ(runKernel("twoOperations", {}, blocks(1, 32)),
            "twoOperations: block (0, 0), thread 16: is in ballotLanes while thread 0 of its warp "
            "is in shuffle");
  EXPECT_EQ(runKernel("warpBarrierOfSome", {}, blocks(1, 32)),
            "warpBarrierOfSome: block (0, 0), thread 0: waits in syncWarp, but thread 31 of its "
            "warp has ended");
}

TEST(Together, GridsThatNoDeviceTakes) {
  EXPECT_EQ(runKernel("atomics", {}, blocks(1, 40)),
            "atomics: a block has 32 to 1024 threads, whole warps");
  EXPECT_EQ(runKernel("atomics", {}, blocks(1, 1056)),
            "atomics: a block has 32 to 1024 threads, whole warps");
  EXPECT_THAT(runKernel("atomics", {}, blocks(0, 32)), HasSubstr("a grid has 1 to"));
  Grid tall = blocks(1, 32);
  tall.rows = 65536;
  EXPECT_THAT(runKernel("atomics", {}, tall), HasSubstr("65535 rows"));
  EXPECT_EQ(runKernel("atomics", {}, blocks(1, 32, (227 << 10) + 1)),
            "atomics: a block has at most 227 KiB of shared memory");
}

} // namespace
