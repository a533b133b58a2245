#include "test/emulator/Races.h"
#include "test/emulator/Machine.h"
#include <cstring>
#include <dlfcn.h>
#include <iterator>
#include <unordered_map>

using namespace tenon::emulator;
using races::Kind;

namespace {

// Who, and when: time << 12 | flags | index of the thread. 0: nobody.
using Stamp = uint64_t;
constexpr Stamp AtomicFlag = 1 << 10, ManyFlag = 1 << 11;
uint64_t timeOf(Stamp s) { return s >> 12; }
int threadOf(Stamp s) { return int(s & 1023); }
int warpOf(Stamp s) { return threadOf(s) / WarpSize; }

// What happened at an address since it was last written. To find every reader that a write races
// with, three of the block's are enough, and the launch's first.
struct Cell {
  Stamp write = 0;
  Stamp read = 0;      // the last
  Stamp otherWarp = 0; // the last of another warp than `read`
  Stamp otherLane = 0; // the last of another lane of the same warp
  Stamp first = 0;
};

constexpr size_t PageBytes = 4096, PageWords = PageBytes / 4, MostPages = 8192;

// Words are followed as a whole until some thread touches a part of one.
struct Page {
  const char *lower = nullptr, *upper = nullptr; // what of it may be touched
  bool shared = false;                           // what other blocks did was elsewhere
  bool constant = false;                         // of a module
  Cell words[PageWords];
  std::unordered_map<size_t, Cell[4]> parts;
};

std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
// Those that were looked for last.
struct {
  uintptr_t number = UINTPTR_MAX;
  Page *page = nullptr;
} recent[256];
uint64_t layout = 0;
bool instrumented = false;
// The thread whose turn it is, if it is one's.
Machine *running = nullptr;
uintptr_t stackBegin = 0;
size_t stackBytes = 0;

class Access {
public:
  Access(Machine &machine, const char *p, size_t bytes, Kind kind)
      : machine(machine), t(machine.thread()), p(p), bytes(bytes), kind(kind) {
    stamp = machine.now << 12 | Stamp(t.index);
  }

  void run() {
    checkPlace();
    for (const char *at = p, *end = p + bytes; at < end;) {
      Page &page = pageOf(at);
      since = page.shared ? machine.blockBeganAt : machine.launchedAt;
      size_t offset = uintptr_t(at) % PageBytes, word = offset / 4;
      bool whole = offset % 4 == 0 && end - at >= 4;
      auto parts = page.parts.end();
      if (!page.parts.empty() || !whole)
        parts = page.parts.find(word);
      if (parts == page.parts.end() && !whole) {
        parts = page.parts.try_emplace(word).first;
        std::fill_n(parts->second, 4, page.words[word]);
      }
      if (parts == page.parts.end()) {
        touch(page.words[word], at);
        at += 4;
      } else {
        touch(parts->second[offset % 4], at);
        ++at;
      }
    }
  }

private:
  Page &pageOf(const char *at) {
    uintptr_t number = uintptr_t(at) / PageBytes;
    auto &slot = recent[number % std::size(recent)];
    if (slot.number == number)
      return *slot.page;
    std::unique_ptr<Page> &page = pages[number];
    if (!page) {
      page = std::make_unique<Page>();
      findBounds(at, *page);
    }
    slot = {number, page.get()};
    return *page;
  }

  // Shared memory and allocations have pages of their own.
  void findBounds(const char *at, Page &page) {
    const GuardedBytes *block = machine.findShared(at);
    page.shared = block != nullptr;
    if (!block)
      block = DeviceMemory::get().find(at);
    Dl_info info;
    page.constant = !block && dladdr(at, &info);
    if (block) {
      page.lower = block->begin();
      page.upper = block->end();
    } else if (DeviceMemory::get().open() || page.constant) {
      page.lower = nullptr;
      page.upper = reinterpret_cast<const char *>(UINTPTR_MAX);
    }
  }

  void checkPlace() {
    bool isWord = bytes <= 16 && (bytes & (bytes - 1)) == 0;
    if (isWord && uintptr_t(p) % bytes)
      tk_emulated_misaligned(p, int32_t(bytes));
    const Page &page = pageOf(p);
    if (!page.upper)
      machine.fault([&] { return verb() + "what is no device memory, " + machine.describe(p); });
    if (!t.awaited && !page.shared && !page.constant && !isParameter())
      machine.fault(
          [&] { return verb() + machine.describe(p) + " before it awaited the launch before"; });
    if (p < page.lower || p + bytes > page.upper)
      machine.fault(
          [&] { return verb() + std::to_string(bytes) + " bytes " + machine.describe(p); });
  }

  bool isParameter() const {
    return uintptr_t(p) - uintptr_t(machine.grid->constants) <
           uintptr_t(machine.grid->constantBytes);
  }

  std::string verb() const {
    return kind == races::Read ? "reads " : kind == races::Write ? "writes " : "updates ";
  }

