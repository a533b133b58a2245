// The symbol `tenon_compiled` that the generated object defines. In C++ a variable can't share the
// name of its typedef, so we call it something else.
#ifndef TENON_RUNTIME_COMPILED_H
#define TENON_RUNTIME_COMPILED_H

#include "runtime/kernel_abi.h"

extern "C" const tenon_compiled tenonCompiled __asm__("tenon_compiled");

#endif // TENON_RUNTIME_COMPILED_H
