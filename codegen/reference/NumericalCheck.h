// Checks every pass by its numbers: the module before and after it is run on the same seeded
// batches, and what differs is an error.
#ifndef TENON_CODEGEN_REFERENCE_NUMERICALCHECK_H
#define TENON_CODEGEN_REFERENCE_NUMERICALCHECK_H

#include "mlir/Pass/PassManager.h"
#include <functional>

namespace tenon {

class Observer;

struct NumericalCheckOptions {
  uint64_t seed = 1;
  // Shared by checks of many modules, so that equal kernels are compiled once; null: its own.
  std::shared_ptr<Observer> observer;
  // Told of a broken promise, beside the error.
  std::function<void(llvm::StringRef)> broken;
  // Told of every pass that changed the module: "checked llm-split-phases".
  std::function<void(llvm::StringRef)> progress;
};

// From now on a pass of `manager` that breaks its promise (passes/Promise.h) fails with one error:
//
//   llm-bad: changes what @decode computes: result "logits" row 2 column 17: 0.1342 before, 0.0911
//   after (error 4.3e-02 of 1.2e-04 allowed; seed 1, sequences 3+1+16 and 1 step)
//
// A function that cannot be run is a warning, "not checked". Turns off the context's threads.
void addNumericalCheck(mlir::PassManager &manager, NumericalCheckOptions options = {});

} // namespace tenon

#endif // TENON_CODEGEN_REFERENCE_NUMERICALCHECK_H
