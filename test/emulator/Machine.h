// The parts of the machine: its threads, who may run, and what they do together.
#ifndef TENON_TEST_EMULATOR_MACHINE_H
#define TENON_TEST_EMULATOR_MACHINE_H

#include "codegen/cuda/kernels/device.h"
#include "test/emulator/Emulator.h"
#include "test/emulator/Memory.h"
#include <deque>
#include <random>
#include <vector>

namespace tenon::emulator {

constexpr int WarpSize = 32;
constexpr int MostThreads = 1024;

// What a thread waits for others in. All but Sync are a warp's.
enum class Operation { None, Sync, SyncWarp, Shuffle, Ballot, MmaBf16, MmaHalf, MmaInt8, MmaUint8 };
const char *nameOf(Operation operation);

struct Copy {
  void *shared;
  const void *global;
};

struct Thread {
  Thread(StackPool &stacks, int index) : fibre(stacks), index(index) {}

  Fibre fibre;
  int index;
  bool started = false, ended = false;
  bool awaited = false; // the launch before
  Operation waitsIn = Operation::None;
  // Registers that the operation reads and writes: of a shuffle or ballot, of an mma.
  uint32_t value = 0;
  int32_t source = 0;
  void *c = nullptr;
  const uint32_t *a = nullptr, *b = nullptr;
  // Asynchronous copies: groups that are closed, the oldest first, and the open one.
  std::deque<std::vector<Copy>> copyGroups;
  std::vector<Copy> openCopies;
};

struct Warp {
  Operation operation = Operation::None; // what `arrived` lanes wait in
  int arrived = 0;
  uint32_t ready = 0; // lanes that could run
  uint64_t metAt = 0; // Races.h
};

class Machine {
public:
  static Machine &get();

  std::string run(const Grid &grid, Entry entry, const void *parameters, Schedule schedule);

  // Of the thread that runs.
  Thread &thread() { return *running; }
  Warp &warpOf(const Thread &t) { return warps[t.index / WarpSize]; }
  void sync();
  void meetWarp(Operation operation);
  bool isRunning() const { return running != nullptr; }
  // Ends the run with a line about the running thread
  // that `explain` composes: elsewhere, as nothing on the thread's stack is ever destroyed.
  template <typename Explain> [[noreturn]] void fault(const Explain &explain) {
    explainFault = [](const void *object) { return (*static_cast<const Explain *>(object))(); };
    faultExplanation = &explain;
    leave();
  }
  // What is known of an address: "4 bytes behind the shared memory of 512 bytes", ...
  std::string describe(const void *address) const;
  const GuardedBytes *sharedMemory() const { return shared; }
  // It, if it or its surroundings hold p.
  const GuardedBytes *findShared(const void *p) const;

  // Time goes on where threads meet (Races.h).
  uint64_t now = 1, launchedAt = 1, blockBeganAt = 1, blockMetAt = 1;
  const Grid *grid = nullptr;
  int64_t blockColumn = 0, blockRow = 0;

private:
  static void body(void *self);
  void runBlock();
  Thread *next();
  void resume(Thread &t);
  void perform(Operation operation, Thread *lanes);
  void explainDeadlock();
  [[noreturn]] void leave();
  void fail(const Thread *t, const std::string &what);
  void placeShared(bool upper);

  StackPool stacks;
  std::deque<Thread> threads;
  std::vector<Warp> warps;
  std::unique_ptr<GuardedBytes> sharedMemories[2]; // against the lower, the upper guard page
  GuardedBytes *shared = nullptr;                  // the one of this block
  Thread *running = nullptr;
  int count = 0, ended = 0, arrived = 0;
  size_t turn = 0; // the warp that ran last
  std::string error;
  std::string (*explainFault)(const void *object) = nullptr;
  const void *faultExplanation = nullptr;
  Entry entry = nullptr;
  const void *parameters = nullptr;
  Schedule schedule;
  std::mt19937_64 random;
};

// c += a · b of a warp's registers; `lanes` are its 32 threads.
void multiply(Operation operation, Thread *const *lanes);

// Turns a fault of the processor inside of a run into one of the machine's, as long as it lives.
class FaultHandler {
public:
  FaultHandler();
  ~FaultHandler();

private:
  std::unique_ptr<GuardedPages> stack;
  struct State;
  std::unique_ptr<State> before;
};

} // namespace tenon::emulator

#endif // TENON_TEST_EMULATOR_MACHINE_H
