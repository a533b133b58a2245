// From a textbook module to a file that runs: the pipeline, the backend, the linker and the
// artefact in order.
#ifndef TENON_CODEGEN_COMPILE_H
#define TENON_CODEGEN_COMPILE_H

#include "codegen/Backend.h"
#include "ir/WeightSource.h"
#include "passes/Pipeline.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tenon {

// What the executable shall know about its model; becomes its `meta` section.
struct ModelFacts {
  std::string name, architecture, digest;
  int64_t parameters = 0;
  std::vector<int64_t> eos;
  std::vector<std::string> stop;
  std::optional<int64_t> decoderStart;
  std::vector<uint8_t> tokenizer;
};

struct CompileOptions {
  std::string target = "cpu";
  std::string precision = "stored";
  std::string cacheType; // empty: the default of target and precision
  std::string emit = "exe";
  std::string output;
  bool sidecar = false; // weights in a file beside the output
  TargetOptions machine;
  std::string libraryFolder; // with the runtime's archives
  std::string licences;      // text of the `licenses` section
  std::string onednnPath;
  std::vector<std::string> disabledPasses;
  std::vector<Insertion> insertions; // passes of plugins
  // The plugin that brought a pass; empty for Tenon's own.
  std::function<std::string(llvm::StringRef pass)> getPlugin = [](llvm::StringRef) { return ""; };
  std::string dumpFolder;         // write the IR after each phase there
  bool verifyNumerically = false; // run the module before and after each pass and compare
  std::function<void(llvm::StringRef)> progress;
  // Sees the module at each point of the pipeline.
  std::function<void(llvm::StringRef point, mlir::ModuleOp)> atPoint;
  // May add instrumentation before the passes run.
  std::function<void(mlir::PassManager &)> beforePasses;
};

// Compiles and writes `output`, or standard output for IR when it is "-". `weights` may be null for
// IR.
llvm::Error compileModel(mlir::ModuleOp module, WeightSource *weights, const ModelFacts &facts,
                         const CompileOptions &options);

// Only the passes up to and including `last`, as the target wants them.
llvm::Error runPasses(mlir::ModuleOp module, const CompileOptions &options, Phase last);

} // namespace tenon

#endif // TENON_CODEGEN_COMPILE_H
