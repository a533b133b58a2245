// A .gguf file as a model: its metadata is the configuration.
#include "frontend/Checkpoint.h"
#include "frontend/ConfigMap.h"
#include "frontend/Description.h"
#include "frontend/weights/Gguf.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <charconv>

using llvm::StringRef;

namespace tenon {

// Arrays that a configuration can have are short: one element for each layer.
static constexpr uint64_t maxListSize = 4096;

// An f32 stands for the shortest decimal that rounds to it: 1e-05, not 9.99999974737875e-06.
static double widen(float number) {
  char buffer[32];
  double result = number;
  std::from_chars(buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr, result);
  return result;
}

static Value toValue(const GgufValue &value, const Place &place) {
  if (std::optional<StringRef> text = value.asString())
    return Value(text->str(), place);
  if (std::optional<bool> flag = value.asBool())
    return Value(*flag, place);
  if (std::optional<int64_t> integer = value.asInteger())
    return Value(*integer, place);
  if (std::optional<double> number = value.asFloat())
    return Value(value.getType() == GgufType::Float32 ? widen(float(*number)) : *number, place);
  Value::List list;
  if (value.isArray() && value.size() <= maxListSize)
    if (std::optional<std::vector<int64_t>> integers = value.asIntegers())
      for (int64_t integer : *integers)
        list.emplace_back(integer, place);
  return Value(std::move(list), place);
}

// Whether the file has each of these numbers, and none is 0: `requires: [expert_count]`.
static bool hasAll(const GgufFile &file, StringRef name, const Value &keys) {
  return keys.asList() && llvm::all_of(*keys.asList(), [&](const Value &key) {
           return key.asString() && llvm::any_of(file.getValues(), [&](const GgufValue &value) {
                    return value.getKey() == (name + "." + *key.asString()).str() &&
                           value.asInteger().value_or(0) != 0;
                  });
         });
}

// The architecture whose `gguf.architecture` has this one; rather one that requires what is there.
static llvm::Expected<Architecture> findByGgufName(const GgufFile &file, StringRef name,
                                                   StringRef models) {
  llvm::Expected<std::vector<std::string>> paths = listArchitectures(models);
  if (!paths)
    return paths.takeError();
  std::vector<std::string> known;
  std::optional<Architecture> general;
  for (const std::string &path : *paths) {
    llvm::Expected<Architecture> architecture = readArchitecture(path);
    if (!architecture)
      return architecture;
    const Value *names = architecture->file.findPath("gguf.architecture");
    const Value *needed = architecture->file.findPath("gguf.requires");
    if (!names || !names->asList())
      continue;
    for (const Value &candidate : *names->asList()) {
      known.push_back(candidate.print());
      if (!candidate.asString() || *candidate.asString() != name)
        continue;
      if (needed && hasAll(file, name, *needed))
        return architecture;
      if (!needed && !general)
        general = std::move(*architecture);
      break;
    }
  }
  if (general)
    return std::move(*general);
  return failAt(Place::inFile(file.getName() + ":general.architecture"),
                "no architecture for '" + name + "'; accepted: " + llvm::join(known, ", "));
}

// The first tensor that fits; a `$word` stands for digits.
static const TensorInfo *findMatch(const GgufFile &file, StringRef pattern) {
  std::vector<std::pair<std::string, int64_t>> found;
  const auto *tensor = llvm::find_if(file.getTensors(), [&](const TensorInfo &tensor) {
    return matchPattern(pattern, tensor.name, found);
  });
  return tensor == file.getTensors().end() ? nullptr : tensor;
}

static Value::List readNumbers(GgufFile &file, const TensorInfo &tensor, const Place &place) {
  std::vector<float> numbers(tensor.shape[0]);
  decodeRow(tensor.storage, file.getRows(tensor, 0, 1).data(), tensor.shape[0], numbers.data());
  Value::List list;
  for (float number : numbers)
    list.emplace_back(widen(number), place);
  return list;
}

// Parameters that follow from what tensors there are.
//   from_tensors: {vocab: {rows_of: token_embd.weight}, tie_embeddings: {lacks: output.weight},
//                  bias: {has: blk.$i.attn_q.bias}, divisors: {numbers_of: rope_freqs.weight}}
static llvm::Error addFromTensors(GgufFile &file, const Value &rules, Value &config) {
  if (!rules.asMap())
    return failAt(rules.place, "'from_tensors' must be a map");
  Place place = Place::inFile(file.getName());
  for (const Entry &rule : *rules.asMap()) {
    static constexpr StringRef kinds[] = {"rows_of", "numbers_of", "has", "lacks"};
    const Value *pattern = nullptr;
    StringRef kind;
    for (StringRef candidate : kinds)
      if (const Value *found = rule.value.find(candidate))
        pattern = found, kind = candidate;
    if (!pattern || !pattern->asString())
      return failAt(rule.place, "'" + rule.key + "' must be {KIND: TENSOR}, where KIND is one of " +
                                    llvm::join(llvm::ArrayRef(kinds), ", "));
    const std::string &name = *pattern->asString();
    const TensorInfo *tensor = findMatch(file, name);
    // A tensor that is there in an unreadable format is there.
    if (!tensor && !file.explain(name).empty())
      return failAt(place, file.explain(name));
    Value value(bool(tensor) != (kind == "lacks"), place);
    if (kind == "rows_of") {
      if (!tensor || tensor->shape.size() != 2)
        return failAt(place, "matrix '" + name + "' is missing");
      value = Value(tensor->shape[0], place);
    } else if (kind == "numbers_of") {
      if (!tensor)
        continue;
      if (tensor->shape.size() != 1 || tensor->shape[0] > int64_t(maxListSize))
        return failAt(place, "tensor '" + name + "' is not a list of up to " +
                                 llvm::Twine(maxListSize) + " numbers");
      value = Value(readNumbers(file, *tensor, place), place);
    }
    const Value *given = config.findPath(rule.key);
    if (given && !(*given == value))
      return failAt(given->place, "'" + rule.key + "' is " + given->print() +
                                      ", but the tensors say " + value.print());
    config.setPath(rule.key, std::move(value), place);
  }
  return llvm::Error::success();
}

llvm::Expected<Description> describeGguf(StringRef path, const ModelOptions &options) {
  llvm::Expected<std::unique_ptr<GgufFile>> opened = GgufFile::open(path);
  if (!opened)
    return opened.takeError();
  GgufFile &file = **opened;
  std::optional<StringRef> name = file.getString("general.architecture");
  if (!name)
    return failAt(Place::inFile(path), "'general.architecture' is missing");
  llvm::Expected<Architecture> architecture = findByGgufName(file, *name, options.modelsDirectory);
  if (!architecture)
    return architecture.takeError();

  Description description;
  description.architecture = std::move(*architecture);
  description.files = {path.str(), description.architecture.path};
  description.place = Place::inFile(path);
  description.name = nameFromPath(path);
  const Value &section = *description.architecture.getSection("gguf");

  std::vector<Entry> keys;
  for (const GgufValue &value : file.getValues()) {
    StringRef key = value.getKey();
    Place place = Place::inFile(path + ":" + key);
    if (key.consume_front(*name) && !key.consume_front("."))
      key = value.getKey();
    keys.push_back({key.str(), place, toValue(value, place)});
  }
  llvm::Expected<Value> config = mapConfig(
      {section, section.find("absent"), options.allowUnusedConfig}, keys, description.place);
  if (!config)
    return config.takeError();
  description.config = std::move(*config);
  // What is so in every file of this kind.
  if (const Value *set = section.find("set"); set && set->asMap())
    for (const Entry &entry : *set->asMap())
      description.config.setPath(entry.key, Value(entry.value.data, description.place),
                                 entry.place);
  if (const Value *rules = section.find("from_tensors"))
    if (llvm::Error error = addFromTensors(file, *rules, description.config))
      return error;

  description.weightsFile = Value(path.str(), description.place);
  if (file.findValue("tokenizer.ggml.model"))
    description.tokenizer = Value(std::string("weights"), description.place);
  for (StringRef key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                        "tokenizer.ggml.eom_token_id"})
    if (std::optional<int64_t> id = file.getInteger(key);
        id && !llvm::is_contained(description.eos, *id))
      description.eos.push_back(*id);
  description.opened = std::move(*opened);
  return description;
}

} // namespace tenon
