#include "test/emulator/Machine.h"
#include "test/emulator/Races.h"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

using namespace tenon::emulator;

// What a device of capability 9.0 lets a block have.
static constexpr int64_t MostShared = 227 << 10, MostRows = 65535, MostColumns = 0x7fffffff;

tk_emulated_thread tk_emulated_current;

std::string tenon::emulator::run(const Grid &grid, Entry entry, const void *parameters,
                                 Schedule schedule) {
  static std::mutex one;
  std::lock_guard<std::mutex> lock(one);
  return Machine::get().run(grid, entry, parameters, schedule);
}

const char *tenon::emulator::nameOf(Operation operation) {
  switch (operation) {
  case Operation::None:
    return "nothing";
  case Operation::Sync:
    return "sync";
  case Operation::SyncWarp:
    return "syncWarp";
  case Operation::Shuffle:
    return "shuffle";
  case Operation::Ballot:
    return "ballotLanes";
  case Operation::MmaBf16:
    return "mmaBf16";
  case Operation::MmaHalf:
    return "mmaHalf";
  case Operation::MmaInt8:
    return "mmaInt8";
  case Operation::MmaUint8:
    return "mmaUint8";
  }
  return "";
}

Machine &Machine::get() {
  static Machine machine;
  return machine;
}

std::string Machine::run(const Grid &newGrid, Entry newEntry, const void *newParameters,
                         Schedule newSchedule) {
  grid = &newGrid;
  entry = newEntry;
  parameters = newParameters;
  schedule = newSchedule;
  random.seed(schedule.seed);
  error.clear();
  auto refuse = [&](const char *what) { return std::string(grid->name) + ": " + what; };
  if (grid->threads <= 0 || grid->threads % WarpSize || grid->threads > MostThreads)
    return refuse("a block has 32 to 1024 threads, whole warps");
  if (grid->columns <= 0 || grid->columns > MostColumns || grid->rows <= 0 || grid->rows > MostRows)
    return refuse("a grid has 1 to 2147483647 columns and 1 to 65535 rows of blocks");
  if (grid->sharedBytes < 0 || grid->sharedBytes > MostShared)
    return refuse("a block has at most 227 KiB of shared memory");

  FaultHandler handler;
  count = grid->threads;
  warps.resize(count / WarpSize);
  while (threads.size() < size_t(count))
    threads.emplace_back(stacks, int(threads.size()));
  launchedAt = ++now;
  placeShared(false);
  placeShared(true);
  races::beginLaunch();
  for (int64_t row = 0; row < grid->rows && error.empty(); ++row)
    for (int64_t column = 0; column < grid->columns && error.empty(); ++column) {
      bool forward = schedule.order == Order::Forward;
      blockRow = forward ? row : grid->rows - 1 - row;
      blockColumn = forward ? column : grid->columns - 1 - column;
      placeShared((row + column) % 2 == 0);
      runBlock();
      if (error.empty() && shared->overwritten())
        error = std::string(grid->name) + ": something wrote " + describe(shared->overwritten());
    }
  for (int i = 0; i < count; ++i)
    threads[i].fibre.release();
  running = nullptr;
  if (error.empty()) {
    std::string overwritten = DeviceMemory::get().findOverwritten();
    if (!overwritten.empty())
      error = std::string(grid->name) + ": " + overwritten;
  }
  return error;
}

// Its bytes are undefined at first.
void Machine::placeShared(bool upper) {
  std::unique_ptr<GuardedBytes> &memory = sharedMemories[upper];
  if (!memory || memory->size() != size_t(grid->sharedBytes))
    memory = std::make_unique<GuardedBytes>(size_t(grid->sharedBytes), 128, upper);
  shared = memory.get();
  std::memset(shared->begin(), 0xff, shared->size());
}

const GuardedBytes *Machine::findShared(const void *p) const {
  auto *at = static_cast<const char *>(p);
  bool inside = shared && at >= shared->pages().begin() && at < shared->pages().end();
  return inside || (shared && shared->pages().isGuard(at)) ? shared : nullptr;
}

