// tenon-lsp-server: what an editor asks about .mlir files (docs/testing-ir.md shows the set-up).
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "plugin/Loader.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  if (!tenon::setUpTool(argc, argv, registry))
    return 1;
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
