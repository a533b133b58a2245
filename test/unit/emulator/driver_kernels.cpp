// An image as the code generator makes it: kernels with constant shapes.
#include "codegen/cuda/kernels/device.h"

struct AddShape {
  int32_t count, summand;
};

TK_DEVICE void add(const AddShape &s, const tk_args &args) {
  for (int i = tk::threadIndex(); i < s.count; i += tk::threadCount())
    ((int32_t *)args.io[0])[i] += s.summand;
}

static constexpr int words[] = {64, 3};
TK_SPECIALISE(add3, add, AddShape, 64, words)
static constexpr int tooMany[] = {65, 3};
TK_SPECIALISE(addBehind, add, AddShape, 64, tooMany)
