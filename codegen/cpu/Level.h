// Instruction set levels for which Tenon carries kernels.
#ifndef TENON_CODEGEN_CPU_LEVEL_H
#define TENON_CODEGEN_CPU_LEVEL_H

#include "codegen/ObjectEmitter.h"
#include "llvm/ADT/ArrayRef.h"

namespace tenon::cpu {

struct Level {
  llvm::StringLiteral name;     // as --mcpu takes it
  llvm::StringLiteral bitcode;  // kernels/<bitcode>.bc
  llvm::StringLiteral cpu;      // LLVM's base processor
  llvm::StringLiteral features; // LLVM's, on top of it
  llvm::StringLiteral required; // what /proc/cpuinfo must show
};

// Best first.
llvm::ArrayRef<Level> getLevels();

// Levels named by --mcpu: "native" is the best that this machine runs, the best without tiles where
// that one needs them, and x86-64-v3 as a fallback; duplicates are dropped.
llvm::Expected<llvm::SmallVector<const Level *>> selectLevels(llvm::ArrayRef<std::string> names);

} // namespace tenon::cpu

#endif // TENON_CODEGEN_CPU_LEVEL_H
