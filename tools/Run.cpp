// tenon run MODEL "prompt" [generate options]: compiles into a cache, then becomes the executable.
#include "codegen/Error.h"
#include "mlir/IR/MLIRContext.h"
#include "tools/Command.h"
#include "tools/CompiledCache.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace tenon {

static llvm::Expected<std::string> getExecutable(CompileArguments &arguments) {
  CompiledCache cache(arguments);
  if (std::optional<std::string> known = cache.recall())
    return *known;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  llvm::Expected<Model> model = arguments.model.load(context);
  if (!model)
    return model.takeError();
  std::string path = cache.locate(*model);
  if (!llvm::sys::fs::exists(path)) {
    llvm::StringRef folder = llvm::sys::path::parent_path(path);
    if (std::error_code code = llvm::sys::fs::create_directories(folder))
      return refused("cannot make the folder " + folder + ": " + code.message());
    if (llvm::Error error = arguments.compile(path, /*isQuiet=*/false))
      return error;
  }
  cache.remember(*model, path);
  return path;
}

Action addRun(CLI::App &app) {
  auto arguments = std::make_shared<CompileArguments>();
  arguments->add(app);
  // What the command line above does not know belongs to the executable: the prompt and its
  // options.
  app.prefix_command();
  return [=, &app]() -> llvm::Error {
    llvm::Expected<std::string> path = getExecutable(*arguments);
    if (!path)
      return path.takeError();
    std::vector<std::string> rest = app.remaining();
    std::vector<char *> argv{path->data()};
    static char generate[] = "generate";
    argv.push_back(generate);
    for (std::string &argument : rest)
      argv.push_back(argument.data());
    argv.push_back(nullptr);
    execv(path->c_str(), argv.data());
    return lacking("cannot run " + *path + ": " + std::strerror(errno));
  };
}

} // namespace tenon
