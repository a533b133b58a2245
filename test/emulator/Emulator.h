// A SIMT machine in ordinary code: runs what is written against codegen/cuda/kernels/device.h as a
// CUDA device would, and stops at the first thing that such a device would not forgive.
//
//   grid ──▶ blocks, one after another ──▶ warps of 32 ──▶ a thread is a fibre (Fibre.h)
//
// A fibre leaves the processor only where it waits for others: at a barrier, or in what its warp
// does together. See README.md for all that is checked.
#ifndef TENON_TEST_EMULATOR_EMULATOR_H
#define TENON_TEST_EMULATOR_EMULATOR_H

#include <cstdint>
#include <string>

namespace tenon::emulator {

struct Grid {
  const char *name; // of the kernel, for messages
  int64_t columns = 1, rows = 1;
  int32_t threads = 32; // of a block
  int64_t sharedBytes = 0;
  bool beginsEarly = false; // every thread has to call awaitLaunch() before it touches anything
  const void *constants = nullptr; // but these bytes: parameters, and what is known of the shape
  int64_t constantBytes = 0;
};

// Whose turn it is where several threads could run. What a kernel computes must not depend on it.
enum class Order { Forward, Reverse, Random };
struct Schedule {
  Order order = Order::Forward;
  uint64_t seed = 0;
};

// A kernel: TK_SPECIALISE's entry, or any function that does what it does.
using Entry = void (*)(const void *parameters);

// Runs every thread of the grid; "" or one line that says what was wrong: kernel, block, thread,
// fault. At the first fault the run ends where it is. One run at a time (others wait).
std::string run(const Grid &grid, Entry entry, const void *parameters, Schedule schedule = {});

} // namespace tenon::emulator

#endif // TENON_TEST_EMULATOR_EMULATOR_H
