// tenon-opt: runs passes over IR text, as mlir-opt does.
#include "ir/Sched.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "passes/Pipeline.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tenon::registerDialects(registry);
  tenon::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Tenon pass driver\n", registry));
}
