#include "runtime/Generate.h"

#include "runtime/Clock.h"
#include "runtime/Error.h"
#include "runtime/RowMath.h"
#include "runtime/StopStrings.h"
#include "runtime/tokenizer/TextStream.h"

#include <algorithm>

namespace tenon::rt {

void checkPrompt(const Program &program, const Engine &engine, const std::vector<int32_t> &prompt) {
  if (prompt.empty())
    refuse("the prompt is empty: at least one token is needed");
  if (static_cast<int64_t>(prompt.size()) > engine.context())
    refuse("the prompt has {} tokens, the context holds {}", prompt.size(), engine.context());
  program.checkIds(prompt);
}

Generation generate(Program &program, Engine &engine, const std::vector<int32_t> &prompt,
                    const GenerateOptions &options, const TokenSink &onToken,
                    PrefixCache *prefixes) {
  checkSampling(options.sampling);
  checkPrompt(program, engine, prompt);

  const std::vector<int32_t> &eos = program.meta().eos;
  std::optional<TextStream> characters;
  if (program.hasTokenizer())
    characters.emplace(program.tokenizer());
  std::vector<std::string> stops = options.stop;
  if (!options.ignoreEos)
    stops.insert(stops.end(), program.meta().stop.begin(), program.meta().stop.end());
  StopStrings stopStrings(std::move(stops));
  Sampler sampler(options.sampling, engine.vocab());

  Generation result;
  result.finishReason = "length";
  const int limit = options.maxTokens.value_or(engine.context());
  KvSequence sequence = prefixes ? prefixes->begin(prompt) : KvSequence(engine.pool());
  int32_t id = -1;
  auto draw = [&](const Row &row) {
    id = sampler.sample(row.logits, prompt, result.ids);
    if (options.logprobs)
      result.logprobs.push_back(logProbability(row.logits, engine.vocab(), id));
  };

  Clock clock;
  const int promptTokens = static_cast<int>(prompt.size());
  if (prefixes)
    prefixes->makeRoom(
        KvPool::blocksFor(std::min<int64_t>(int64_t(promptTokens) + limit, engine.context())) -
        static_cast<int64_t>(sequence.blocks().size()));
  if (limit > 0) {
    const int known = sequence.length();
    engine.step({{&sequence, prompt.data() + known, promptTokens - known, Score::Last}}, draw);
    if (prefixes)
      prefixes->keep(prompt, sequence);
  }
  result.promptMs = clock.lapMs();

  while (static_cast<int>(result.ids.size()) < limit) {
    result.ids.push_back(id);
    if (!options.ignoreEos && std::find(eos.begin(), eos.end(), id) != eos.end()) {
      result.finishReason = "stop";
      break;
    }
    std::string text;
    if (characters)
      text = stopStrings.push(characters->push(id));
    result.text += text;
    if (!onToken(id, text) || stopStrings.stopped()) {
      result.finishReason = "stop";
      break;
    }
    if (static_cast<int>(result.ids.size()) == limit || sequence.length() == engine.context())
      break;
    engine.step({{&sequence, &id, 1, Score::Last}}, draw);
  }
  std::string rest = characters ? stopStrings.push(characters->finish()) : "";
  rest += stopStrings.flush();
  if (!rest.empty()) {
    result.text += rest;
    onToken(-1, rest);
  }
  result.decodeMs = clock.lapMs();
  return result;
}

} // namespace tenon::rt
