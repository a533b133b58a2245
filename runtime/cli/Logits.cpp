// OUT logits --input in.safetensors --output out.safetensors
//
//   input_ids [B, L], ...  →  logits [B, L, vocab]        (encoder-decoders: [B, M, vocab])
//
// TokenInput.h says what may be in the input. Rows outside the mask stay zeros. With --hidden also
//
//   hidden [N + 1, B, L, H]       embeddings, then each layer's output: hidden.0, hidden.1, ...
//   hidden_final [B, L, H]        what the head gets
//
// and whatever else the architecture marks. B is left out when it is 1; encoder-decoders have
// enc_hidden, enc_hidden_final, dec_hidden and dec_hidden_final. With labels the loss is printed:
// the mean of -log p(label).
#include "runtime/Engine.h"
#include "runtime/Error.h"
#include "runtime/Program.h"
#include "runtime/RowMath.h"
#include "runtime/Safetensors.h"
#include "runtime/cli/Cli.h"
#include "runtime/cli/TokenInput.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

namespace tenon::rt {

namespace {
// What --hidden writes of one program: "hidden.0", "hidden.1", ... are one tensor [count, ...].
class HiddenOutput {
public:
  using Declarations = std::vector<SafetensorsWriter::Declaration>;

  HiddenOutput(const std::string &prefix, const tenon_hidden *hiddens, int64_t hiddenCount,
               int64_t rows, int64_t columns)
      : rows(rows), columns(columns) {
    for (int64_t h = 0; h < hiddenCount; ++h)
      add(prefix, hiddens[h]);
  }

  void declare(Declarations &declarations) {
    first = declarations.size();
    for (const Stack &stack : stacks) {
      std::vector<int64_t> shape = {columns, stack.width};
      if (rows > 1)
        shape.insert(shape.begin(), rows);
      if (stack.numbered)
        shape.insert(shape.begin(), stack.count);
      declarations.push_back({stack.name, shape});
    }
  }

  void write(SafetensorsWriter &writer, const TokenRun &run, int token, const Row &row) const {
    const int64_t at = run.row * columns + run.first + token;
    for (size_t h = 0; h < places.size(); ++h) {
      const auto [stack, index] = places[h];
      const int64_t width = stacks[stack].width;
      writer.write(first + stack, (index * rows * columns + at) * width, row.hiddens[h], width);
    }
  }

private:
  struct Stack {
    std::string name;
    bool numbered;
    int64_t count, width;
  };

  void add(const std::string &prefix, const tenon_hidden &hidden) {
    const std::string full = prefix + hidden.name, name = full.substr(0, full.rfind('.'));
    size_t stack = 0;
    while (stack < stacks.size() && stacks[stack].name != name)
      ++stack;
    if (stack == stacks.size())
      stacks.push_back({name, name != full, 0, hidden.width});
    places.emplace_back(stack, stacks[stack].count++);
  }

  int64_t rows, columns;
  size_t first = 0; // tensor of the file
  std::vector<Stack> stacks;
  std::vector<std::pair<size_t, int64_t>> places; // of each tenon_hidden: stack, number in it
};

// Where a scored row goes in the output file.
class Output {
public:
  Output(const std::string &path, const TokenInput &input, const tenon_compiled &compiled,
         bool hidden)
      : input(input), vocab(compiled.vocab) {
    HiddenOutput::Declarations tensors = {
        {"logits", {input.rows, input.answeredColumns(), compiled.vocab}}};
    const bool hasDecoder = input.decoderColumns > 0;
    if (hidden && hasDecoder)
      hiddens.emplace_back("enc_", compiled.encoder_hiddens, compiled.encoder_hidden_count,
                           input.rows, input.columns);
    if (hidden)
      hiddens.emplace_back(hasDecoder ? "dec_" : "", compiled.hiddens, compiled.hidden_count,
                           input.rows, input.answeredColumns());
    for (HiddenOutput &output : hiddens)
      output.declare(tensors);
    writer.emplace(path, tensors);
  }

