#include "runtime/cli/TokenInput.h"

#include "runtime/Error.h"
#include "runtime/Safetensors.h"

#include <algorithm>
#include <cstring>

namespace tenon::rt {

static int64_t integerAt(const Tensor &tensor, int64_t index) {
  auto read = [&](auto value) {
    std::memcpy(&value, tensor.data + index * static_cast<int64_t>(sizeof value), sizeof value);
    return static_cast<int64_t>(value);
  };
  if (tensor.dtype == "I64")
    return read(int64_t());
  return tensor.dtype == "I32" ? read(int32_t()) : read(uint8_t());
}

namespace {
class Reader {
public:
  Reader(const std::string &path, const Program &program)
      : path(path), compiled(program.compiled()), file(path) {}

  TokenInput read() {
    checkNames();
    TokenInput input;
    const Tensor &ids = require("input_ids");
    const Tensor *mask = find("attention_mask", {"I64", "I32", "BOOL", "U8"}, &ids);
    const Tensor *types = find("token_type_ids", {"I64", "I32"}, &ids);
    input.rows = ids.shape[0], input.columns = ids.shape[1];
    const int32_t vocabulary = hasDecoder() ? compiled.encoder_vocab : compiled.vocab;
    for (int64_t row = 0; row < input.rows; ++row)
      input.runs.push_back(readRun(ids, mask, types, row, vocabulary));
    if (hasDecoder()) {
      const Tensor &decoderIds = require("decoder_input_ids");
      if (decoderIds.shape[0] != input.rows)
        refuse("{}: decoder_input_ids has {} rows but input_ids has {}", path, decoderIds.shape[0],
               input.rows);
      input.decoderColumns = decoderIds.shape[1];
      for (int64_t row = 0; row < input.rows; ++row)
        input.decoderRuns.push_back(readRun(decoderIds, nullptr, nullptr, row, compiled.vocab));
      readLabels(input, decoderIds);
    } else {
      readLabels(input, ids);
    }
    return input;
  }

private:
  bool hasDecoder() const { return compiled.memory.layers > 0; }

  void checkNames() const {
    std::vector<std::string> accepted = {"input_ids", "attention_mask"};
    if (compiled.token_types > 0)
      accepted.push_back("token_type_ids");
    if (hasDecoder())
      accepted.push_back("decoder_input_ids");
    accepted.push_back("labels");
    for (const Tensor &tensor : file.tensors())
      if (std::find(accepted.begin(), accepted.end(), tensor.name) == accepted.end()) {
        std::string list;
        for (const std::string &name : accepted)
          list += (list.empty() ? "" : name == accepted.back() ? " and " : ", ") + name;
        refuse("{}: this model has no input '{}'; it takes {}", path, tensor.name, list);
      }
  }

  // A matrix, in the shape of `like`.
  const Tensor *find(const char *name, std::initializer_list<const char *> dtypes,
                     const Tensor *like) const {
    const Tensor *tensor = file.find(name);
    if (!tensor)
      return nullptr;
    std::string accepted;
    bool known = false;
    for (const char *dtype : dtypes) {
      known |= tensor->dtype == dtype;
      accepted += (accepted.empty() ? "" : ", ") + std::string(dtype);
    }
    if (!known || tensor->shape.size() != 2 || tensor->elements == 0)
      refuse("{}: '{}' must be a non-empty [B, L] of {}", path, name, accepted);
    if (like && tensor->shape != like->shape)
      refuse("{}: {} is [{}, {}] but {} is [{}, {}]", path, name, tensor->shape[0],
             tensor->shape[1], like->name, like->shape[0], like->shape[1]);
    return tensor;
  }

  const Tensor &require(const char *name) const {
    const Tensor *tensor = find(name, {"I64", "I32"}, nullptr);
    if (!tensor)
      refuse("{}: {} is missing", path, name);
    return *tensor;
  }

  TokenRun readRun(const Tensor &ids, const Tensor *mask, const Tensor *types, int64_t row,
                   int32_t vocabulary) const {
    const int64_t columns = ids.shape[1];
    TokenRun run = {row, -1, {}, {}};
    bool ended = false;
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t at = row * columns + column;
      const int64_t visible = mask ? integerAt(*mask, at) : 1;
      if (visible != 0 && visible != 1)
        refuse("{}: attention_mask[{}, {}] is {}; only 0 and 1 are known", path, row, column,
               visible);
      if (!visible) {
        ended = run.first >= 0;
        continue;
      }
      if (ended)
        refuse("{}: row {} of attention_mask is not one run of 1s (left or right padding)", path,
               row);
      if (run.first < 0)
        run.first = column;
      const int64_t id = integerAt(ids, at);
      if (id < 0 || id >= vocabulary)
        refuse("{}: {}[{}, {}] is {}, outside the vocabulary 0..{}", path, ids.name, row, column,
               id, vocabulary - 1);
      run.ids.push_back(static_cast<int32_t>(id));
      if (!types)
        continue;
      const int64_t type = integerAt(*types, at);
      if (type < 0 || type >= compiled.token_types)
        refuse("{}: token_type_ids[{}, {}] is {}; the model knows 0..{}", path, row, column, type,
               compiled.token_types - 1);
      run.types.push_back(static_cast<int32_t>(type));
    }
    if (run.first < 0)
      refuse("{}: row {} of attention_mask has no 1", path, row);
    if (static_cast<int64_t>(run.ids.size()) > compiled.context)
      refuse("{}: row {} has {} tokens, the context holds {}", path, row, run.ids.size(),
             compiled.context);
    return run;
  }

  void readLabels(TokenInput &input, const Tensor &like) const {
    const Tensor *labels = find("labels", {"I64", "I32"}, &like);
    for (int64_t i = 0; labels && i < labels->elements; ++i) {
      const int64_t label = integerAt(*labels, i);
      if (label != noLabel && (label < 0 || label >= compiled.vocab))
        refuse("{}: labels[{}, {}] is {}; accepted: 0..{}, or {} for none", path, i / like.shape[1],
               i % like.shape[1], label, compiled.vocab - 1, noLabel);
      input.labels.push_back(static_cast<int32_t>(label));
    }
  }

  const std::string &path;
  const tenon_compiled &compiled;
  const SafetensorsFile file;
};
} // namespace

TokenInput readTokenInput(const std::string &path, const Program &program) {
  return Reader(path, program).read();
}

} // namespace tenon::rt
