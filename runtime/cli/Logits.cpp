// OUT logits --input in.safetensors --output out.safetensors
//
//   input_ids [B, L], attention_mask [B, L] (optional)  →  logits [B, L, vocab]
//
//   mask 0 0 1 1 1 0     one run of 1s in each row: its tokens are a sequence with positions from
//   0;
//        - - 0 1 2 -     rows outside it stay zeros
//
// With --hidden also what the architecture marks: hidden [N + 1, B, L, H] (embeddings, then each
// layer's output), of hidden.0, hidden.1, ..., and hidden_final [B, L, H] (what the head gets). B
// is left out when it is 1.
#include "runtime/Engine.h"
#include "runtime/Error.h"
#include "runtime/Program.h"
#include "runtime/Safetensors.h"
#include "runtime/cli/Cli.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstring>
#include <optional>

namespace tenon::rt {

namespace {
struct Run { // a row's sequence
  int64_t row, first;
  std::vector<int32_t> ids;
};

struct Input {
  int64_t rows, columns;
  std::vector<Run> runs;
};
} // namespace

static int64_t integerAt(const Tensor &tensor, int64_t index) {
  auto read = [&](auto value) {
    std::memcpy(&value, tensor.data + index * static_cast<int64_t>(sizeof value), sizeof value);
    return static_cast<int64_t>(value);
  };
  if (tensor.dtype == "I64")
    return read(int64_t());
  return tensor.dtype == "I32" ? read(int32_t()) : read(uint8_t());
}

static void checkMatrix(const std::string &path, const Tensor &tensor,
                        std::initializer_list<const char *> dtypes) {
  std::string accepted;
  bool known = false;
  for (const char *dtype : dtypes) {
    known |= tensor.dtype == dtype;
    accepted += (accepted.empty() ? "" : ", ") + std::string(dtype);
  }
  if (!known || tensor.shape.size() != 2 || tensor.elements == 0)
    refuse("{}: '{}' must be a non-empty [B, L] of {}", path, tensor.name, accepted);
}

static Input readInput(const std::string &path, const Program &program) {
  SafetensorsFile file(path);
  for (const Tensor &tensor : file.tensors())
    if (tensor.name != "input_ids" && tensor.name != "attention_mask")
      refuse("{}: this model has no input '{}'; it takes input_ids and attention_mask", path,
             tensor.name);
  const Tensor *ids = file.find("input_ids"), *mask = file.find("attention_mask");
  if (!ids)
    refuse("{}: input_ids is missing", path);
  checkMatrix(path, *ids, {"I64", "I32"});
  if (mask) {
    checkMatrix(path, *mask, {"I64", "I32", "BOOL", "U8"});
    if (mask->shape != ids->shape)
      refuse("{}: attention_mask is [{}, {}] but input_ids is [{}, {}]", path, mask->shape[0],
             mask->shape[1], ids->shape[0], ids->shape[1]);
  }
  Input input = {ids->shape[0], ids->shape[1], {}};
  for (int64_t row = 0; row < input.rows; ++row) {
    Run run = {row, -1, {}};
    bool ended = false;
    for (int64_t column = 0; column < input.columns; ++column) {
      const int64_t at = row * input.columns + column;
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
      const int64_t id = integerAt(*ids, at);
      if (id < 0 || id >= program.compiled().vocab)
        refuse("{}: input_ids[{}, {}] is {}, outside the vocabulary 0..{}", path, row, column, id,
               program.compiled().vocab - 1);
      run.ids.push_back(static_cast<int32_t>(id));
    }
    if (run.first < 0)
      refuse("{}: row {} of attention_mask has no 1", path, row);
    if (static_cast<int64_t>(run.ids.size()) > program.compiled().context)
      refuse("{}: row {} has {} tokens, the context holds {}", path, row, run.ids.size(),
             program.compiled().context);
    input.runs.push_back(std::move(run));
  }
  return input;
}

namespace {
// What --hidden writes: "hidden.0", "hidden.1", ... are one tensor [count, ...].
struct HiddenTensor {
  std::string name;
  bool numbered;
  int64_t count, width;
};

// Where a scored row goes in the output file.
class Output {
public:
  Output(const std::string &path, const Input &input, const tenon_compiled &compiled, bool hidden)
      : columns(input.columns), rows(input.rows), vocab(compiled.vocab) {
    for (int64_t h = 0; hidden && h < compiled.hidden_count; ++h)
      add(compiled.hiddens[h]);
    writer.emplace(path, declare());
  }

