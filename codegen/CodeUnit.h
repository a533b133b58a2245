// Code that is optimised and emitted by itself.
//
//   programs ──────────┐
//   tk_linear + shape ─┼─ each in a context of its own ─▶ complete ─▶ O3 ─▶ object
//   tk_linear + shape ─┘        on whichever thread is free
//
// A unit is a function of its input alone, so objects do not depend on the number of threads. Small
// units are also quicker than one large module: a kernel with one caller is simplified for that
// caller's shape before anything is inlined into it.
#ifndef TENON_CODEGEN_CODEUNIT_H
#define TENON_CODEGEN_CODEUNIT_H

#include "codegen/ObjectEmitter.h"
#include "llvm/IR/LLVMContext.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tenon {

enum class CodeForm { object, text };

// Kernels are worth every pass. Programs are glue: long, straight, a microsecond of a token, and
// instruction selection that looks at whole blocks takes its time over them.
enum class Effort { kernel, glue };

class CodeUnit {
public:
  // Everything of `module` but functions called tenon_... is internal to it.
  CodeUnit(llvm::StringRef name, CpuTarget target, Effort effort = Effort::kernel);

  const CpuTarget &getTarget() const { return target; }
  llvm::Module &getModule() { return *module; }

  // What is left to do where the unit is compiled, such as linking kernels. Another thread calls
  // it: it uses nothing that changes but this unit's module.
  std::function<llvm::Error(llvm::Module &)> complete;

  // The object, or the optimised module as bitcode.
  llvm::Expected<std::string> compile(CodeForm form);
  // Frees the module: there may be many.
  void release() {
    module.reset();
    context.reset();
  }

private:
  CpuTarget target;
  Effort effort;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
};

// Compiles units side by side, on as many threads as there are CPUs. Gives an object for each; as
// text, one module for each target. The error is that of the first unit that has one.
llvm::Expected<std::vector<std::string>> compileUnits(std::vector<CodeUnit> units, CodeForm form);

} // namespace tenon

#endif // TENON_CODEGEN_CODEUNIT_H
