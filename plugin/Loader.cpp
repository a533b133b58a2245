// See Loader.h.
#include "plugin/Loader.h"
#include "codegen/Error.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace tenon {

// A field that is to end in a zero byte.
template <size_t N> static StringRef text(const char (&field)[N]) {
  return StringRef(field, strnlen(field, N));
}

// The note of a plugin's file, none of whose code runs.
static llvm::Expected<PluginNote> readNote(StringRef file) {
  auto refuse = [&](const llvm::Twine &message) {
    return refused("plugin " + file + ": " + message);
  };
  if (!fs::exists(file))
    return refuse("no such file");
  auto object = llvm::object::ObjectFile::createObjectFile(file);
  if (!object)
    return refuse("is no shared library: " + llvm::toString(object.takeError()));
  const auto *elf = llvm::dyn_cast<llvm::object::ELFObjectFileBase>(object->getBinary());
  if (!elf || elf->getEType() != llvm::ELF::ET_DYN)
    return refuse("is no shared library");
  for (const llvm::object::SectionRef &section : elf->sections()) {
    llvm::Expected<StringRef> name = section.getName();
    if (!name || *name != TENON_PLUGIN_SECTION) {
      llvm::consumeError(name.takeError());
      continue;
    }
    llvm::Expected<StringRef> bytes = section.getContents();
    if (!bytes)
      return refuse(llvm::toString(bytes.takeError()));
    PluginNote note;
    if (bytes->size() < sizeof note)
      return refuse("its note is too short; build it again");
    std::memcpy(&note, bytes->data(), sizeof note);
    if (text(note.magic) == TENON_PLUGIN_MAGIC)
      return note;
  }
  return refuse("is a library without TENON_PLUGIN, see TenonPlugin.h");
}

static llvm::Error checkVersions(StringRef file, const PluginNote &note) {
  std::string theirs, ours;
  auto compare = [&](StringRef what, const llvm::Twine &their, const llvm::Twine &our) {
    if (their.str() == our.str())
      return;
    theirs += (theirs.empty() ? "" : ", ") + (what + " " + their).str();
    ours += (ours.empty() ? "" : ", ") + (what + " " + our).str();
  };
  compare("plugin ABI", llvm::Twine(note.abi), llvm::Twine(TENON_PLUGIN_ABI));
  compare("Tenon", text(note.tenon), TENON_VERSION);
  compare("LLVM", text(note.llvm), LLVM_VERSION_STRING);
  if (theirs.empty())
    return llvm::Error::success();
  return refused("plugin " + file + ": built for " + theirs + ", but this is " + ours);
}

PluginLoader &PluginLoader::get() {
  static PluginLoader loader;
  return loader;
}

llvm::Error PluginLoader::load(StringRef given) {
  // dlopen searches for names without a slash.
  llvm::SmallString<128> file;
  if (fs::real_path(given, file))
    return refused("plugin " + given + ": no such file");
  for (const Plugin &plugin : plugins)
    if (plugin.path == file)
      return llvm::Error::success();
  return loadFile(file);
}

llvm::Error PluginLoader::loadFile(StringRef file) {
  llvm::Expected<PluginNote> note = readNote(file);
  if (!note)
    return note.takeError();
  if (llvm::Error error = checkVersions(file, *note))
    return error;
  Plugin plugin;
  plugin.path = file.str();
  plugin.name = text(note->name).str();
  plugin.version = text(note->version).str();
  for (const Plugin &other : plugins)
    if (other.name == plugin.name)
      return refused("plugin " + file + ": is called '" + plugin.name + "' as " + other.path +
                     " is, which is loaded already");

  void *library = dlopen(plugin.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return refused("plugin " + file + ": cannot be loaded: " + dlerror());
  auto *dialect = reinterpret_cast<const void *(*)()>(dlsym(library, "tenon_plugin_dialect"));
  auto *add = reinterpret_cast<void (*)(PluginRegistry &)>(dlsym(library, "tenon_plugin_add"));
  if (!dialect || !add)
    return refused("plugin " + file + ": has no entry point: " + dlerror());
  if (dialect() != mlir::TypeID::get<llm::LLMDialect>().getAsOpaquePointer())
    return refused("plugin " + file +
                   ": carries its own copy of the llm dialect, whose operations are not the "
                   "compiler's; link Tenon::Tenon alone");
  PluginRegistry registry(plugin, dialects);
  add(registry);
  if (llvm::Error error = registry.takeError())
    return refused("plugin " + file + ": " + llvm::toString(std::move(error)));
  plugins.push_back(std::move(plugin));
  return llvm::Error::success();
}

llvm::Error PluginLoader::loadFromEnvironment() {
  const char *variable = std::getenv("TENON_PLUGIN_PATH");
  llvm::SmallVector<StringRef> entries;
  StringRef(variable ? variable : "").split(entries, ':', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef entry : entries) {
    std::vector<std::string> files;
    if (fs::is_directory(entry)) {
      std::error_code code;
      for (fs::directory_iterator it(entry, code), end; !code && it != end; it.increment(code))
        if (path::extension(it->path()) == ".so")
          files.push_back(it->path());
      llvm::sort(files);
    } else {
      files.push_back(entry.str());
    }
    for (const std::string &file : files)
      if (llvm::Error error = load(file))
        return refused("TENON_PLUGIN_PATH: " + llvm::toString(std::move(error)));
  }
  return llvm::Error::success();
}

llvm::Error PluginLoader::require(StringRef entry, StringRef folder) {
  for (const Plugin &plugin : plugins)
    if (plugin.name == entry)
      return llvm::Error::success();
  llvm::SmallString<128> file;
  if (path::is_relative(entry))
    file = folder;
  path::append(file, entry);
  bool isName = !entry.contains('/') && !entry.ends_with(".so");
  if (isName)
    file += ".so";
  if (!fs::exists(file))
    return refused("plugin '" + entry + "' is not loaded and there is no " + file +
                   "; accepted: a file, --load-plugin=FILE, or a folder in TENON_PLUGIN_PATH");
  return load(file);
}

std::vector<Insertion> PluginLoader::getInsertions() const {
  std::vector<Insertion> all;
  for (const Plugin &plugin : plugins)
    llvm::append_range(all, plugin.insertions);
  return all;
}

const Plugin *PluginLoader::findPass(StringRef pass) const {
  for (const Plugin &plugin : plugins)
    if (llvm::is_contained(plugin.passes, pass))
      return &plugin;
  return nullptr;
}

bool setUpTool(int &argc, char **argv, mlir::DialectRegistry &registry) {
  registerDialects(registry);
  registerAllPasses();
  PluginLoader &loader = PluginLoader::get();
  llvm::Error error = loader.loadFromEnvironment();
  int kept = 1;
  for (int i = 1; i < argc && !error; ++i) {
    StringRef argument = argv[i];
    if (argument.consume_front("--load-plugin="))
      error = loader.load(argument);
    else if (argument == "--load-plugin" && i + 1 < argc)
      error = loader.load(argv[++i]);
    else
      argv[kept++] = argv[i];
  }
  if (error) {
    llvm::errs() << path::filename(argv[0]) << ": " << llvm::toString(std::move(error)) << '\n';
    return false;
  }
  argc = kept;
  argv[argc] = nullptr;
  loader.getDialects().appendTo(registry);
  return true;
}

} // namespace tenon
