// Device memory: every allocation is 256-byte aligned, between guard pages, lies against the upper
// or the lower one in turn, and the bytes between it and the other hold a pattern.
//
//   | guard |  pattern  allocation | guard |        | guard | allocation  pattern | guard |
#ifndef TENON_TEST_EMULATOR_MEMORY_H
#define TENON_TEST_EMULATOR_MEMORY_H

#include "test/emulator/Fibre.h"
#include <map>
#include <string>

namespace tenon::emulator {

// Bytes between guard pages that start on a multiple of `alignment`.
class GuardedBytes {
public:
  // The upper end, or the lower one, lies against its guard as closely as the alignment allows.
  GuardedBytes(size_t bytes, size_t alignment, bool upper);

  char *begin() const { return first; }
  char *end() const { return first + length; }
  size_t size() const { return length; }
  const GuardedPages &pages() const { return memory; }
  // The first byte of the pattern around it that is no longer what it was; null: all are.
  const char *overwritten() const;
  // How many there have been; what is known of addresses is void when there is one more.
  static uint64_t made();

private:
  GuardedPages memory;
  size_t length;
  char *first;
};

class DeviceMemory {
public:
  static DeviceMemory &get();

  // Undefined at first: 0xff (NaN in every float format), up to a size where that takes long.
  char *allocate(size_t bytes);
  bool free(void *p); // false: no allocation begins there
  // The allocation that holds p, or in whose surroundings it is; null: none.
  const GuardedBytes *find(const void *p) const;
  size_t used() const { return usedBytes; }
  // A line on the first allocation around which something was written; "": there is none.
  std::string findOverwritten() const;
  // Whether kernels may touch what is in no allocation: true as long as there was none.
  bool open() const { return count == 0; }
  // The host's accesses to it fault, or do not.
  void protect(bool on);

private:
  std::map<const char *, std::unique_ptr<GuardedBytes>> allocations; // by their first page
  size_t usedBytes = 0;
  uint64_t count = 0;
};

} // namespace tenon::emulator

#endif // TENON_TEST_EMULATOR_MEMORY_H
