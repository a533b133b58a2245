// The subcommands of `tenon`. Each adds itself to the command line and says what to do when it was
// chosen.
#ifndef TENON_TOOLS_COMMAND_H
#define TENON_TOOLS_COMMAND_H

#include "codegen/Compile.h"
#include "frontend/Frontend.h"
#include <CLI/CLI.hpp>

namespace tenon {

// What every command that reads a model takes.
struct ModelArguments {
  std::string path;
  std::vector<std::string> sets, plugins;
  ModelOptions options;

  void add(CLI::App &app);
  // Loads the plugins, splits the sets and fills in where the models lie.
  llvm::Expected<ModelOptions> resolve() const;
  llvm::Expected<Model> load(mlir::MLIRContext &context, bool needWeights = true) const;
};

// What every command that compiles takes.
struct CompileArguments {
  ModelArguments model;
  CompileOptions options;
  std::string weightsForm = "appended";
  std::string cpus = "native";
  std::vector<std::string> insertions; // POINT:PASS
  std::vector<std::string> remarks;    // kinds to print: "missed", "passed"
  bool time = false;                   // say where it went
  int64_t timeTokens = 512;
  bool bundleOneDnn = false;                    // put it beside the output
  std::function<void(mlir::ModuleOp)> onLoaded; // may change the textbook module

  void add(CLI::App &app);
  // What can be left out, in pipeline order: Tenon's passes and those of plugins. The model's
  // plugins are loaded by `model.resolve` and `model.load`.
  std::vector<std::string> listOptionalPasses() const;
  // Loads the model and compiles it to `output`.
  llvm::Error compile(const std::string &output, bool isQuiet);
  // Puts oneDNN beside `output`.
  llvm::Error bundle(const std::string &output, bool isText) const;
};

// Ends `tenon` with exit code 1 without a message.
struct Silent : llvm::ErrorInfo<Silent> {
  static char ID;
  void log(llvm::raw_ostream &) const override {}
  std::error_code convertToErrorCode() const override {
    return std::make_error_code(std::errc::invalid_argument);
  }
};

using Action = std::function<llvm::Error()>;
Action addBisect(CLI::App &app);
Action addCompare(CLI::App &app);
Action addCompile(CLI::App &app);
Action addDiff(CLI::App &app);
Action addGraph(CLI::App &app);
Action addImport(CLI::App &app);
Action addNew(CLI::App &app);
Action addRun(CLI::App &app);
Action addPlan(CLI::App &app);
Action addPlugins(CLI::App &app);
Action addTokenize(CLI::App &app);

} // namespace tenon

#endif // TENON_TOOLS_COMMAND_H
