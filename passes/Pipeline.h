// The order of the passes, with named points where plugins may insert theirs.
#ifndef TENON_PASSES_PIPELINE_H
#define TENON_PASSES_PIPELINE_H

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringRef.h"
#include <functional>
#include <string>
#include <vector>

namespace tenon {

struct PipelineOptions {
  std::string precision = "stored";
  std::string cacheType = "f32";
  bool pack = true;                  // the backend reads packed matrices
  std::vector<std::string> disabled; // passes left out
  // Called at each extension point with its name, so that passes can be inserted there.
  std::function<void(llvm::StringRef point, mlir::OpPassManager &)> atPoint;
};

// Phases in order; `tenon compile --emit` and `--dump-phases` name them.
enum class Phase { textbook, cache, specialise, fuse, attention, weights, schedule };

// Appends the passes of phases up to and including `last`.
void buildPipeline(mlir::OpPassManager &manager, const PipelineOptions &options,
                   Phase last = Phase::schedule);

// All passes and the pipeline `tenon-pipeline`, by name.
void registerAllPasses();

} // namespace tenon

#endif // TENON_PASSES_PIPELINE_H
