// OUT "prompt", OUT generate "prompt"
#include "runtime/Generate.h"

#include "runtime/Error.h"
#include "runtime/cli/Cli.h"
#include "runtime/cli/Json.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>

namespace tenon::rt {

static constexpr int defaultTokens = 512;

void runGenerate(const Invocation &invocation, const Arguments &arguments) {
  GenerateOptions options;
  EngineOptions engineOptions;
  SamplingOptions &sampling = options.sampling;
  std::string prompt, idList;
  int count = defaultTokens, beams = 1;
  uint64_t seed = 0;
  bool json = false;

  CLI::App app("Continues a prompt. Other commands: logits, tokenize, detokenize, perplexity, "
               "info, bench (each has --help).",
               invocation.name.substr(invocation.name.rfind('/') + 1));
  app.add_option("prompt", prompt,
                 "The text to continue; - reads standard input, -- TEXT takes "
                 "any text")
      ->option_text("TEXT");
  app.add_option("--ids", idList, "The prompt as token ids: 1,2,3")->option_text("IDS");
  app.add_option("-n", count, "Generate at most N tokens (512)")
      ->check(CLI::NonNegativeNumber)
      ->option_text("N");
  auto *temperature =
      app.add_option("--temperature", sampling.temperature,
                     "0 takes the best token; the default, or 1 with --top-k, --top-p or --min-p")
          ->option_text("T");
  auto *topK = app.add_option("--top-k", sampling.topK, "Draw from the K best")->option_text("K");
  auto *topP = app.add_option("--top-p", sampling.topP, "Draw from the best that have the mass P")
                   ->option_text("P");
  auto *minP = app.add_option("--min-p", sampling.minP,
                              "Draw from those at least P times as likely as the best")
                   ->option_text("P");
  app.add_option("--repetition-penalty", sampling.repetitionPenalty,
                 "Divide the logits of tokens already there (1)")
      ->option_text("X");
  app.add_option("--frequency-penalty", sampling.frequencyPenalty,
                 "Subtract X for each time a token was generated")
      ->option_text("X");
  app.add_option("--presence-penalty", sampling.presencePenalty,
                 "Subtract X once from tokens already generated")
      ->option_text("X");
  app.add_option("--no-repeat-ngram", sampling.noRepeatNgram, "Never repeat N tokens in a row")
      ->option_text("N");
  auto *seedOption =
      app.add_option("--seed", seed, "The same seed draws the same tokens")->option_text("S");
  app.add_option("--stop", options.stop, "End before this text; may be given several times")
      ->type_size(1)
      ->allow_extra_args(false)
      ->option_text("S");
  app.add_option("--beams", beams, "Beams (1)")->option_text("B");
  app.add_flag("--ignore-eos", options.ignoreEos, "Go on after the model's own end");
  addThreadOptions(app, engineOptions.threads, engineOptions.pin);
  app.add_flag("--json", json, "Print one JSON object");
  parse(app, arguments);

  if (beams != 1)
    refuse("--beams {}: not supported yet, only 1", beams);
  if (seedOption->count())
    sampling.seed = seed;
  if (!temperature->count() && (topK->count() || topP->count() || minP->count()))
    sampling.temperature = 1;
  checkSampling(sampling);
  options.maxTokens = count;
  options.logprobs = json;

  if (!idList.empty() && !prompt.empty())
    refuse("give a prompt or --ids, not both");
  Program program(invocation.compiled, invocation.path, invocation.name);
  std::vector<int32_t> ids =
      idList.empty() ? program.tokenizer().encodeIds(readText(prompt)) : parseIds(idList, "--ids");
  if (!options.stop.empty() && !program.hasTokenizer())
    refuse("--stop needs a tokenizer and {} was compiled without one", program.meta().model);
  // A cache for what may come, not for the whole context: it starts faster and stays smaller.
  engineOptions.cacheBlocks = KvPool::blocksFor(
      std::min<int64_t>(invocation.compiled.context, static_cast<int64_t>(ids.size()) + count));
  Engine engine(invocation.compiled, program.artefact(), engineOptions);
  const double loadMs = invocation.started.ms();
  double firstTokenMs = 0;

  Generation result =
      generate(program, engine, ids, options, [&](int32_t id, std::string_view text) {
        if (firstTokenMs == 0)
          firstTokenMs = invocation.started.ms();
        if (json)
          return true;
        if (program.hasTokenizer())
          print(std::string(text));
        else if (id >= 0)
          print(std::to_string(id) + " ");
        return true;
      });

  const double decoded =
      static_cast<double>(result.ids.size()) - 1; // the first came with the prompt
  const double promptRate = static_cast<double>(ids.size()) / result.promptMs * 1000;
  const double decodeRate = decoded > 0 ? decoded / result.decodeMs * 1000 : 0;
  if (json) {
    printJson({{"prompt_ids", ids},
               {"ids", result.ids},
               {"text", program.hasTokenizer() ? Json(result.text) : Json()},
               {"finish_reason", result.finishReason},
               {"logprobs", result.logprobs},
               {"timings",
                {{"load_ms", rounded(loadMs)},
                 {"first_token_ms", rounded(firstTokenMs)},
                 {"prompt_ms", rounded(result.promptMs)},
                 {"prompt_tok_s", rounded(promptRate)},
                 {"decode_ms", rounded(result.decodeMs)},
                 {"decode_tok_s", rounded(decodeRate)}}}});
    return;
  }
  print("\n");
  std::fprintf(stderr, "prompt %zu tokens, %.1f tok/s; generated %zu tokens, %.1f tok/s; %s\n",
               ids.size(), promptRate, result.ids.size(), decodeRate, result.finishReason);
}

} // namespace tenon::rt