void Machine::body(void *self) {
  auto *machine = static_cast<Machine *>(self);
  machine->entry(machine->parameters);
  if (!machine->thread().awaited)
    machine->fault([] { return std::string("ends without having awaited the launch before"); });
}

void Machine::runBlock() {
  tk_emulated_current = {0,          count,          blockColumn, blockRow, grid->columns,
                         grid->rows, shared->begin()};
  for (int i = 0; i < count; ++i) {
    Thread &t = threads[i];
    t.started = t.ended = false;
    t.awaited = !grid->beginsEarly;
    t.waitsIn = Operation::None;
    t.copyGroups.clear();
    t.openCopies.clear();
  }
  blockBeganAt = blockMetAt = ++now;
  std::fill(warps.begin(), warps.end(), Warp{Operation::None, 0, 0xffffffffu, now});
  ended = arrived = 0;
  turn = schedule.order == Order::Reverse ? warps.size() - 1 : 0;
  while (Thread *t = next()) {
    resume(*t);
    if (!error.empty())
      return;
  }
  if (ended < count)
    explainDeadlock();
}

// A warp runs until all its lanes wait.
Thread *Machine::next() {
  if (schedule.order == Order::Random)
    turn = random() % warps.size();
  size_t step = schedule.order == Order::Reverse ? warps.size() - 1 : 1;
  for (size_t i = 0; i < warps.size(); ++i, turn = (turn + step) % warps.size()) {
    uint32_t ready = warps[turn].ready;
    if (!ready)
      continue;
    int lane = __builtin_ctz(ready);
    if (schedule.order == Order::Reverse)
      lane = 31 - __builtin_clz(ready);
    else if (schedule.order == Order::Random)
      for (int skip = int(random() % __builtin_popcount(ready)); skip; --skip) {
        ready &= ready - 1;
        lane = __builtin_ctz(ready);
      }
    warps[turn].ready &= ~(1u << lane);
    return &threads[turn * WarpSize + lane];
  }
  return nullptr;
}

void Machine::resume(Thread &t) {
  running = &t;
  tk_emulated_current.index = t.index;
  t.waitsIn = Operation::None;
  if (!t.started) {
    t.started = true;
    t.fibre.start(body, this);
  }
  races::enter(this, t.fibre.memory());
  if (!t.fibre.resume()) {
    t.ended = true;
    ++ended;
  }
  races::enter(nullptr, nullptr);
  running = nullptr;
  if (explainFault)
    fail(&t, explainFault(faultExplanation));
  explainFault = nullptr;
}

void Machine::sync() {
  Thread &t = *running;
  if (++arrived < count) {
    t.waitsIn = Operation::Sync;
    t.fibre.suspend();
    return;
  }
  arrived = 0;
  blockMetAt = ++now;
  for (Warp &warp : warps)
    warp.ready = 0xffffffffu;
  warpOf(t).ready &= ~(1u << t.index % WarpSize);
}

