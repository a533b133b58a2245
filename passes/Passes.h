// The passes of Passes.td and the pipeline made of them.
#ifndef TENON_PASSES_PASSES_H
#define TENON_PASSES_PASSES_H

#include "ir/Sched.h"
#include "mlir/Pass/Pass.h"
#include "passes/Promise.h"

namespace tenon {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace tenon

#endif // TENON_PASSES_PASSES_H
