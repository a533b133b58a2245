// tenon-opt: runs passes over IR text, as mlir-opt does; with --verify-each-numerically each pass
// is checked by what the module computes.
#include "codegen/reference/NumericalCheck.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "plugin/Loader.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

// As MlirOptMain, with the check added to every pass manager.
static LogicalResult runChecked(StringRef input, StringRef output, DialectRegistry &registry) {
  MlirOptMainConfig given = MlirOptMainConfig::createFromCLOptions(), config = given;
  config.setPassPipelineSetupFn([&](PassManager &manager) {
    tenon::addNumericalCheck(manager);
    return given.setupPassPipeline(manager);
  });
  std::string message;
  auto text = openInputFile(input, &message);
  auto file = text ? openOutputFile(output, &message) : nullptr;
  if (!file) {
    llvm::errs() << message << '\n';
    return failure();
  }
  if (failed(MlirOptMain(file->os(), std::move(text), registry, config)))
    return failure();
  file->keep();
  return success();
}

int main(int argc, char **argv) {
  DialectRegistry registry;
  if (!tenon::setUpTool(argc, argv, registry))
    return 1;
  llvm::cl::opt<bool> verify("verify-each-numerically",
                             llvm::cl::desc("Compare what the module computes before and after "
                                            "each pass, on seeded batches"));
  auto [input, output] = registerAndParseCLIOptions(argc, argv, "Tenon pass driver\n", registry);
  if (verify)
    return asMainReturnCode(runChecked(input, output, registry));
  return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
}
