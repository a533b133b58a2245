// The two backends: what every thread does in a step, as data and as a program to read.
#ifndef BACKEND_TRACE_TRACE_H
#define BACKEND_TRACE_TRACE_H

#include "TenonPlugin.h"
#include "ir/Sched.h"

namespace trace {

// {"weights": [...], "programs": {"prefill": {"stages": [...]}, "decode": ...}}
std::string toJson(mlir::ModuleOp module);
// void decode(const batch *b, char *arena, ...) { norm_qkv(...); barrier(); ... }
std::string toC(mlir::ModuleOp module);

} // namespace trace

#endif // BACKEND_TRACE_TRACE_H
