// Running the kernels of emulated_kernels.cpp on memory of the emulator's.
#ifndef TENON_TEST_EMULATOR_EMULATED_H
#define TENON_TEST_EMULATOR_EMULATED_H

#include "Operands.h"
#include "test/emulator/Memory.h"
#include <gmock/gmock.h>
#include <string>

// Runs the kernel of that name and returns the emulator's line, "" for none.
std::string runKernel(const char *name, Operands operands, tenon::emulator::Grid grid = {},
                      tenon::emulator::Schedule schedule = {});

inline tenon::emulator::Grid blocks(int64_t columns, int32_t threads, int64_t sharedBytes = 0) {
  tenon::emulator::Grid grid;
  grid.columns = columns;
  grid.threads = threads;
  grid.sharedBytes = sharedBytes;
  return grid;
}

// An array in device memory.
template <typename T> class Array {
public:
  explicit Array(size_t count, T value = T())
      : count(count), memory(reinterpret_cast<T *>(
                          tenon::emulator::DeviceMemory::get().allocate(count * sizeof(T)))) {
    std::fill_n(memory, count, value);
  }
  ~Array() { tenon::emulator::DeviceMemory::get().free(memory); }
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;

  T &operator[](size_t i) { return memory[i]; }
  char *data() { return reinterpret_cast<char *>(memory); }
  size_t size() const { return count; }

private:
  size_t count;
  T *memory;
};

#endif // TENON_TEST_EMULATOR_EMULATED_H
