// tenon import PATH [-o MODEL.yaml]
#include "codegen/Error.h"
#include "tools/Command.h"
#include "llvm/Support/raw_ostream.h"

namespace tenon {

Action addImport(CLI::App &app) {
  auto model = std::make_shared<ModelArguments>();
  auto output = std::make_shared<std::string>("-");
  model->add(app);
  app.add_option("-o", *output, "the model file to write; default: standard output");
  return [=]() -> llvm::Error {
    llvm::Expected<ModelOptions> options = model->resolve();
    if (!options)
      return options.takeError();
    llvm::Expected<std::string> text = importModel(model->path, *options);
    if (!text)
      return text.takeError();
    std::error_code code;
    llvm::raw_fd_ostream out(*output, code);
    if (code)
      return refused("cannot write " + *output + ": " + code.message());
    out << *text;
    return llvm::Error::success();
  };
}

} // namespace tenon
