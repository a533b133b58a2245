// tenon diff A B: what differs between the graphs of two .mlir files or compiled executables.
// Exit code 0, with --exit-code 1 when they differ.
#include "codegen/Error.h"
#include "mlir/IR/MLIRContext.h"
#include "tools/Command.h"
#include "tools/Modules.h"
#include "tools/diff/ModuleDiff.h"

using namespace mlir;

namespace tenon {

char Silent::ID = 0;

namespace {

struct DiffArguments {
  std::string before, after;
  bool sched = false, exitCode = false;
};

llvm::Error compareFiles(const DiffArguments &arguments) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  StringRef section = arguments.sched ? "sched" : "llm";
  auto before = readModule(context, arguments.before, section);
  if (!before)
    return before.takeError();
  auto after = readModule(context, arguments.after, section);
  if (!after)
    return after.takeError();
  llvm::Expected<bool> differs = diff::compareModules(**before, **after, llvm::outs());
  if (!differs)
    return differs.takeError();
  if (*differs && arguments.exitCode)
    return llvm::make_error<Silent>();
  return llvm::Error::success();
}

} // namespace

Action addDiff(CLI::App &app) {
  auto arguments = std::make_shared<DiffArguments>();
  app.add_option("A", arguments->before, "a .mlir file or a compiled executable")->required();
  app.add_option("B", arguments->after, "another")->required();
  app.add_flag("--sched", arguments->sched, "compare the schedules of executables");
  app.add_flag("--exit-code", arguments->exitCode, "end with 1 when they differ");
  return [=]() -> llvm::Error { return compareFiles(*arguments); };
}

} // namespace tenon