  // Whether the running thread cannot know that it comes behind `other`.
  bool races(Stamp other) const {
    uint64_t then = timeOf(other);
    if (then < since)
      return false;
    if (then < machine.blockBeganAt) // another block's
      return true;
    if (then < machine.blockMetAt)
      return false;
    if (other & ManyFlag)
      return true;
    int thread = threadOf(other);
    if (thread == t.index)
      return false;
    return warpOf(other) != t.index / WarpSize || then >= machine.warpOf(t).metAt;
  }

  void refuse(Stamp other, const char *at, const char *did) const {
    machine.fault([&] {
      std::string who = timeOf(other) < machine.blockBeganAt ? "another block"
                        : other & ManyFlag ? "other threads"
                                           : "thread " + std::to_string(threadOf(other));
      return "a race: " + verb() + machine.describe(at) + ", which " + who + " " + did +
             " without a barrier in between";
    });
  }

  void touch(Cell &cell, const char *at) {
    if (kind == races::Read && cell.read == stamp)
      return;
    if (!(kind == races::Atomic && cell.write & AtomicFlag) && races(cell.write))
      refuse(cell.write, at, "wrote");
    if (kind == races::Read)
      return addReader(cell);
    for (Stamp reader : {cell.read, cell.otherWarp, cell.otherLane, cell.first})
      if (races(reader))
        refuse(reader, at, "read");
    Stamp before = cell.write;
    cell = Cell();
    cell.write = stamp;
    if (kind == races::Atomic) {
      cell.write |= AtomicFlag;
      if (before & AtomicFlag && races(before))
        cell.write = timeOf(before) < machine.blockBeganAt
                         ? machine.launchedAt << 12 | AtomicFlag // stands for another block
                         : cell.write | ManyFlag;
    }
  }

  void addReader(Cell &cell) {
    if (timeOf(cell.first) < since)
      cell.first = stamp;
    if (timeOf(cell.read) < machine.blockBeganAt) {
      cell.otherWarp = cell.otherLane = 0;
    } else if (warpOf(cell.read) != warpOf(stamp)) {
      cell.otherWarp = cell.read;
      cell.otherLane = 0;
    } else if (threadOf(cell.read) != t.index) {
      cell.otherLane = cell.read;
    }
    cell.read = stamp;
  }

  Machine &machine;
  const Thread &t;
  const char *p;
  size_t bytes;
  Kind kind;
  Stamp stamp;
  uint64_t since = 0; // what was before is in order with everything
};

} // namespace

[[gnu::noinline]] static void accessMemory(const void *p, size_t bytes, Kind kind) {
  Access(*running, static_cast<const char *>(p), bytes, kind).run();
}

void races::access(const void *p, size_t bytes, Kind kind) {
  // Most accesses are to the thread's own stack, or ask where it is.
  if (!instrumented || !running || uintptr_t(p) - stackBegin < stackBytes ||
      uintptr_t(p) - uintptr_t(&tk_emulated_current) < sizeof tk_emulated_current)
    return;
  accessMemory(p, bytes, kind);
}

void races::enter(Machine *machine, const GuardedPages *stack) {
  running = machine;
  stackBegin = machine ? uintptr_t(stack->begin()) : 0;
  stackBytes = machine ? size_t(stack->end() - stack->begin()) : 0;
}

void races::beginLaunch() {
  if (layout == GuardedBytes::made() && pages.size() <= MostPages)
    return;
  layout = GuardedBytes::made();
  pages.clear();
  for (auto &slot : recent)
    slot = {};
}

// ── what -fsanitize=thread calls ───────────────────────────────────────────────────────────────

extern "C" {
void __tsan_init() { instrumented = true; }
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
#define TENON_HOOKS(bytes)                                                                         \
  void __tsan_read##bytes(void *p) { races::access(p, bytes, races::Read); }                       \
  void __tsan_write##bytes(void *p) { races::access(p, bytes, races::Write); }                     \
  void __tsan_read_write##bytes(void *p) { races::access(p, bytes, races::Write); }                \
  void __tsan_unaligned_read##bytes(void *p) { races::access(p, bytes, races::Read); }             \
  void __tsan_unaligned_write##bytes(void *p) { races::access(p, bytes, races::Write); }           \
  void __tsan_unaligned_read_write##bytes(void *p) { races::access(p, bytes, races::Write); }
TENON_HOOKS(1)
TENON_HOOKS(2)
TENON_HOOKS(4)
TENON_HOOKS(8)
TENON_HOOKS(16)
#undef TENON_HOOKS
void __tsan_read_range(void *p, size_t bytes) { races::access(p, bytes, races::Read); }
void __tsan_write_range(void *p, size_t bytes) { races::access(p, bytes, races::Write); }
void *__tsan_memcpy(void *to, const void *from, size_t bytes) {
  races::access(from, bytes, races::Read);
  races::access(to, bytes, races::Write);
  return std::memcpy(to, from, bytes);
}
void *__tsan_memmove(void *to, const void *from, size_t bytes) {
  races::access(from, bytes, races::Read);
  races::access(to, bytes, races::Write);
  return std::memmove(to, from, bytes);
}
void *__tsan_memset(void *to, int value, size_t bytes) {
  races::access(to, bytes, races::Write);
  return std::memset(to, value, bytes);
}
}