void Machine::meetWarp(Operation operation) {
  Thread &t = *running;
  Warp &warp = warpOf(t);
  Thread *lanes[WarpSize];
  for (int i = 0; i < WarpSize; ++i)
    lanes[i] = &threads[t.index / WarpSize * WarpSize + i];
  if (warp.arrived && warp.operation != operation) {
    auto other = std::find_if(lanes, lanes + WarpSize,
                              [&](Thread *lane) { return lane->waitsIn == warp.operation; });
    fault([&] {
      return std::string("is in ") + nameOf(operation) + " while thread " +
             std::to_string((*other)->index) + " of its warp is in " + nameOf(warp.operation);
    });
  }
  warp.operation = operation;
  if (++warp.arrived < WarpSize) {
    t.waitsIn = operation;
    t.fibre.suspend();
    return;
  }
  warp.arrived = 0;
  warp.ready = ~(1u << t.index % WarpSize);
  switch (operation) {
  case Operation::None:
  case Operation::Sync:
    break;
  case Operation::SyncWarp:
    warp.metAt = ++now;
    break;
  case Operation::Shuffle: {
    uint32_t values[WarpSize];
    for (int i = 0; i < WarpSize; ++i)
      values[i] = lanes[lanes[i]->source & (WarpSize - 1)]->value;
    for (int i = 0; i < WarpSize; ++i)
      lanes[i]->value = values[i];
    break;
  }
  case Operation::Ballot: {
    uint32_t votes = 0;
    for (int i = 0; i < WarpSize; ++i)
      votes |= (lanes[i]->value != 0 ? 1u : 0u) << i;
    for (Thread *lane : lanes)
      lane->value = votes;
    break;
  }
  case Operation::MmaBf16:
  case Operation::MmaHalf:
  case Operation::MmaInt8:
  case Operation::MmaUint8:
    multiply(operation, lanes);
  }
}

// Nobody can run, and not all have ended: the first who waits in vain, and for whom.
void Machine::explainDeadlock() {
  auto explain = [&](const Thread &waiting, const Thread &other, const char *group) {
    fail(&waiting,
         std::string("waits in ") + nameOf(waiting.waitsIn) + ", but thread " +
             std::to_string(other.index) + " of its " + group +
             (other.ended ? " has ended" : std::string(" waits in ") + nameOf(other.waitsIn)));
  };
  for (int i = 0; i < count; ++i) {
    const Thread &t = threads[i];
    if (t.ended || t.waitsIn == Operation::Sync)
      continue;
    for (int j = i / WarpSize * WarpSize; j < (i / WarpSize + 1) * WarpSize; ++j)
      if (threads[j].waitsIn != t.waitsIn)
        return explain(t, threads[j], "warp");
  }
  auto waits = [](const Thread &t) { return t.waitsIn == Operation::Sync; };
  auto waiting = std::find_if(threads.begin(), threads.begin() + count, waits);
  auto other = std::find_if_not(threads.begin(), threads.begin() + count, waits);
  explain(*waiting, *other, "block");
}

void Machine::fail(const Thread *t, const std::string &what) {
  error = std::string(grid->name) + ": block (" + std::to_string(blockColumn) + ", " +
          std::to_string(blockRow) + "), thread " + std::to_string(t->index) + ": " + what;
}

void Machine::leave() {
  running->fibre.suspend();
  __builtin_unreachable(); // nobody resumes it
}

static std::string place(const GuardedBytes &bytes, const char *p, const char *what) {
  std::string size = std::string(what) + " of " + std::to_string(bytes.size()) + " bytes";
  if (p < bytes.begin())
    return std::to_string(bytes.begin() - p) + " bytes before " + size;
  if (p < bytes.end())
    return "at byte " + std::to_string(p - bytes.begin()) + " of " + size;
  return std::to_string(p - bytes.end()) + " bytes behind " + size;
}

std::string Machine::describe(const void *address) const {
  auto *p = static_cast<const char *>(address);
  if (findShared(p))
    return place(*shared, p, "the shared memory");
  if (const GuardedBytes *block = DeviceMemory::get().find(p))
    return place(*block, p, "an allocation");
  char hex[32];
  std::snprintf(hex, sizeof hex, "at address %p", address);
  return hex;
}

// ── device_emulated.h ──────────────────────────────────────────────────────────────────────────

void tk_emulated_sync() { Machine::get().sync(); }
void tk_emulated_sync_warp() { Machine::get().meetWarp(Operation::SyncWarp); }

uint32_t tk_emulated_shuffle(uint32_t v, int32_t lane) {
  Thread &t = Machine::get().thread();
  t.value = v;
  t.source = lane;
  Machine::get().meetWarp(Operation::Shuffle);
  return t.value;
}

uint32_t tk_emulated_ballot(int32_t b) {
  Thread &t = Machine::get().thread();
  t.value = uint32_t(b);
  Machine::get().meetWarp(Operation::Ballot);
  return t.value;
}

