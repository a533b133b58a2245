// tenon graph MODEL -o F.svg|F.html [--phase NAME] [--function NAME]
#include "codegen/Error.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "tools/Command.h"
#include "tools/Modules.h"
#include "tools/graph/SvgWriter.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tenon {

Action addGraph(CLI::App &app) {
  auto path = std::make_shared<std::string>(), output = std::make_shared<std::string>();
  app.add_option("MODEL", *path)->required();
  app.add_option("-o", *output)->required();
  return [=]() -> llvm::Error {
    MLIRContext context(MLIRContext::Threading::DISABLED);
    auto module = readModule(context, *path);
    if (!module)
      return module.takeError();
    auto graph = graph::buildGraph(**module, graph::getFunctionNames(**module).back());
    if (!graph)
      return graph.takeError();
    std::error_code code;
    llvm::raw_fd_ostream out(*output, code);
    graph::writeSvg(*graph, graph::makeCaption(*graph, "x"), out);
    return llvm::Error::success();
  };
}

} // namespace tenon
