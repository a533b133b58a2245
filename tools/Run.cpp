// tenon run MODEL "prompt" [generate options]: compiles into a cache, then becomes the executable.
//
// The entry's name is a digest of the model's files (path, size, time of change), the flags and
// this compiler's version.
#include "codegen/Error.h"
#include "codegen/Version.h"
#include "mlir/IR/MLIRContext.h"
#include "plugin/Loader.h"
#include "tools/Command.h"
#include "tools/Locations.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace tenon {

// A line for each file that the executable depends on.
static std::string describeFile(llvm::StringRef path) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status))
    return path.str() + " absent\n";
  return path.str() + " " + std::to_string(status.getSize()) + " " +
         std::to_string(status.getLastModificationTime().time_since_epoch().count()) + "\n";
}

static std::string digest(llvm::StringRef text) {
  llvm::SHA256 hash;
  hash.update(text);
  return llvm::toHex(hash.final(), /*LowerCase=*/true).substr(0, 24);
}

static llvm::Expected<std::string> getEntry(const CompileArguments &arguments) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  llvm::Expected<Model> model = arguments.model.load(context);
  if (!model)
    return model.takeError();
  std::string text = TENON_VERSION "\n" + describeFile(getLibraryFolder() + "/libTenon.so") +
                     describeFile(getLibraryFolder() + "/libtenon_runtime.a") + model->digest +
                     "\n";
  for (const std::string &file : model->files)
    text += describeFile(file);
  for (const Plugin &plugin : PluginLoader::get().getPlugins())
    text += describeFile(plugin.path);
  for (const std::string &flag :
       {arguments.options.target, arguments.options.precision, arguments.options.cacheType,
        arguments.cpus, arguments.weightsForm, arguments.model.options.weights})
    text += flag + "\n";
  text += llvm::join(arguments.options.disabledPasses, ",") +
          llvm::join(arguments.model.sets, ",") + llvm::join(arguments.insertions, ",");
  return model->name + "-" + digest(text);
}

Action addRun(CLI::App &app) {
  auto arguments = std::make_shared<CompileArguments>();
  arguments->add(app);
  // What the command line above does not know belongs to the executable: the prompt and its
  // options.
  app.prefix_command();
  return [=, &app]() -> llvm::Error {
    llvm::Expected<std::string> entry = getEntry(*arguments);
    if (!entry)
      return entry.takeError();
    std::string folder = getCacheFolder() + "/compiled", path = folder + "/" + *entry;
    if (!llvm::sys::fs::exists(path)) {
      if (std::error_code code = llvm::sys::fs::create_directories(folder))
        return refused("cannot make the folder " + folder + ": " + code.message());
      if (llvm::Error error = arguments->compile(path, /*isQuiet=*/false))
        return error;
    }
    std::vector<std::string> rest = app.remaining();
    std::vector<char *> argv{path.data()};
    static char generate[] = "generate";
    argv.push_back(generate);
    for (std::string &argument : rest)
      argv.push_back(argument.data());
    argv.push_back(nullptr);
    execv(path.c_str(), argv.data());
    return lacking("cannot run " + path + ": " + std::strerror(errno));
  };
}

} // namespace tenon
