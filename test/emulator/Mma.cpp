// mma.sync m16n8k16 (bf16, f16) and m16n8k32 (int8): which lane holds which elements is PTX's,
// drawn in device.h. Products of 16-bit floats are exact in float; their sums are rounded once for
// each element of c, from double.
#include "test/emulator/Machine.h"

using namespace tenon::emulator;

namespace {

// Elements of a register: 2 or 4 of them.
float element(Operation operation, bool isA, uint32_t word, int i) {
  switch (operation) {
  case Operation::MmaBf16:
    return i ? tk::bf16High(word) : tk::bf16Low(word);
  case Operation::MmaHalf:
    return i ? tk::halfHigh(word) : tk::halfLow(word);
  case Operation::MmaUint8:
    if (isA)
      return float(uint8_t(word >> 8 * i));
    [[fallthrough]];
  default:
    return float(int8_t(word >> 8 * i));
  }
}

// `Depth` is K, `Each` the elements of a register. Sums of bytes are exact in float, too.
template <int Depth, int Each, typename C, typename Sum>
void multiplyAs(Operation operation, Thread *const *lanes) {
  float a[16][Depth], b[8][Depth];
  for (int lane = 0; lane < WarpSize; ++lane) {
    int g = lane / 4, t = lane % 4;
    for (int i = 0; i < Each; ++i)
      for (int half = 0; half < 2; ++half) {
        int k = half * Depth / 2 + Each * t + i;
        a[g][k] = element(operation, true, lanes[lane]->a[2 * half], i);
        a[g + 8][k] = element(operation, true, lanes[lane]->a[2 * half + 1], i);
        b[g][k] = element(operation, false, lanes[lane]->b[half], i);
      }
  }
  for (int lane = 0; lane < WarpSize; ++lane)
    for (int i = 0; i < 4; ++i) {
      int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      C &c = static_cast<C *>(lanes[lane]->c)[i];
      Sum sum = Sum(c);
      for (int k = 0; k < Depth; ++k)
        sum += Sum(a[row][k] * b[column][k]);
      c = C(sum);
    }
}

} // namespace

void tenon::emulator::multiply(Operation operation, Thread *const *lanes) {
  if (operation == Operation::MmaBf16 || operation == Operation::MmaHalf)
    multiplyAs<16, 2, float, double>(operation, lanes);
  else
    multiplyAs<32, 4, int32_t, int64_t>(operation, lanes);
}
