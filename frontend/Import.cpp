// Writes the model YAML that stands for a checkpoint, with every number in it.
#include "frontend/Description.h"
#include "frontend/WeightsFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using llvm::StringRef;

namespace tenon {

// One line for each entry; nested maps in flow form. Nulls are what is absent.
static void printConfig(llvm::raw_ostream &os, const Value &config) {
  for (const Entry &entry : *config.asMap()) {
    if (entry.value.isNull())
      continue;
    os << "  " << entry.key << ": " << entry.value.withoutNulls().print() << "\n";
  }
}

llvm::Expected<std::string> importModel(StringRef path, const ModelOptions &options) {
  llvm::Expected<Description> description = describeModel(path, options);
  if (!description)
    return description.takeError();
  llvm::Expected<Value> parameters = bindParameters(*description, options);
  if (!parameters)
    return parameters.takeError();

  std::string text;
  llvm::raw_string_ostream os(text);
  auto print = [](const auto &value) { return Value(value, Place()).print(); };
  os << "model: " << description->name << "\n";
  os << "architecture: " << description->architecture.name << "\n";
  os << "config:\n";
  printConfig(os, *parameters);
  llvm::SmallString<128> weights;
  if (std::error_code error = llvm::sys::fs::real_path(path, weights))
    return failAt(Place::inFile(path), "cannot read: " + error.message());
  os << "weights: {file: " << print(weights.str().str()) << "}\n";
  if (!description->tokenizer.isNull())
    os << "tokenizer: {from: weights}\n";
  auto printList = [&](const auto &items) {
    return "[" + llvm::join(llvm::map_range(items, print), ", ") + "]";
  };
  std::vector<std::string> generation;
  if (!description->eos.empty() || !description->stop.empty())
    generation.push_back("eos: " + printList(description->eos));
  if (!description->stop.empty())
    generation.push_back("stop: " + printList(description->stop));
  if (description->decoderStart)
    generation.push_back("decoder_start: " + std::to_string(*description->decoderStart));
  if (!generation.empty())
    os << "generation: {" << llvm::join(generation, ", ") << "}\n";
  return text;
}

} // namespace tenon
