// Runs functions by their meaning, in this process: one operation after another, each by the code
// that its decomposition compiles to.
//
//   func.func        rows, batch, cache ─▶ operation ─▶ operation ─▶ results, cache
//   sched.program    the same for its stages, on the arena that sched-plan-buffers laid out
//
// The two share nothing but kernels: stages run in the order that the barriers leave free, from the
// last to the first between two of them, so that a missing barrier and two buffers that overlap
// give wrong numbers.
#ifndef TENON_CODEGEN_REFERENCE_REFERENCEENGINE_H
#define TENON_CODEGEN_REFERENCE_REFERENCEENGINE_H

#include "codegen/reference/HostBatch.h"
#include "codegen/reference/KernelJit.h"
#include "codegen/reference/WeightValues.h"
#include "mlir/IR/BuiltinOps.h"

namespace tenon {

// What a function takes and gives beside the batch.
struct FunctionShape {
  std::vector<int64_t> rows;        // columns of each rows argument
  bool readsMemory = false;         // the last of them are an encoder's rows
  llm::CacheType cache, memory;     // of its own tokens, and of an encoder's; null: none
  std::vector<std::string> results; // the names of the rows results
  bool isDecode = false;            // takes exactly one token of each sequence
};

class ReferenceEngine {
public:
  explicit ReferenceEngine(uint64_t seed) : weights(seed) {}

  // Refuses what cannot be run: several blocks, arguments of other types.
  static llvm::Expected<FunctionShape> getShape(mlir::Operation *function);

  // Before functions of a module are run: forgets weights that it lacks.
  llvm::Error begin(mlir::ArrayRef<mlir::Operation *> functions);

  struct Outcome {
    std::vector<HostRows> results;
    HostCache cache, memory; // after the function
  };
  // `function` is a func.func whose weights are not arguments, or a sched.program. An error with
  // std::errc::result_out_of_range tells that the program itself is wrong.
  llvm::Expected<Outcome> run(mlir::Operation *function, const HostBatch &batch,
                              const std::vector<HostRows> &rows, const HostCache &cache,
                              const HostCache &memory = {});

private:
  KernelJit kernels;
  WeightValues weights;
};

} // namespace tenon

#endif // TENON_CODEGEN_REFERENCE_REFERENCEENGINE_H
