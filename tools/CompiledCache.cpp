// See CompiledCache.h.
#include "tools/CompiledCache.h"
#include "codegen/Version.h"
#include "plugin/Loader.h"
#include "tools/Locations.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include <cstdlib>

namespace fs = llvm::sys::fs;

namespace tenon {

static std::string digest(llvm::StringRef text) {
  llvm::SHA256 hash;
  hash.update(text);
  return llvm::toHex(hash.final(), /*LowerCase=*/true).substr(0, 24);
}

// A line. The path comes last: it may hold anything.
static std::string describeFile(llvm::StringRef path) {
  fs::file_status status;
  if (fs::status(path, status))
    return ("absent " + path + "\n").str();
  return (llvm::Twine(status.getSize()) + "," + llvm::Twine(status.getUniqueID().getFile()) + "," +
          llvm::Twine(status.getLastModificationTime().time_since_epoch().count()) + " " + path +
          "\n")
      .str();
}

// What makes executables.
static std::string describeCompiler() {
  std::vector<std::string> files;
  for (const char *library :
       {"/libTenon.so", "/libtenon_main.a", "/libtenon_runtime.a", "/libtenon_tokenizer.a"})
    files.push_back(getLibraryFolder() + library);
  std::error_code error;
  for (fs::directory_iterator it(getKernelFolder(), error), end; !error && it != end;
       it.increment(error))
    files.push_back(it->path());
  llvm::sort(files);
  std::string text = TENON_VERSION "\n";
  for (const std::string &file : files)
    text += describeFile(file);
  return text;
}

// The model's own files and those of plugins.
static std::string describeFiles(const Model &model) {
  std::string text;
  for (const std::string &file : model.files)
    text += describeFile(file);
  for (const Plugin &plugin : PluginLoader::get().getPlugins())
    text += describeFile(plugin.path);
  return text;
}

CompiledCache::CompiledCache(const CompileArguments &arguments)
    : folder(getCacheFolder() + "/compiled"), flags(describeCompiler()) {
  const CompileOptions &options = arguments.options;
  const ModelOptions &model = arguments.model.options;
  for (const std::string &flag :
       {options.target, options.precision, options.cacheType, arguments.cpus, arguments.weightsForm,
        model.weights, llvm::join(options.disabledPasses, ","),
        llvm::join(arguments.model.sets, ","), llvm::join(arguments.insertions, ","),
        std::to_string(model.context.value_or(0)), std::to_string(model.emitHidden)})
    flags += flag + "\n";

  std::string asked = flags;
  llvm::SmallString<128> where;
  (void)fs::current_path(where);
  const char *plugins = std::getenv("TENON_PLUGIN_PATH");
  for (llvm::StringRef word : {where.str(), llvm::StringRef(arguments.model.path),
                               llvm::StringRef(plugins ? plugins : "")})
    asked += word.str() + "\n";
  asked +=
      llvm::join(arguments.model.plugins, "\n") + "\n" + std::to_string(model.allowUnusedConfig);
  note = folder + "/asked/" + digest(asked);
}

std::optional<std::string> CompiledCache::recall() const {
  auto text = llvm::MemoryBuffer::getFile(note);
  if (!text)
    return std::nullopt;
  auto [name, files] = (*text)->getBuffer().split('\n');
  for (llvm::StringRef rest = files; !rest.empty();) {
    auto [line, more] = rest.split('\n');
    if (describeFile(line.split(' ').second) != (line + "\n").str())
      return std::nullopt;
    rest = more;
  }
  std::string path = (folder + "/" + name).str();
  return fs::exists(path) ? std::optional(path) : std::nullopt;
}

std::string CompiledCache::locate(const Model &model) const {
  return folder + "/" + model.name + "-" +
         digest(flags + model.digest + "\n" + describeFiles(model));
}

void CompiledCache::remember(const Model &model, llvm::StringRef executable) const {
  std::string text = (llvm::sys::path::filename(executable) + "\n").str() + describeFiles(model);
  // Without a note the next run only starts later.
  (void)fs::create_directories(folder + "/asked");
  llvm::consumeError(llvm::writeToOutput(note, [&](llvm::raw_ostream &out) {
    out << text;
    return llvm::Error::success();
  }));
}

} // namespace tenon
