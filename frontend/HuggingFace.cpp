// A Hugging Face directory: config.json, generation_config.json, *.safetensors, tokenizer.json.
// JSON is read as the YAML that it is, so that messages can name lines.
#include "frontend/ConfigMap.h"
#include "frontend/Description.h"
#include "frontend/Yaml.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using llvm::StringRef;

namespace tenon {

static std::string inDirectory(StringRef directory, StringRef file) {
  llvm::SmallString<128> path(directory);
  llvm::sys::path::append(path, file);
  return path.str().str();
}

// The architecture whose `hf.model_type` has this one.
static llvm::Expected<Architecture> findByModelType(const Value &modelType, StringRef models) {
  if (!modelType.asString())
    return failAt(modelType.place, "'model_type' must be text, got " + modelType.describe());
  llvm::Expected<std::vector<std::string>> paths = listArchitectures(models);
  if (!paths)
    return paths.takeError();
  std::vector<std::string> known;
  for (const std::string &path : *paths) {
    llvm::Expected<Architecture> architecture = readArchitecture(path);
    if (!architecture)
      return architecture;
    const Value *types = architecture->file.findPath("hf.model_type");
    if (!types || !types->asMap())
      continue;
    if (types->find(*modelType.asString()))
      return architecture;
    for (const Entry &type : *types->asMap())
      known.push_back(type.key);
  }
  return failAt(modelType.place, "no architecture for model_type " + modelType.describe() +
                                     "; accepted: " + llvm::join(known, ", "));
}

llvm::Expected<Description> describeHuggingFace(StringRef directory, const ModelOptions &options) {
  std::string file = inDirectory(directory, "config.json");
  llvm::Expected<Value> config = readYamlFile(file);
  if (!config)
    return config.takeError();
  const Value *modelType = config->find("model_type");
  if (!modelType)
    return failAt(config->place, "'model_type' is missing");
  llvm::Expected<Architecture> architecture = findByModelType(*modelType, options.modelsDirectory);
  if (!architecture)
    return architecture.takeError();

  Description description;
  description.architecture = std::move(*architecture);
  description.files = {file, description.architecture.path};
  const Value &section = *description.architecture.getSection("hf");
  ConfigMapping mapping = {section, section.find("model_type")->find(*modelType->asString()),
                           options.allowUnusedConfig};
  std::vector<Entry> keys = flatten(*config);
  llvm::erase_if(keys, [](const Entry &key) { return key.key == "model_type"; });
  llvm::Expected<Value> parameters = mapConfig(mapping, keys, config->place);
  if (!parameters)
    return parameters.takeError();
  description.config = std::move(*parameters);
  description.name = nameFromPath(directory);
  description.place = config->place;
  description.weightsFile = Value(directory.str(), config->place);
  if (llvm::sys::fs::exists(inDirectory(directory, "tokenizer.json")))
    description.tokenizer = Value(std::string("weights"), config->place);

  // generation_config.json is what generate() obeys; config.json has the id in older checkpoints.
  std::string generationFile = inDirectory(directory, "generation_config.json");
  Value generation;
  if (llvm::sys::fs::exists(generationFile)) {
    llvm::Expected<Value> read = readYamlFile(generationFile);
    if (!read)
      return read.takeError();
    generation = std::move(*read);
    description.files.push_back(generationFile);
  }
  auto readIds = [&](StringRef key) -> llvm::Expected<std::vector<int64_t>> {
    for (const Value *source : {&std::as_const(generation), &std::as_const(*config)})
      if (const Value *ids = source->find(key); ids && !ids->isNull())
        return readTokenIds(*ids, key);
    return std::vector<int64_t>();
  };
  llvm::Expected<std::vector<int64_t>> eos = readIds("eos_token_id");
  if (!eos)
    return eos.takeError();
  description.eos = *eos;
  llvm::Expected<std::vector<int64_t>> start = readIds("decoder_start_token_id");
  if (!start)
    return start.takeError();
  if (!start->empty())
    description.decoderStart = start->front();
  return description;
}

} // namespace tenon
