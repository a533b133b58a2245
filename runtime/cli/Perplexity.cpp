// OUT perplexity FILE: how well the model predicts a text.
//
//   one context:      t0 t1 t2 … tn                    t1 … tn are predicted from all before
//   --chunk 512:      t0 … t511 | t512 … t1023 | …     each chunk alone, but for its first token
//   --cached:         one token at a time, as in decoding
//
//   mean_nll = mean of -log p(token) over the predicted tokens;  ppl = exp(mean_nll)
#include "runtime/Engine.h"
#include "runtime/Error.h"
#include "runtime/Program.h"
#include "runtime/RowMath.h"
#include "runtime/cli/Cli.h"
#include "runtime/cli/Json.h"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace tenon::rt {

void runPerplexity(const Invocation &invocation, const Arguments &arguments) {
  std::string path;
  int chunk = 0;
  bool cached = false, json = false;
  EngineOptions engineOptions;
  CLI::App app("Measures how well the model predicts a text.", "perplexity");
  app.add_option("file", path, "A text file; - reads standard input")
      ->required()
      ->option_text("FILE");
  app.add_option("--chunk", chunk, "Cut the text into independent chunks of N tokens")
      ->check(CLI::PositiveNumber)
      ->option_text("N");
  app.add_flag("--cached", cached, "Feed one token at a time through the KV cache");
  addMachineOptions(app, invocation, engineOptions);
  app.add_flag("--json", json, "Print {ppl, mean_nll, tokens, scored}");
  parse(app, arguments);

  Program program(invocation.compiled, invocation.path, invocation.name);
  const std::vector<int32_t> ids = program.tokenizer().encodeIds(readFile(path));
  const size_t context = static_cast<size_t>(invocation.compiled.context);
  const size_t length = chunk > 0 ? static_cast<size_t>(chunk) : ids.size();
  if (ids.size() < 2 || length < 2)
    refuse("{}: at least 2 tokens are needed to predict one", path);
  if (std::min(length, ids.size()) > context)
    refuse("{} tokens in one piece, the context holds {}; give --chunk {}", length, context,
           context);

  engineOptions.cacheBlocks = KvPool::blocksFor(static_cast<int64_t>(std::min(length, ids.size())));
  Engine engine(invocation.compiled, program.artefact(), engineOptions);
  if (!engine.decodes() || engine.hasMemory())
    refuse("perplexity: {} does not predict a text from its beginning; `logits` takes labels",
           program.meta().model);
  double nll = 0;
  size_t scored = 0;
  for (size_t begin = 0; begin < ids.size(); begin += length) {
    const size_t end = std::min(begin + length, ids.size());
    if (end - begin < 2)
      break;
    KvSequence sequence(engine.pool());
    const size_t stride = cached ? 1 : end - begin - 1;
    for (size_t first = begin; first < end - 1; first += stride) {
      Work work = {&sequence, ids.data() + first, static_cast<int>(stride), Score::All};
      engine.step({work}, [&](const Row &row) {
        nll -= logProbability(row.logits, engine.vocab(), work.ids[row.token + 1]);
        ++scored;
      });
    }
  }
  const double mean = nll / static_cast<double>(scored);
  if (json)
    return printJson(
        {{"ppl", std::exp(mean)}, {"mean_nll", mean}, {"tokens", ids.size()}, {"scored", scored}});
  print(fmt::format("perplexity {:.4f}, mean nll {:.6f} over {} of {} tokens\n", std::exp(mean),
                    mean, scored, ids.size()));
}

} // namespace tenon::rt
