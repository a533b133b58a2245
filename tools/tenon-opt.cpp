// tenon-opt: runs passes over IR text, as mlir-opt does.
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "plugin/Loader.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  if (!tenon::setUpTool(argc, argv, registry))
    return 1;
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Tenon pass driver\n", registry));
}
