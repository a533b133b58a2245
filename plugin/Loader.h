// Loads plugins: reads the note in the file, compares versions, loads the library, lets it
// register.
//
//   F.so ──note──▶ versions equal? ──dlopen──▶ one dialect? ──▶ PluginRegistry: passes, dialects, ...
//
// Whatever is wrong is one line that names the file and both sides.
#ifndef TENON_PLUGIN_LOADER_H
#define TENON_PLUGIN_LOADER_H

#include "plugin/PluginRegistry.h"
#include <deque>

namespace tenon {

// A plugin's code stays for the life of the process, so there is one loader.
class PluginLoader {
public:
  static PluginLoader &get();

  // Every .so file of TENON_PLUGIN_PATH, a list of folders and files with ':' between.
  llvm::Error loadFromEnvironment();
  llvm::Error load(llvm::StringRef path);
  // An entry of a `plugins:` list: the name of a loaded plugin, or a file (NAME.so for a bare name)
  // in `folder`.
  llvm::Error require(llvm::StringRef plugin, llvm::StringRef folder);

  const std::deque<Plugin> &getPlugins() const { return plugins; }
  const mlir::DialectRegistry &getDialects() const { return dialects; }
  // Where plugins want their passes, in the order of loading.
  std::vector<Insertion> getInsertions() const;
  // The plugin that brought a pass; null for Tenon's own.
  const Plugin *findPass(llvm::StringRef pass) const;

private:
  llvm::Error loadFile(llvm::StringRef path);

  std::deque<Plugin> plugins;
  mlir::DialectRegistry dialects;
};

// What every tool over IR text does first: takes `--load-plugin F` and `--load-plugin=F` out of the
// arguments, loads those and TENON_PLUGIN_PATH, and registers all dialects and passes. An error was
// printed when it returns false.
bool setUpTool(int &argc, char **argv, mlir::DialectRegistry &registry);

} // namespace tenon

#endif // TENON_PLUGIN_LOADER_H