  void write(const Run &run, int token, const Row &row) {
    const int64_t at = run.row * columns + run.first + token;
    writer->write(0, at * vocab, row.logits, vocab);
    for (size_t h = 0; h < places.size(); ++h) {
      const auto [tensor, index] = places[h];
      const int64_t width = tensors[tensor].width;
      writer->write(1 + tensor, (index * rows * columns + at) * width, row.hiddens[h], width);
    }
  }
  void finish() { writer->finish(); }

private:
  void add(const tenon_hidden &hidden) {
    const std::string full = hidden.name, name = full.substr(0, full.rfind('.'));
    size_t tensor = 0;
    while (tensor < tensors.size() && tensors[tensor].name != name)
      ++tensor;
    if (tensor == tensors.size())
      tensors.push_back({name, name != full, 0, hidden.width});
    places.emplace_back(tensor, tensors[tensor].count++);
  }

  std::vector<SafetensorsWriter::Declaration> declare() const {
    std::vector<SafetensorsWriter::Declaration> declarations = {{"logits", {rows, columns, vocab}}};
    for (const HiddenTensor &tensor : tensors) {
      std::vector<int64_t> shape = {columns, tensor.width};
      if (rows > 1)
        shape.insert(shape.begin(), rows);
      if (tensor.numbered)
        shape.insert(shape.begin(), tensor.count);
      declarations.push_back({tensor.name, shape});
    }
    return declarations;
  }

  int64_t columns, rows, vocab;
  std::vector<HiddenTensor> tensors;
  std::vector<std::pair<size_t, int64_t>> places; // of each tenon_hidden: tensor, number in it
  std::optional<SafetensorsWriter> writer;
};
} // namespace

void runLogits(const Invocation &invocation, const Arguments &arguments) {
  std::string inputPath, outputPath;
  bool cached = false, hidden = false;
  EngineOptions engineOptions;
  CLI::App app("Answers every token of a batch with its logits.", "logits");
  app.add_option("--input", inputPath, "safetensors with input_ids [B, L] and attention_mask")
      ->required()
      ->option_text("FILE");
  app.add_option("--output", outputPath, "safetensors to write: logits [B, L, vocab]")
      ->required()
      ->option_text("FILE");
  app.add_flag("--cached", cached, "Feed one token at a time through the KV cache");
  app.add_flag("--hidden", hidden, "Write hidden states too (needs --emit-hidden at compile)");
  addThreadOptions(app, engineOptions.threads, engineOptions.pin);
  parse(app, arguments);

  Program program(invocation.compiled, invocation.path, invocation.name);
  if (hidden && invocation.compiled.hidden_count == 0)
    refuse("--hidden: {} was compiled without --emit-hidden", program.meta().model);
  const Input input = readInput(inputPath, program);
  // Rows run together in groups, so that a large batch does not need a large cache.
  const size_t group = 16;
  engineOptions.cacheBlocks =
      KvPool::blocksFor(input.columns) * static_cast<int64_t>(std::min(group, input.runs.size()));
  Engine engine(invocation.compiled, program.artefact(), engineOptions);
  Output output(outputPath, input, invocation.compiled, hidden);

  for (size_t begin = 0; begin < input.runs.size(); begin += group) {
    const size_t end = std::min(begin + group, input.runs.size());
    std::vector<KvSequence> sequences;
    size_t longest = 0;
    for (size_t i = begin; i < end; ++i) {
      sequences.emplace_back(engine.pool());
      longest = std::max(longest, input.runs[i].ids.size());
    }
    const size_t stride = cached ? 1 : longest;
    for (size_t first = 0; first < longest; first += stride) {
      std::vector<Work> works;
      std::vector<const Run *> runs;
      for (size_t i = begin; i < end; ++i) {
        const Run &run = input.runs[i];
        if (first >= run.ids.size())
          continue;
        const size_t count = std::min(stride, run.ids.size() - first);
        works.push_back(
            {&sequences[i - begin], run.ids.data() + first, static_cast<int>(count), Score::All});
        runs.push_back(&run);
      }
      engine.step(works, [&](const Row &row) {
        output.write(*runs[row.work], static_cast<int>(first) + row.token, row);
      });
    }
  }
  output.finish();
}

} // namespace tenon::rt
