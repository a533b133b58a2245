#include "frontend/Description.h"
#include "frontend/Extensions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace tenon {

static bool isNameChar(char c) { return llvm::isAlnum(c) || c == '.' || c == '_' || c == '-'; }

bool isModelName(StringRef name) { return !name.empty() && llvm::all_of(name, isNameChar); }

std::string nameFromPath(StringRef file) {
  llvm::SmallString<128> real(file);
  if (fs::real_path(file, real))
    real = file;
  StringRef last = path::filename(real);
  last.consume_back(".gguf");
  std::string name = last.str();
  for (char &c : name)
    if (!isNameChar(c))
      c = '-';
  return name.empty() ? "model" : name;
}

llvm::Expected<std::vector<int64_t>> readTokenIds(const Value &value, StringRef what) {
  std::vector<int64_t> ids;
  if (value.isNull())
    return ids;
  const Value::List single = {value};
  for (const Value &item : value.asList() ? *value.asList() : single) {
    const int64_t *id = item.asInteger();
    if (!id || *id < 0 || *id > (int64_t(1) << 24))
      return failAt(item.place, "'" + what + "' must be token ids, got " + item.describe());
    ids.push_back(*id);
  }
  return ids;
}

llvm::Expected<Description> describeModel(StringRef file, const ModelOptions &options) {
  if (!fs::exists(file))
    return failAt(
        Place::inFile(file),
        "no such file; accepted: a model .yaml, a Hugging Face directory or a .gguf file");
  for (const ModelReader &reader : getModelReaders())
    if (reader.accepts(file)) {
      llvm::Expected<std::string> text = reader.read(file);
      if (!text)
        return text.takeError();
      return describeYamlText(*text, file, options);
    }
  if (fs::is_directory(file))
    return describeHuggingFace(file, options);
  StringRef extension = path::extension(file);
  if (extension == ".gguf")
    return describeGguf(file, options);
  if (extension == ".safetensors")
    return failAt(Place::inFile(file),
                  "has no configuration; accepted: the directory that holds it and a config.json");
  return describeYaml(file, options);
}

// Puts `--set` and `--context` into the config, where they are checked like any other value.
static llvm::Error applyOverrides(Description &description, const ModelOptions &options) {
  const Parameters &parameters = description.architecture.parameters;
  auto apply = [&](StringRef name, Value value) -> llvm::Error {
    if (!parameters.find(name))
      return failAt(value.place,
                    "unknown parameter '" + name + "'; accepted: " + parameters.names());
    description.config.setPath(name, std::move(value), description.place);
    return llvm::Error::success();
  };
  for (const auto &[name, text] : options.sets)
    if (llvm::Error error =
            apply(name, parseScalar(text, Place::inFile("--set " + name + "=" + text))))
      return error;
  if (!options.context)
    return llvm::Error::success();
  return apply("context", Value(*options.context,
                                Place::inFile("--context " + llvm::Twine(*options.context))));
}

llvm::Expected<Value> bindParameters(Description &description, const ModelOptions &options) {
  if (llvm::Error error = applyOverrides(description, options))
    return error;
  llvm::Expected<Value> bound = description.architecture.parameters.bind(description.config);
  if (!bound)
    return bound;
  if (llvm::Error error = description.architecture.check(*bound))
    return error;
  return bound;
}

} // namespace tenon
