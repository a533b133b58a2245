// tenon new pass|op|backend NAME: writes a plugin's project into ./NAME.
//
// The templates lie in share/tenon/templates/KIND. In a file's text and name, @name@ stands for the
// name as given (fuse-foo), @name_@ for an identifier (fuse_foo), @Name@ for a type (FuseFoo).
#include "codegen/Error.h"
#include "tools/Command.h"
#include "tools/Locations.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace tenon {

static std::string replaceAll(std::string text, StringRef from, StringRef to) {
  for (size_t at = 0; (at = text.find(from.str(), at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to.str());
  return text;
}

static bool isProjectName(StringRef name) {
  return !name.empty() && name.size() < 60 && llvm::isAlpha(name[0]) && !name.ends_with("-") &&
         !name.contains("--") &&
         llvm::all_of(
             name, [](char c) { return llvm::isLower(c) || llvm::isDigit(c) || c == '-'; });
}

static llvm::Error writeProject(StringRef kind, const std::string &name) {
  if (!isProjectName(name))
    return refused("new: '" + name +
                   "' is no name for a project; accepted: lower-case letters, "
                   "digits and single '-', such as fuse-bias");
  if (fs::exists(name))
    return refused("new: " + name + " exists already");
  std::string identifier = replaceAll(name, "-", "_");
  std::string type = llvm::convertToCamelFromSnakeCase(identifier, /*capitalizeFirst=*/true);
  auto fill = [&](std::string text) {
    text = replaceAll(std::move(text), "@name_@", identifier);
    text = replaceAll(std::move(text), "@Name@", type);
    return replaceAll(std::move(text), "@name@", name);
  };

  std::string folder = getTemplatesFolder() + "/" + kind.str();
  std::map<std::string, std::string> templates; // by the file that they become
  std::error_code code;
  for (fs::recursive_directory_iterator it(folder, code), end; !code && it != end;
       it.increment(code))
    if (path::extension(it->path()) == ".in")
      templates[name + "/" +
                fill(StringRef(it->path()).drop_front(folder.size() + 1).drop_back(3).str())] =
          it->path();
  if (code)
    return refused("new: cannot read " + folder + ": " + code.message());
  for (const auto &[file, source] : templates) {
    auto text = llvm::MemoryBuffer::getFile(source);
    if (!text)
      return refused("new: cannot read " + source + ": " + text.getError().message());
    if ((code = fs::create_directories(path::parent_path(file))))
      return refused("new: cannot make " + path::parent_path(file) + ": " + code.message());
    llvm::raw_fd_ostream out(file, code);
    if (code)
      return refused("new: cannot write " + file + ": " + code.message());
    out << fill((*text)->getBuffer().str());
    llvm::outs() << file << '\n';
  }
  llvm::outs() << "now: cmake -S " << name << " -B " << name
               << "/build -G Ninja -DCMAKE_PREFIX_PATH=" << getInstallFolder() << " && ninja -C "
               << name << "/build all check\n";
  return llvm::Error::success();
}

Action addNew(CLI::App &app) {
  auto kind = std::make_shared<std::string>();
  auto name = std::make_shared<std::string>();
  app.add_option("KIND", *kind, "pass, op or backend")
      ->required()
      ->check(CLI::IsMember({"pass", "op", "backend"}));
  app.add_option("NAME", *name, "of the plugin, such as fuse-bias; a folder of this name is made")
      ->required();
  return [=] { return writeProject(*kind, *name); };
}

} // namespace tenon
