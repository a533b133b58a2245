// The order of the passes, with named points where plugins may insert theirs.
#ifndef TENON_PASSES_PIPELINE_H
#define TENON_PASSES_PIPELINE_H

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <string>
#include <vector>

namespace tenon {

// A pass, with options in braces if it has any, at an extension point.
struct Insertion {
  std::string point, pass;
};

// The names of the points, in the order of the pipeline: "after-simplify", ...
std::vector<llvm::StringRef> getExtensionPoints();
// "after-fuse:my-pass{limit=2}". The pass must be registered.
llvm::Expected<Insertion> parseInsertion(llvm::StringRef text);

struct PipelineOptions {
  std::string precision = "stored";
  std::string cacheType = "f32";
  bool pack = true;                  // the backend reads packed matrices
  bool keepRows = false;             // of 16-bit elements row by row
  std::vector<std::string> disabled; // passes left out
  std::vector<Insertion> insertions; // those of one point run in this order
  // Called after the insertions of each extension point with its name.
  std::function<void(llvm::StringRef point, mlir::OpPassManager &)> atPoint;
};

// Phases in order; `tenon compile --emit` and `--dump-phases` name them.
enum class Phase { textbook, cache, specialise, fuse, attention, weights, schedule };

// Appends the passes of phases up to and including `last`.
void buildPipeline(mlir::OpPassManager &manager, const PipelineOptions &options,
                   Phase last = Phase::schedule);

// The passes that only make a program faster, in pipeline order: it means the same without them.
std::vector<std::string> getOptionalPasses();

// All passes, so that they can be named.
void registerAllPasses();

} // namespace tenon

#endif // TENON_PASSES_PIPELINE_H
