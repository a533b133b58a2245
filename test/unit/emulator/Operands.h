// Small kernels for the emulator's own tests, compiled as kernels are (emulated_kernels.cpp).
#ifndef TENON_TEST_EMULATOR_OPERANDS_H
#define TENON_TEST_EMULATOR_OPERANDS_H

#include "test/emulator/Emulator.h"

// What every one of them gets.
struct Operands {
  char *in = nullptr, *out = nullptr;
  int64_t value = 0;
};

tenon::emulator::Entry findKernel(const char *name);

#endif // TENON_TEST_EMULATOR_OPERANDS_H
