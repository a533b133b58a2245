#include "test/emulator/Memory.h"
#include <cstring>
#include <sys/mman.h>

using namespace tenon::emulator;

static constexpr char Pattern = char(0xa5);
static constexpr size_t MostFilled = size_t(64) << 20;

static uint64_t guardedBytesMade = 0;
uint64_t GuardedBytes::made() { return guardedBytesMade; }

GuardedBytes::GuardedBytes(size_t bytes, size_t alignment, bool upper)
    : memory(bytes + (bytes == 0)), length(bytes) {
  ++guardedBytesMade;
  size_t padded = (bytes + alignment - 1) / alignment * alignment;
  first = upper ? memory.end() - padded : memory.begin();
  std::memset(memory.begin(), Pattern, first - memory.begin());
  std::memset(end(), Pattern, memory.end() - end());
}

const char *GuardedBytes::overwritten() const {
  for (const char *p = memory.begin(); p < first; ++p)
    if (*p != Pattern)
      return p;
  for (const char *p = end(); p < memory.end(); ++p)
    if (*p != Pattern)
      return p;
  return nullptr;
}

DeviceMemory &DeviceMemory::get() {
  static DeviceMemory memory;
  return memory;
}

char *DeviceMemory::allocate(size_t bytes) {
  auto block = std::make_unique<GuardedBytes>(bytes, 256, count++ % 2 == 0);
  if (bytes <= MostFilled)
    std::memset(block->begin(), 0xff, bytes);
  usedBytes += bytes;
  char *result = block->begin();
  allocations.emplace(block->pages().begin(), std::move(block));
  return result;
}

bool DeviceMemory::free(void *p) {
  const GuardedBytes *block = find(p);
  if (!block || block->begin() != p)
    return false;
  usedBytes -= block->size();
  allocations.erase(block->pages().begin());
  return true;
}

const GuardedBytes *DeviceMemory::find(const void *p) const {
  auto *byte = static_cast<const char *>(p);
  auto next = allocations.upper_bound(byte);
  if (next != allocations.begin()) {
    const GuardedBytes &before = *std::prev(next)->second;
    if (byte < before.pages().end() || before.pages().isGuard(byte))
      return &before;
  }
  if (next != allocations.end() && next->second->pages().isGuard(byte))
    return next->second.get();
  return nullptr;
}

std::string DeviceMemory::findOverwritten() const {
  for (const auto &[page, block] : allocations)
    if (const char *p = block->overwritten())
      return "something wrote " +
             (p < block->begin() ? std::to_string(block->begin() - p) + " bytes before"
                                 : std::to_string(p - block->end()) + " bytes behind") +
             " an allocation of " + std::to_string(block->size()) + " bytes";
  return "";
}

void DeviceMemory::protect(bool on) {
  for (const auto &[page, block] : allocations)
    mprotect(block->pages().begin(), block->pages().end() - block->pages().begin(),
             on ? PROT_NONE : PROT_READ | PROT_WRITE);
}
