// OUT "prompt", OUT generate "prompt"
#include "runtime/Generate.h"

#include "runtime/Error.h"
#include "runtime/GenerateBeams.h"
#include "runtime/cli/Cli.h"
#include "runtime/cli/Json.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <map>

namespace tenon::rt {

static constexpr int defaultTokens = 512;

namespace {
struct Request {
  std::vector<int32_t> prompt;
  GenerateOptions options;
  BeamOptions beams;
  bool json = false;
};

// What each way of answering measures.
struct Times {
  double loadMs = 0, firstTokenMs = 0, promptMs = 0, decodeMs = 0;
};
} // namespace

static void answer(const Program &program, const Request &request, const Generation &result,
                   const Times &times, const Json &beams = {}) {
  const double decoded =
      static_cast<double>(result.ids.size()) - 1; // the first came with the prompt
  const double promptRate = static_cast<double>(request.prompt.size()) / times.promptMs * 1000;
  const double decodeRate = decoded > 0 ? decoded / times.decodeMs * 1000 : 0;
  if (!request.json) {
    print("\n");
    std::fprintf(stderr, "prompt %zu tokens, %.1f tok/s; generated %zu tokens, %.1f tok/s; %s\n",
                 request.prompt.size(), promptRate, result.ids.size(), decodeRate,
                 result.finishReason);
    return;
  }
  Json json = {{"prompt_ids", request.prompt},
               {"ids", result.ids},
               {"text", program.hasTokenizer() ? Json(result.text) : Json()},
               {"finish_reason", result.finishReason},
               {"logprobs", result.logprobs}};
  if (!beams.is_null())
    json["beams"] = beams;
  json["timings"] = {
      {"load_ms", rounded(times.loadMs)},     {"first_token_ms", rounded(times.firstTokenMs)},
      {"prompt_ms", rounded(times.promptMs)}, {"prompt_tok_s", rounded(promptRate)},
      {"decode_ms", rounded(times.decodeMs)}, {"decode_tok_s", rounded(decodeRate)}};
  printJson(json);
}

static void printIds(const std::vector<int32_t> &ids) {
  for (int32_t id : ids)
    print(std::to_string(id) + " ");
}

// Token by token, as they come.
static void generateOne(const Invocation &invocation, Program &program, Engine &engine,
                        const Request &request, Times times) {
  Generation result = generate(program, engine, request.prompt, request.options,
                               [&](int32_t id, std::string_view text) {
                                 if (times.firstTokenMs == 0)
                                   times.firstTokenMs = invocation.started.ms();
                                 if (request.json)
                                   return true;
                                 if (program.hasTokenizer())
                                   print(std::string(text));
                                 else if (id >= 0)
                                   printIds({id});
                                 return true;
                               });
  times.promptMs = result.promptMs;
  times.decodeMs = result.decodeMs;
  answer(program, request, result, times);
}

// Which text is the best is known at the end.
static void generateSeveral(const Invocation &invocation, Program &program, Engine &engine,
                            const Request &request, Times times) {
  const BeamGeneration generation =
      generateBeams(program, engine, request.prompt, request.options, request.beams);
  times.firstTokenMs = invocation.started.ms();
  times.promptMs = generation.promptMs;
  times.decodeMs = generation.decodeMs;
  Generation best;
  if (!generation.beams.empty())
    best = generation.beams.front().result;
  Json beams = Json::array();
  for (const auto &[result, score] : generation.beams)
    beams.push_back({{"ids", result.ids},
                     {"text", program.hasTokenizer() ? Json(result.text) : Json()},
                     {"score", score}});
  if (!request.json && program.hasTokenizer())
    print(best.text);
  else if (!request.json)
    printIds(best.ids);
  answer(program, request, best, times, beams);
}

void runGenerate(const Invocation &invocation, const Arguments &arguments) {
  Request request;
  GenerateOptions &options = request.options;
  EngineOptions engineOptions;
  SamplingOptions &sampling = options.sampling;
  std::string prompt, idList;
  int count = defaultTokens;
  uint64_t seed = 0;

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
  auto *beams = app.add_option("--beams", request.beams.beams,
                               "Search for the likeliest text with B beams, drawing nothing (1)")
                    ->check(CLI::Range(1, maxBeams))
                    ->option_text("B");
  app.add_option("--length-penalty", request.beams.lengthPenalty,
                 "A beam's score is its log-probability / length^X; above 0 favours long texts (1)")
      ->needs(beams)
      ->option_text("X");
  app.add_option("--early-stopping", request.beams.earlyStopping,
                 "Once B beams are finished: true ends, false ends when none that runs is better "
                 "now, never when none can become better (false)")
      ->needs(beams)
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, EarlyStopping>{{"true", EarlyStopping::Yes},
                                               {"false", EarlyStopping::No},
                                               {"never", EarlyStopping::Never}}))
      ->option_text("true|false|never");
  app.add_flag("--ignore-eos", options.ignoreEos, "Go on after the model's own end");
  addMachineOptions(app, invocation, engineOptions);
  app.add_flag("--json", request.json, "Print one JSON object");
  parse(app, arguments);

  if (seedOption->count())
    sampling.seed = seed;
  if (!temperature->count() && (topK->count() || topP->count() || minP->count()))
    sampling.temperature = 1;
  checkSampling(sampling);
  const int beamCount = request.beams.beams;
  if (beamCount != 1)
    for (const char *option :
         {"--temperature", "--top-k", "--top-p", "--min-p", "--seed", "--repetition-penalty",
          "--frequency-penalty", "--presence-penalty", "--no-repeat-ngram"})
      if (app.count(option))
        refuse("{} and --beams {}: beams are searched, not drawn; give one of the two", option,
               beamCount);
  options.maxTokens = count;
  options.logprobs = request.json;

  if (!idList.empty() && !prompt.empty())
    refuse("give a prompt or --ids, not both");
  Program program(invocation.compiled, invocation.path, invocation.name);
  request.prompt =
      idList.empty() ? program.tokenizer().encodeIds(readText(prompt)) : parseIds(idList, "--ids");
  if (!options.stop.empty() && !program.hasTokenizer())
    refuse("--stop needs a tokenizer and {} was compiled without one", program.meta().model);
  // A cache for what may come, not for the whole context: it starts faster and stays smaller.
  const int64_t context = invocation.compiled.context;
  const int64_t tokens = static_cast<int64_t>(request.prompt.size());
  engineOptions.cacheBlocks =
      beamCount > 1
          ? beamBlocks(std::min(context, tokens), std::min<int64_t>(context, count), beamCount)
          : KvPool::blocksFor(std::min<int64_t>(context, tokens + count));
  Engine engine(invocation.compiled, program.artefact(), engineOptions);
  Times times;
  times.loadMs = invocation.started.ms();
  (beamCount > 1 ? generateSeveral : generateOne)(invocation, program, engine, request, times);
}

} // namespace tenon::rt
