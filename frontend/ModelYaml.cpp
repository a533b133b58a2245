// Model files: models/README.md documents the format.
#include "frontend/Description.h"
#include "frontend/Yaml.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using llvm::StringRef;
namespace path = llvm::sys::path;

namespace tenon {

static llvm::Expected<std::string> readText(const Value &map, StringRef key, StringRef section) {
  const Value *value = map.find(key);
  if (!value || value->isNull())
    return "";
  if (!value->asString() || value->asString()->empty())
    return failAt(value->place,
                  "'" + section + "." + key + "' must be text, got " + value->describe());
  return *value->asString();
}

// weights: {file: F, sha256: 64 hex digits, from: where to get it}
static llvm::Error readWeights(const Value &section, Description &description) {
  if (llvm::Error error = checkKeys(section, "'weights'", {"file", "sha256", "from"}))
    return error;
  const std::pair<StringRef, std::string *> texts[] = {{"sha256", &description.weightsSha256},
                                                       {"from", &description.weightsFrom}};
  for (auto [key, text] : texts) {
    llvm::Expected<std::string> value = readText(section, key, "weights");
    if (!value)
      return value.takeError();
    *text = *value;
  }
  const std::string &digest = description.weightsSha256;
  if (!digest.empty() && (digest.size() != 64 || !llvm::all_of(digest, llvm::isHexDigit)))
    return failAt(section.find("sha256")->place, "'weights.sha256' must be 64 hexadecimal digits");
  description.weightsSha256 = StringRef(digest).lower();
  llvm::Expected<std::string> file = readText(section, "file", "weights");
  if (!file)
    return file.takeError();
  if (file->empty())
    return failAt(section.place, "'weights.file' is missing");
  description.weightsFile = *section.find("file");
  return llvm::Error::success();
}

// generation: {eos: [2], stop: ["<|im_end|>"], decoder_start: 0}
static llvm::Error readGeneration(const Value &section, Description &description) {
  if (llvm::Error error = checkKeys(section, "'generation'", {"eos", "stop", "decoder_start"}))
    return error;
  if (const Value *start = section.find("decoder_start")) {
    llvm::Expected<std::vector<int64_t>> ids = readTokenIds(*start, "generation.decoder_start");
    if (!ids)
      return ids.takeError();
    if (ids->size() != 1)
      return failAt(start->place,
                    "'generation.decoder_start' must be one token id, got " + start->describe());
    description.decoderStart = ids->front();
  }
  if (const Value *eos = section.find("eos")) {
    llvm::Expected<std::vector<int64_t>> ids = readTokenIds(*eos, "generation.eos");
    if (!ids)
      return ids.takeError();
    description.eos = *ids;
  }
  if (const Value *stop = section.find("stop")) {
    if (!stop->asList())
      return failAt(stop->place,
                    "'generation.stop' must be a list of texts, got " + stop->describe());
    for (const Value &text : *stop->asList()) {
      if (!text.asString() || text.asString()->empty())
        return failAt(text.place,
                      "'generation.stop' must be a list of texts, got " + text.describe());
      description.stop.push_back(*text.asString());
    }
  }
  return llvm::Error::success();
}

llvm::Error loadPlugins(const Value &list, StringRef file, const ModelOptions &options) {
  if (!list.asList())
    return failAt(list.place, "'plugins' must be a list of names or paths, got " + list.describe());
  for (const Value &plugin : *list.asList()) {
    if (!plugin.asString() || plugin.asString()->empty())
      return failAt(plugin.place,
                    "'plugins' must be a list of names or paths, got " + plugin.describe());
    if (!options.loadPlugin)
      return failAt(plugin.place, "plugins cannot be loaded here");
    if (llvm::Error error = options.loadPlugin(*plugin.asString(), path::parent_path(file)))
      return failAt(plugin.place, llvm::toString(std::move(error)));
  }
  return llvm::Error::success();
}

static llvm::Expected<Description> describe(llvm::Expected<Value> root, StringRef file,
                                            const ModelOptions &options) {
  if (!root)
    return root.takeError();
  if (llvm::Error error = checkKeys(
          *root, "a model",
          {"model", "architecture", "config", "weights", "tokenizer", "generation", "plugins"}))
    return error;
  for (StringRef key : {"model", "architecture", "config"})
    if (!root->find(key))
      return failAt(root->place, "'" + key + "' is missing");

  Description description;
  description.place = root->place;
  description.directory = path::parent_path(file).str();
  description.config = *root->find("config");
  const Value &name = *root->find("model");
  if (!name.asString() || !isModelName(*name.asString()))
    return failAt(name.place, "'model' must be a name of letters, digits, '.', '_' and '-', got " +
                                  name.describe());
  description.name = *name.asString();
  // First, as they may bring the architecture.
  if (const Value *plugins = root->find("plugins"))
    if (llvm::Error error = loadPlugins(*plugins, file, options))
      return error;
  llvm::Expected<Architecture> architecture =
      findArchitecture(*root->find("architecture"), options.modelsDirectory, description.directory);
  if (!architecture)
    return architecture.takeError();
  description.architecture = std::move(*architecture);
  description.files = {file.str(), description.architecture.path};

  if (const Value *weights = root->find("weights"))
    if (llvm::Error error = readWeights(*weights, description))
      return error;
  if (const Value *generation = root->find("generation"))
    if (llvm::Error error = readGeneration(*generation, description))
      return error;
  if (const Value *tokenizer = root->find("tokenizer")) {
    if (llvm::Error error = checkKeys(*tokenizer, "'tokenizer'", {"from"}))
      return error;
    llvm::Expected<std::string> from = readText(*tokenizer, "from", "tokenizer");
    if (!from)
      return from.takeError();
    if (from->empty())
      return failAt(tokenizer->place, "'tokenizer.from' is missing; accepted: weights, or a file");
    description.tokenizer = *tokenizer->find("from");
  }
  return description;
}

llvm::Expected<Description> describeYaml(StringRef file, const ModelOptions &options) {
  return describe(readYamlFile(file), file, options);
}

llvm::Expected<Description> describeYamlText(StringRef text, StringRef file,
                                             const ModelOptions &options) {
  return describe(readYaml(text, file), file, options);
}

} // namespace tenon
