// Kernels with their shapes: what the programs of a module call.
//
//   tk_linear + {rows: tokens, cols: 576, ...}  ─▶  void tenon_avx2.norm_qkv.tk_linear(io, env)
//
// Each becomes one function of the executable, in which the shape is a constant, however many
// stages and programs call it: a model has a handful of shapes and hundreds of stages.
#ifndef TENON_CODEGEN_SPECIALISATION_H
#define TENON_CODEGEN_SPECIALISATION_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/Module.h"
#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

struct Specialisation {
  std::string symbol;
  std::string function; // a tenon_kernel: "tk_linear"
  std::vector<uint8_t> shape;
};

class SpecialisationSet {
public:
  // Symbols begin with `prefix`: "tenon_avx2".
  explicit SpecialisationSet(llvm::StringRef prefix) : prefix(prefix) {}

  // The symbol of a kernel with a shape. It tells a profile which stage asked first: `kernel` is
  // the stage's; the program is named only where programs need different code for it.
  std::string get(llvm::StringRef function, llvm::ArrayRef<uint8_t> shape, llvm::StringRef kernel,
                  llvm::StringRef program);

  // In the order in which they were first asked for.
  llvm::ArrayRef<Specialisation> getAll() const { return all; }

private:
  std::string prefix;
  std::vector<Specialisation> all;
  llvm::StringMap<size_t> known; // function and shape → index
  llvm::StringSet<> symbols;
};

// Defines the function in `module`: it calls the kernel, which is declared there unless it is
// defined already and is inlined into it.
void emitSpecialisation(const Specialisation &specialisation, llvm::Module &module);

// The function as another module sees it.
llvm::Function *declareSpecialisation(llvm::StringRef symbol, llvm::Module &module);

} // namespace tenon

#endif // TENON_CODEGEN_SPECIALISATION_H
