#include "frontend/Architecture.h"
#include "frontend/Expression.h"
#include "frontend/Extensions.h"
#include "frontend/Yaml.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using llvm::StringRef;
namespace path = llvm::sys::path;

namespace tenon {

// The model's limits, which everything after the frontend needs to know.
static constexpr StringRef requiredParameters[] = {"vocab", "context"};

// All `as:` names of loops, wherever they are.
static void collectVariables(const Value &value, llvm::StringSet<> &names) {
  if (const Value::List *list = value.asList())
    for (const Value &item : *list)
      collectVariables(item, names);
  if (const Value::Map *map = value.asMap())
    for (const Entry &entry : *map) {
      if (entry.key == "as" && entry.value.asString())
        names.insert(*entry.value.asString());
      collectVariables(entry.value, names);
    }
}

// Names must exist, also those in branches that this model does not take. And a parameter that
// nothing reads would be a number without effect.
static llvm::Error checkNames(const Architecture &architecture) {
  const Parameters &parameters = architecture.parameters;
  llvm::StringSet<> variables, read;
  variables.insert("expert"); // in names of stacked weights
  collectVariables(architecture.getGraph(), variables);
  std::string unknown;
  auto visit = [&](StringRef name, const Place &place) {
    read.insert(name);
    bool known = parameters.find(name) || parameters.isGroup(name) || variables.contains(name);
    if (!known && unknown.empty())
      unknown = llvm::toString(
          failAt(place, "unknown name '" + name + "'; accepted: " + parameters.names()));
  };
  for (StringRef section : {"parameters", "checks", "graph"})
    if (const Value *value = architecture.file.find(section))
      if (llvm::Error error = visitNames(*value, visit))
        return error;
  if (!unknown.empty())
    return llvm::createStringError(unknown);

  for (const Parameter &parameter : parameters.list()) {
    bool used = llvm::is_contained(requiredParameters, parameter.name);
    for (StringRef name = parameter.name; !used; name = name.rsplit('.').first) {
      used = read.contains(name);
      if (!name.contains('.'))
        break;
    }
    if (!used)
      return failAt(parameter.place,
                    "parameter '" + parameter.name + "' is read nowhere in the graph");
  }
  return llvm::Error::success();
}

llvm::Expected<Architecture> readArchitecture(StringRef file) {
  Architecture architecture;
  architecture.name = path::stem(file).str();
  architecture.path = file.str();
  llvm::Expected<Value> value = readYamlFile(file);
  if (!value)
    return value.takeError();
  architecture.file = std::move(*value);
  if (llvm::Error error = checkKeys(architecture.file, "an architecture",
                                    {"parameters", "checks", "graph", "hf", "gguf", "plugins"}))
    return error;
  for (StringRef key : {"parameters", "graph"})
    if (!architecture.file.find(key))
      return failAt(architecture.file.place, "'" + key + "' is missing");
  if (!architecture.getGraph().asList())
    return failAt(architecture.getGraph().place, "'graph' must be a list of nodes");
  llvm::Expected<Parameters> parameters = Parameters::read(*architecture.file.find("parameters"));
  if (!parameters)
    return parameters.takeError();
  architecture.parameters = std::move(*parameters);
  for (StringRef name : requiredParameters) {
    const Parameter *parameter = architecture.parameters.find(name);
    if (!parameter || parameter->type != Parameter::Type::Integer || parameter->min < 1)
      return failAt(architecture.file.find("parameters")->place,
                    "parameter '" + name + "' is missing; accepted: '" + name + ": integer'");
  }
  if (llvm::Error error = checkNames(architecture))
    return error;
  return architecture;
}

llvm::Error Architecture::check(const Value &bound) const {
  const Value *checks = file.find("checks");
  if (!checks)
    return llvm::Error::success();
  if (!checks->asList())
    return failAt(checks->place, "'checks' must be a list");
  for (const Value &check : *checks->asList()) {
    if (llvm::Error error = checkKeys(check, "a check", {"that", "at", "message"}))
      return error;
    for (StringRef key : {"that", "at", "message"})
      if (!check.find(key))
        return failAt(check.place, "'" + key + "' is missing");
    llvm::Expected<Value> holds = evaluate(*check.find("that"), {&bound, {}});
    if (!holds)
      return holds.takeError();
    if (!holds->asFlag())
      return failAt(holds->place, "a check must be true or false, got " + holds->describe());
    if (*holds->asFlag())
      continue;
    llvm::Expected<Value> message = evaluate(*check.find("message"), {&bound, {}});
    if (!message)
      return message.takeError();
    const std::string *at = check.find("at")->asString();
    const Value *value = at ? bound.findPath(*at) : nullptr;
    if (!value || !message->asString())
      return failAt(check.place, "'at' must name a parameter and 'message' be text");
    return failAt(value->place, *message->asString());
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<std::string>> listArchitectures(StringRef models) {
  llvm::SmallString<128> own(models);
  path::append(own, "architectures");
  std::vector<std::string> folders = {own.str().str()}, paths;
  llvm::append_range(folders, getArchitectureFolders());
  for (const std::string &folder : folders) {
    size_t first = paths.size();
    std::error_code error;
    for (llvm::sys::fs::directory_iterator it(folder, error), end; !error && it != end;
         it.increment(error))
      if (path::extension(it->path()) == ".yaml")
        paths.push_back(it->path());
    if (error)
      return failAt(Place::inFile(folder), "cannot read: " + error.message());
    std::sort(paths.begin() + first, paths.end());
  }
  return paths;
}

llvm::Expected<Architecture> findArchitecture(const Value &nameOrPath, StringRef models,
                                              StringRef directory) {
  const std::string *name = nameOrPath.asString();
  if (!name || name->empty())
    return failAt(nameOrPath.place,
                  "'architecture' must be a name or a path, got " + nameOrPath.describe());
  if (StringRef(*name).contains('/') || StringRef(*name).ends_with(".yaml")) {
    llvm::SmallString<128> file;
    if (path::is_relative(*name))
      file = directory;
    path::append(file, *name);
    path::remove_dots(file);
    if (!llvm::sys::fs::exists(file))
      return failAt(nameOrPath.place, "no architecture file '" + file + "'");
    return readArchitecture(file);
  }
  llvm::Expected<std::vector<std::string>> paths = listArchitectures(models);
  if (!paths)
    return paths.takeError();
  std::vector<StringRef> known;
  for (const std::string &file : *paths) {
    known.push_back(path::stem(file));
    if (known.back() == *name)
      return readArchitecture(file);
  }
  return failAt(nameOrPath.place, "unknown architecture '" + *name + "'; accepted: " +
                                      llvm::join(known, ", ") + ", or a path to a .yaml file");
}

} // namespace tenon
