// tenon plugins [--load-plugin F]... [--json]
#include "nlohmann/json.hpp"
#include "plugin/Loader.h"
#include "tools/Command.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace tenon {

using Kinds = std::vector<std::pair<const char *, std::vector<std::string>>>;

static Kinds getKinds(const Plugin &plugin) {
  std::vector<std::string> passes = plugin.passes;
  for (std::string &pass : passes)
    for (const Insertion &insertion : plugin.insertions)
      if (insertion.pass == pass)
        pass += " (" + insertion.point + ")";
  return {{"passes", passes},
          {"dialects", plugin.dialects},
          {"architectures", plugin.architectures},
          {"kernels", plugin.kernels},
          {"backends", plugin.backends},
          {"model readers", plugin.readers},
          {"weight formats", plugin.weightFormats}};
}

static void print(const Plugin &plugin) {
  llvm::outs() << plugin.name << ' ' << plugin.version << "  " << plugin.path << '\n';
  for (const auto &[kind, names] : getKinds(plugin))
    if (!names.empty())
      llvm::outs() << "  " << kind << ": " << llvm::join(names, ", ") << '\n';
}

static nlohmann::json toJson(const Plugin &plugin) {
  nlohmann::json object = {
      {"name", plugin.name}, {"version", plugin.version}, {"path", plugin.path}};
  for (const auto &[kind, names] : getKinds(plugin))
    object[kind] = names;
  return object;
}

Action addPlugins(CLI::App &app) {
  auto files = std::make_shared<std::vector<std::string>>();
  auto isJson = std::make_shared<bool>(false);
  app.add_option("--load-plugin", *files, "a plugin's library")->type_name("FILE");
  app.add_flag("--json", *isJson, "print an array of objects");
  return [=]() -> llvm::Error {
    PluginLoader &loader = PluginLoader::get();
    for (const std::string &file : *files)
      if (llvm::Error error = loader.load(file))
        return error;
    nlohmann::json all = nlohmann::json::array();
    for (const Plugin &plugin : loader.getPlugins())
      if (*isJson)
        all.push_back(toJson(plugin));
      else
        print(plugin);
    if (*isJson)
      llvm::outs() << all.dump(2) << '\n';
    else if (loader.getPlugins().empty())
      llvm::outs() << "no plugins; load them with --load-plugin=FILE or TENON_PLUGIN_PATH\n";
    return llvm::Error::success();
  };
}

} // namespace tenon
