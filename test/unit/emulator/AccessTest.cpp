// Accesses that a device would not allow, or that race.
#include "Emulated.h"

using namespace tenon::emulator;
using ::testing::HasSubstr;
using ::testing::StartsWith;

namespace {

TEST(Access, OutsideOfAllocations) {
  // Against the upper guard page, and against the lower one.
  for (int i = 0; i < 2; ++i) {
    Array<char> in(300), out(300);
    EXPECT_EQ(runKernel("writeAt", {nullptr, out.data(), 299}, blocks(1, 64)), "");
    EXPECT_EQ(runKernel("writeAt", {nullptr, out.data(), 300}, blocks(1, 64)),
              "writeAt: block (0, 0), thread 33: writes 1 bytes 0 bytes behind an allocation of "
              "300 bytes");
    EXPECT_EQ(runKernel("readAt", {in.data(), out.data(), -3}, blocks(1, 64)),
              "readAt: block (0, 0), thread 33: reads 1 bytes 3 bytes before an allocation of 300 "
              "bytes");
  }
}

TEST(Access, OutsideOfSharedMemory) {
  Array<char> out(4);
  EXPECT_EQ(runKernel("writeSharedAt", {nullptr, nullptr, 99}, blocks(2, 64, 100)), "");
  EXPECT_EQ(runKernel("writeSharedAt", {nullptr, nullptr, 100}, blocks(1, 64, 100)),
            "writeSharedAt: block (0, 0), thread 33: writes 1 bytes 0 bytes behind the shared "
            "memory of 100 bytes");
  EXPECT_THAT(runKernel("writeSharedAt", {nullptr, nullptr, -1}, blocks(1, 64, 100)),
              HasSubstr("1 bytes before the shared memory"));
}

TEST(Access, WhatIsNoDeviceMemory) {
  Array<char> out(4);
  std::string onTheHeap = "longer than what a string has room for in itself";
  EXPECT_THAT(runKernel("readAt", {onTheHeap.data(), out.data(), 0}, blocks(1, 64)),
              StartsWith("readAt: block (0, 0), thread 33: reads what is no device memory"));
  EXPECT_THAT(runKernel("readAt", {nullptr, out.data(), 0}, blocks(1, 64)),
              HasSubstr("reads what is no device memory"));
}

TEST(Access, BeforeTheLaunchBeforeIsDone) {
  Array<char> in(32), out(32);
  Grid early = blocks(1, 32);
  early.beginsEarly = true;
  EXPECT_EQ(runKernel("awaits", {in.data(), out.data(), 0}, early), "");
  EXPECT_EQ(
      runKernel("readsEarly", {in.data(), out.data(), 0}, early),
      "readsEarly: block (0, 0), thread 0: reads at byte 0 of an allocation of 32 bytes before "
      "it awaited the launch before");
  EXPECT_EQ(runKernel("neverAwaits", {in.data(), out.data(), 0}, early),
            "neverAwaits: block (0, 0), thread 0: ends without having awaited the launch before");
  EXPECT_EQ(runKernel("readsEarly", {in.data(), out.data(), 0}, blocks(1, 32)), "");
}

TEST(Access, AfterItWasFreed) {
  Array<char> out(4);
  char *gone = DeviceMemory::get().allocate(100);
  DeviceMemory::get().free(gone);
  EXPECT_THAT(runKernel("readAt", {gone, out.data(), 0}, blocks(1, 64)),
              HasSubstr("thread 33: reads "));
}

TEST(Access, Misaligned) {
  Array<char> in(64), out(64);
  EXPECT_EQ(runKernel("wordAt", {in.data(), out.data(), 6}),
            "wordAt: block (0, 0), thread 0: accesses 4 bytes that are not aligned to them, at "
            "byte 6 of an allocation of 64 bytes");
  EXPECT_THAT(runKernel("loadAt", {in.data(), out.data(), 8}),
              HasSubstr("accesses 16 bytes that are not aligned"));
  EXPECT_THAT(runKernel("updateAt", {in.data(), out.data(), 2}),
              HasSubstr("accesses 4 bytes that are not aligned"));
}

TEST(Access, Processor) {
  Array<int32_t> out(1);
  EXPECT_EQ(runKernel("divide", {nullptr, out.data(), 0}),
            "divide: block (0, 0), thread 0: divides an integer by zero");
  EXPECT_EQ(runKernel("deep", {nullptr, out.data(), 0}),
            "deep: block (0, 0), thread 0: needs more stack than there is: 262144 bytes");
  // The next run is not disturbed.
  EXPECT_EQ(runKernel("atomics", {nullptr, Array<int32_t>(6).data()}), "");
}

// Without instrumentation, guard pages and patterns around allocations find what they can.
void wild(const void *parameters) {
  auto *o = static_cast<const Operands *>(parameters);
  *const_cast<volatile char *>(o->out + o->value) = 1;
}

TEST(Access, GuardPagesAndPatterns) {
  Grid grid;
  grid.name = "wild";
  Array<char> upper(256), lower(256);
  char *a = std::min(upper.data(), lower.data()), *b = std::max(upper.data(), lower.data());
  for (char *memory : {a, b}) {
    Operands behind = {nullptr, memory, 256}, before = {nullptr, memory, -1};
    std::string first = run(grid, wild, &behind), second = run(grid, wild, &before);
    bool isUpper = first != "wild: something wrote 0 bytes behind an allocation of 256 bytes";
    if (isUpper) {
      EXPECT_EQ(first, "wild: block (0, 0), thread 0: writes 0 bytes behind an allocation of 256 "
                       "bytes");
      EXPECT_EQ(second, "wild: something wrote 1 bytes before an allocation of 256 bytes");
      memory[-1] = char(0xa5);
    } else {
      EXPECT_EQ(second, "wild: block (0, 0), thread 0: writes 1 bytes before an allocation of 256 "
                        "bytes");
      memory[256] = char(0xa5);
    }
  }
}

TEST(Races, WithinAWarpAndABlock) {
  Array<float> out(64);
  Grid grid = blocks(1, 64, 256);
  EXPECT_EQ(runKernel("neighbours", {nullptr, out.data(), 0}, grid),
            "neighbours: block (0, 0), thread 1: a race: writes at byte 4 of the shared memory of "
            "256 bytes, which thread 0 read without a barrier in between");
  EXPECT_EQ(runKernel("neighbours", {nullptr, out.data(), 1}, grid), "");
  EXPECT_EQ(runKernel("neighbours", {nullptr, out.data(), 2}, grid), "");
  EXPECT_THAT(runKernel("otherWarp", {nullptr, out.data()}, grid), HasSubstr("a race"));
  EXPECT_THAT(runKernel("overwriteRead", {nullptr, out.data(), 0}, grid), HasSubstr("a race"));
  EXPECT_EQ(runKernel("overwriteRead", {nullptr, out.data(), 1}, grid), "");
}

TEST(Races, InEveryOrder) {
  Array<float> out(64);
  for (Order order : {Order::Forward, Order::Reverse, Order::Random})
    for (const char *kernel : {"neighbours", "otherWarp", "overwriteRead", "allWriteTheSame"})
      EXPECT_THAT(runKernel(kernel, {nullptr, out.data()}, blocks(1, 64, 256), {order, 3}),
                  HasSubstr("a race"));
}

TEST(Races, BetweenBlocks) {
  Array<int32_t> out(64);
  EXPECT_EQ(runKernel("blocksShareOutput", {nullptr, out.data(), 1}, blocks(4, 32)), "");
  EXPECT_EQ(runKernel("blocksShareOutput", {nullptr, out.data(), 2}, blocks(4, 32)),
            "blocksShareOutput: block (1, 0), thread 0: a race: writes at byte 0 of an allocation "
            "of 256 bytes, which another block wrote without a barrier in between");
  EXPECT_EQ(runKernel("blockReadsAnothers", {nullptr, out.data(), 1}, blocks(4, 32)), "");
  EXPECT_THAT(
      runKernel("blockReadsAnothers", {nullptr, out.data(), 0}, blocks(4, 32)),
      HasSubstr("reads at byte 0 of an allocation of 256 bytes, which another block wrote"));
  EXPECT_THAT(
      runKernel("blockReadsAnothers", {nullptr, out.data(), 0}, blocks(4, 32), {Order::Reverse, 0}),
      HasSubstr("which another block read"));
}

TEST(Races, PartsOfWords) {
  Array<char> out(64);
  EXPECT_EQ(runKernel("bytesOfOneWord", {nullptr, out.data()}, blocks(1, 64)), "");
  EXPECT_THAT(runKernel("byteAndWord", {nullptr, out.data()}, blocks(1, 64)),
              HasSubstr("thread 40: a race: writes at byte 3 of"));
}

TEST(Races, Atomics) {
  Array<int32_t> out(2);
  EXPECT_EQ(runKernel("atomicAndPlain", {nullptr, out.data()}, blocks(1, 32)), "");
  EXPECT_THAT(runKernel("atomicAndPlain", {nullptr, out.data()}, blocks(1, 64)),
              HasSubstr("thread 32: a race: reads at byte 0 of an allocation of 8 bytes, which "
                        "other threads wrote"));
}

} // namespace