// Before an access of the emulator's own on behalf of the running thread.
static void access(const void *p, int bytes, races::Kind kind) {
  if (uintptr_t(p) % size_t(bytes))
    tk_emulated_misaligned(p, bytes);
  races::access(p, bytes, kind);
}

template <typename T> static T update(T *p, T (*change)(T, T), T v) {
  access(p, sizeof(T), races::Atomic);
  T old = *p;
  *p = change(old, v);
  return old;
}
float tk_emulated_add_float(float *p, float v) {
  return update<float>(p, [](float a, float b) { return a + b; }, v);
}
int32_t tk_emulated_add_int(int32_t *p, int32_t v) {
  return update<int32_t>(
      p, [](int32_t a, int32_t b) { return int32_t(uint32_t(a) + uint32_t(b)); }, v);
}
uint64_t tk_emulated_add_long(uint64_t *p, uint64_t v) {
  return update<uint64_t>(p, [](uint64_t a, uint64_t b) { return a + b; }, v);
}
int32_t tk_emulated_max_int(int32_t *p, int32_t v) {
  return update<int32_t>(p, [](int32_t a, int32_t b) { return std::max(a, b); }, v);
}

void tk_emulated_misaligned(const void *p, int32_t bytes) {
  Machine &machine = Machine::get();
  machine.fault([&] {
    return "accesses " + std::to_string(bytes) + " bytes that are not aligned to them, " +
           machine.describe(p);
  });
}

void tk_emulated_await() { Machine::get().thread().awaited = true; }

void tk_emulated_prefetch(const void *p) {
  Machine &machine = Machine::get();
  if (!DeviceMemory::get().open() && !DeviceMemory::get().find(p))
    machine.fault([&] { return "prefetches what is no device memory, " + machine.describe(p); });
}

// What is on its way is seen by nobody: until it has arrived its place holds what no kernel
// expects.
void tk_emulated_copy(void *shared, const void *global) {
  Machine &machine = Machine::get();
  auto *to = static_cast<char *>(shared);
  const GuardedBytes &memory = *machine.sharedMemory();
  if (to < memory.begin() || to + 16 > memory.end())
    machine.fault([&] {
      return "copies to what is not in shared memory: 16 bytes " + machine.describe(shared);
    });
  access(shared, 16, races::Write);
  access(global, 16, races::Read);
  std::memset(shared, 0xff, 16);
  machine.thread().openCopies.push_back({shared, global});
}

void tk_emulated_commit() {
  Thread &t = Machine::get().thread();
  t.copyGroups.push_back(std::move(t.openCopies));
  t.openCopies.clear();
}

void tk_emulated_wait(int32_t pending) {
  Thread &t = Machine::get().thread();
  for (; t.copyGroups.size() > size_t(pending); t.copyGroups.pop_front())
    for (const Copy &copy : t.copyGroups.front()) {
      access(copy.global, 16, races::Read);
      access(copy.shared, 16, races::Write);
      std::memcpy(copy.shared, copy.global, 16);
    }
}

static void mma(Operation operation, void *c, const uint32_t *a, const uint32_t *b) {
  Thread &t = Machine::get().thread();
  t.c = c;
  t.a = a;
  t.b = b;
  Machine::get().meetWarp(operation);
}
void tk_emulated_mma_bf16(float *c, const uint32_t *a, const uint32_t *b) {
  mma(Operation::MmaBf16, c, a, b);
}
void tk_emulated_mma_half(float *c, const uint32_t *a, const uint32_t *b) {
  mma(Operation::MmaHalf, c, a, b);
}
void tk_emulated_mma_int8(int32_t *c, const uint32_t *a, const uint32_t *b) {
  mma(Operation::MmaInt8, c, a, b);
}
void tk_emulated_mma_uint8(int32_t *c, const uint32_t *a, const uint32_t *b) {
  mma(Operation::MmaUint8, c, a, b);
}
