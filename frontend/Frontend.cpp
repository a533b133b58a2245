#include "frontend/Frontend.h"
#include "frontend/Checkpoint.h"
#include "frontend/Description.h"
#include "frontend/Graph.h"
#include "frontend/WeightsFile.h"
#include "ir/RandomWeights.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/xxhash.h"

using llvm::StringRef;

namespace tenon {

// The same model has the same digest, wherever its files lie.
static std::string computeDigest(const Description &description, const Value &parameters,
                                 const Model &model, llvm::ArrayRef<TensorInfo> tensors) {
  llvm::SHA256 hash;
  auto add = [&](StringRef text) {
    hash.update(std::to_string(text.size()) + ":");
    hash.update(text);
  };
  add(description.name);
  add(description.architecture.file.print());
  add(parameters.print());
  for (int64_t id : description.eos)
    add(std::to_string(id));
  if (description.decoderStart)
    add("decoder start " + std::to_string(*description.decoderStart));
  for (const std::string &text : description.stop)
    add(text);
  add(description.weightsSha256);
  for (const TensorInfo &tensor : tensors) {
    add(tensor.name);
    add(getStorageInfo(tensor.storage).name);
  }
  add(std::to_string(
      llvm::xxh3_64bits(model.tokenizer))); // megabytes, for which SHA-256 takes its time
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

llvm::Expected<Model> loadModel(mlir::MLIRContext &context, StringRef path,
                                const ModelOptions &options) {
  llvm::Expected<Description> description = describeModel(path, options);
  if (!description)
    return description.takeError();
  const Architecture &architecture = description->architecture;
  if (const Value *plugins = architecture.file.find("plugins"))
    if (llvm::Error error = loadPlugins(*plugins, architecture.path, options))
      return error;
  llvm::Expected<Value> parameters = bindParameters(*description, options);
  if (!parameters)
    return parameters.takeError();
  for (StringRef limit : {"vocab", "context"}) // whose defaults may be null
    if (!parameters->find(limit)->asInteger())
      return failAt(description->place, "'" + limit + "' is missing; accepted: an integer");

  llvm::Expected<WeightsFile> weights = openWeightsOf(*description, options);
  if (!weights)
    return weights.takeError();
  Checkpoint checkpoint(weights->source.get(),
                        architecture.getSection(weights->isGguf() ? "gguf" : "hf"), *parameters);
  auto resolve = [&](const std::string &stem, const std::string &suffix,
                     llvm::ArrayRef<int64_t> shape,
                     const Place &place) { return checkpoint.resolve(stem, suffix, shape, place); };
  llvm::Expected<Graph> graph = buildGraph(context, architecture, *parameters,
                                           {description->name, options.emitHidden}, resolve);
  if (!graph)
    return graph.takeError();
  // With `--set layers=2` the other layers' tensors are not read, on purpose.
  if (options.sets.empty())
    if (llvm::Error error = checkpoint.checkSurplus(architecture.name))
      return error;
  if (weights->randomSeed)
    weights->source = std::make_unique<RandomWeights>(*weights->randomSeed, graph->tensors);

  llvm::Expected<std::vector<uint8_t>> tokenizer =
      buildTokenizerOf(*description, *weights, options);
  if (!tokenizer)
    return tokenizer.takeError();

  Model model;
  model.module = std::move(graph->module);
  model.weights = std::move(weights->source);
  model.name = description->name;
  model.architecture = architecture.name;
  model.vocab = *parameters->find("vocab")->asInteger();
  model.context = *parameters->find("context")->asInteger();
  model.parameters = graph->parameters;
  model.eos = description->eos;
  model.stop = description->stop;
  model.decoderStart = description->decoderStart;
  model.tokenizer = std::move(*tokenizer);
  model.digest = computeDigest(*description, *parameters, model, graph->tensors);
  model.files = description->files;
  llvm::append_range(model.files, weights->list());
  llvm::sort(model.files);
  model.files.erase(llvm::unique(model.files), model.files.end());
  return model;
}

} // namespace tenon
