// Data races, misaligned and wild accesses of instrumented kernels.
//
// -fsanitize=thread makes the compiler call __tsan_write4(p) and the like before every access.
// Those functions are defined here (nothing of ThreadSanitizer's is linked), over a memory of who
// was last at each address, and when. Time is one number that grows whenever a block or a warp
// meets:
//
//   accesses of two threads are in order  if one precedes a launch, and the other does not
//                                         or their block met in between
//                                         or they are of one warp, which met in syncWarp() in
//                                         between
//
// If they are not, and at least one writes, and not both are atomic, it is a race. All blocks of a
// launch run at the same time as far as this is concerned.
#ifndef TENON_TEST_EMULATOR_RACES_H
#define TENON_TEST_EMULATOR_RACES_H

#include <cstddef>

namespace tenon::emulator {
class GuardedPages;
class Machine;
} // namespace tenon::emulator

namespace tenon::emulator::races {

enum Kind { Read, Write, Atomic };

// Before the running thread touches `bytes` bytes. Does nothing unless kernels are instrumented.
void access(const void *p, size_t bytes, Kind kind);

// It is the turn of a thread with this stack; null, null: of nobody.
void enter(Machine *machine, const GuardedPages *stack);

// Forgets what earlier launches did.
void beginLaunch();

} // namespace tenon::emulator::races

#endif // TENON_TEST_EMULATOR_RACES_H
