// tenon-reduce: shrinks a module that shows a bug.
//
//   tenon-reduce bad.mlir --test-numerically=PIPELINE [--load-plugin=my-passes.so]
//       while the same pass of the pipeline changes what the module computes
//   tenon-reduce bad.mlir --test=script.sh
//       while script.sh, called with a file, exits with 1 (as for mlir-reduce)
#include "codegen/reference/Reduction.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Reducer/Tester.h"
#include "mlir/Support/FileUtilities.h"
#include "plugin/Loader.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
namespace cl = llvm::cl;

static int refuse(const llvm::Twine &message) {
  llvm::errs() << "tenon-reduce: " << message << '\n';
  return 1;
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  if (!tenon::setUpTool(argc, argv, registry))
    return 1;
  cl::opt<std::string> input(cl::Positional, cl::desc("<input file>"), cl::init("-"));
  cl::opt<std::string> output("o", cl::desc("Output file"), cl::init("-"));
  cl::opt<std::string> pipeline("test-numerically",
                                cl::desc("Passes of which one changes what the module computes"));
  cl::opt<std::string> script("test", cl::desc("A script that exits with 1 on what to look for"));
  cl::ParseCommandLineOptions(argc, argv, "Tenon test case reducer\n");
  if (pipeline.empty() == script.empty())
    return refuse("say what to look for: --test-numerically=PIPELINE or --test=SCRIPT");

  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(input.getValue(), &context);
  if (!module)
    return 1;

  if (script.empty()) {
    llvm::Expected<std::string> message = tenon::reduceNumerically(module, pipeline);
    if (!message)
      return refuse(llvm::toString(message.takeError()));
    llvm::errs() << *message << '\n';
  } else {
    Tester tester(script, {});
    auto isInteresting = [&](ModuleOp variant) {
      return tester.isInteresting(variant).first == Tester::Interestingness::True;
    };
    if (!isInteresting(*module))
      return refuse(script + " does not exit with 1 on " + input);
    tenon::reduceModule(module, isInteresting);
  }
  std::string error;
  auto file = openOutputFile(output, &error);
  if (!file)
    return refuse(error);
  module->print(file->os());
  file->os() << '\n';
  file->keep();
  return 0;
}
