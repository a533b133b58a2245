// tenon-reduce: shrinks a module that shows a bug.
//
//   tenon-reduce bad.mlir --test-numerically=PIPELINE [--load-pass-plugin=my-passes.so]
//       until what is left is all that --verify-each-numerically needs to fail in the same pass
//   tenon-reduce bad.mlir --reduction-tree='traversal-mode=0 test=script.sh'
//       as mlir-reduce does: until script.sh no longer exits with 1
#include "codegen/reference/Reduction.h"
#include "ir/Sched.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "passes/Pipeline.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
namespace cl = llvm::cl;

static int refuse(const llvm::Twine &message) {
  llvm::errs() << "tenon-reduce: " << message << '\n';
  return 1;
}

static int reduce(int argc, char **argv, MLIRContext &context) {
  cl::opt<std::string> input(cl::Positional, cl::desc("<input file>"), cl::init("-"));
  cl::opt<std::string> output("o", cl::desc("Output file"), cl::init("-"));
  cl::opt<std::string> pipeline("test-numerically", cl::desc("Passes of which one is wrong"));
  cl::list<std::string> plugins("load-pass-plugin", cl::desc("Plugins with passes"));
  cl::ParseCommandLineOptions(argc, argv, "Tenon test case reducer\n");
  for (const std::string &path : plugins) {
    llvm::Expected<PassPlugin> plugin = PassPlugin::load(path);
    if (!plugin)
      return refuse(llvm::toString(plugin.takeError()));
    plugin->registerPassRegistryCallbacks();
  }
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(input.getValue(), &context);
  if (!module)
    return 1;
  llvm::Expected<std::string> message = tenon::reduceNumerically(module, pipeline);
  if (!message)
    return refuse(llvm::toString(message.takeError()));
  std::string error;
  auto file = openOutputFile(output, &error);
  if (!file)
    return refuse(error);
  module->print(file->os());
  file->os() << '\n';
  file->keep();
  llvm::errs() << *message << '\n';
  return 0;
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  tenon::registerDialects(registry);
  tenon::registerReductions(registry);
  tenon::registerAllPasses();
  MLIRContext context(registry);
  for (char *argument : llvm::ArrayRef(argv, argc))
    if (llvm::StringRef(argument).ltrim('-').starts_with("test-numerically"))
      return reduce(argc, argv, context);
  return asMainReturnCode(mlirReduceMain(argc, argv, context));
}