  void write(const TokenRun &run, int token, const Row &row) {
    const int64_t at = run.row * input.answeredColumns() + run.first + token;
    writer->write(0, at * vocab, row.logits, vocab);
    if (!hiddens.empty())
      hiddens.back().write(*writer, run, token, row);
    if (input.labels.empty() || input.labels[at] == noLabel)
      return;
    loss -= logProbability(row.logits, static_cast<int>(vocab), input.labels[at]);
    ++scored;
  }
  void writeEncoder(const TokenRun &run, int token, const Row &row) {
    hiddens.front().write(*writer, run, token, row);
  }
  void finish() {
    writer->finish();
    if (scored > 0)
      print(fmt::format("loss {:.6f}, perplexity {:.4f} over {} labels\n", loss / scored,
                        std::exp(loss / scored), scored));
  }

private:
  const TokenInput &input;
  int64_t vocab;
  std::vector<HiddenOutput> hiddens; // of the encoder, if there is one, then of what answers
  std::optional<SafetensorsWriter> writer;
  double loss = 0;
  int scored = 0;
};

// Runs rows begin .. end - 1 together.
class Group {
public:
  Group(Engine &engine, const TokenInput &input, size_t begin, size_t end)
      : engine(engine), input(input), begin(begin), end(end) {
    for (size_t i = begin; i < end; ++i) {
      sequences.emplace_back(engine.pool());
      memories.emplace_back(engine.memoryPool());
    }
  }

  void encode(Output &output, bool hidden) {
    std::vector<Work> works;
    for (size_t i = begin; i < end; ++i) {
      const TokenRun &run = input.runs[i];
      works.push_back({&memories[i - begin], run.ids.data(), static_cast<int>(run.ids.size()),
                       hidden ? Score::All : Score::None});
    }
    engine.encode(works, [&](const Row &row) {
      output.writeEncoder(input.runs[begin + row.work], row.token, row);
    });
  }

  void answer(Output &output, bool cached) {
    size_t longest = 0;
    for (size_t i = begin; i < end; ++i)
      longest = std::max(longest, input.answeredRuns()[i].ids.size());
    const size_t stride = cached ? 1 : longest;
    for (size_t first = 0; first < longest; first += stride) {
      std::vector<Work> works;
      std::vector<const TokenRun *> runs;
      for (size_t i = begin; i < end; ++i) {
        const TokenRun &run = input.answeredRuns()[i];
        if (first >= run.ids.size())
          continue;
        const size_t count = std::min(stride, run.ids.size() - first);
        works.push_back({&sequences[i - begin], run.ids.data() + first, static_cast<int>(count),
                         Score::All, 0, run.types.empty() ? nullptr : run.types.data() + first,
                         &memories[i - begin]});
        runs.push_back(&run);
      }
      engine.step(works, [&](const Row &row) {
        output.write(*runs[row.work], static_cast<int>(first) + row.token, row);
      });
    }
  }

private:
  Engine &engine;
  const TokenInput &input;
  size_t begin, end;
  std::vector<KvSequence> sequences, memories;
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
  addMachineOptions(app, invocation, engineOptions);
  parse(app, arguments);

  Program program(invocation.compiled, invocation.path, invocation.name);
  if (hidden && invocation.compiled.hidden_count == 0)
    refuse("--hidden: {} was compiled without --emit-hidden", program.meta().model);
  const TokenInput input = readTokenInput(inputPath, program);
  // Rows run together in groups, so that a large batch does not need a large cache.
  const size_t group = std::min<size_t>(16, input.runs.size());
  engineOptions.cacheBlocks =
      KvPool::blocksFor(input.answeredColumns()) * static_cast<int64_t>(group);
  engineOptions.memoryBlocks = KvPool::blocksFor(input.columns) * static_cast<int64_t>(group);
  Engine engine(invocation.compiled, program.artefact(), engineOptions);
  if (cached && !engine.decodes())
    refuse("--cached: {} is an encoder, which sees whole texts and has no cache",
           program.meta().model);
  Output output(outputPath, input, invocation.compiled, hidden);
  for (size_t begin = 0; begin < input.runs.size(); begin += group) {
    Group rows(engine, input, begin, std::min(begin + group, input.runs.size()));
    if (engine.hasMemory())
      rows.encode(output, hidden);
    rows.answer(output, cached);
  }
  output.finish();
}

} // namespace tenon::rt
