#include "runtime/Generate.h"

#include "runtime/Clock.h"
#include "runtime/Error.h"
#include "runtime/RowMath.h"
#include "runtime/StopStrings.h"
#include "runtime/tokenizer/TextStream.h"

#include <algorithm>

namespace tenon::rt {

void checkPrompt(const Program &program, const Engine &engine, const std::vector<int32_t> &prompt) {
  if (!engine.decodes())
    refuse("{} is an encoder, which does not continue texts; `logits` answers",
           program.meta().model);
  if (prompt.empty())
    refuse("the prompt is empty: at least one token is needed");
  if (static_cast<int64_t>(prompt.size()) > engine.context())
    refuse("the prompt has {} tokens, the context holds {}", prompt.size(), engine.context());
  if (engine.hasMemory() && program.meta().decoderStart < 0)
    refuse("{} was compiled without the token that its answers begin with (generation: "
           "decoder_start)",
           program.meta().model);
  if (!engine.hasMemory()) // the encoder checks its own
    program.checkIds(prompt);
}

std::vector<int32_t> beginAnswer(const Program &program, Engine &engine,
                                 const std::vector<int32_t> &prompt, KvSequence &memory) {
  if (!engine.hasMemory())
    return prompt;
  engine.encode({{&memory, prompt.data(), static_cast<int>(prompt.size()), Score::None}},
                [](const Row &) {});
  return {program.meta().decoderStart};
}

Generation generate(Program &program, Engine &engine, const std::vector<int32_t> &prompt,
                    const GenerateOptions &options, const TokenSink &onToken,
                    PrefixCache *prefixes) {
  checkSampling(options.sampling);
  checkPrompt(program, engine, prompt);
  if (engine.hasMemory())
    prefixes = nullptr; // an answer depends on what was encoded, too

  const std::vector<int32_t> &eos = program.meta().eos;
  std::optional<TextStream> characters;
  if (program.hasTokenizer())
    characters.emplace(program.tokenizer());
  std::vector<std::string> stops = options.stop;
  if (!options.ignoreEos)
    stops.insert(stops.end(), program.meta().stop.begin(), program.meta().stop.end());
  StopStrings stopStrings(std::move(stops));
  Sampler sampler(options.sampling, program.drawableIds());

  Generation result;
  result.finishReason = "length";
  const int limit = options.maxTokens.value_or(engine.context());
  KvSequence sequence = prefixes ? prefixes->begin(prompt) : KvSequence(engine.pool());
  KvSequence memory(engine.memoryPool());
  std::vector<int32_t> begin;
  int32_t id = -1;
  auto draw = [&](const Row &row) {
    id = row.drawn >= 0 ? row.drawn : sampler.sample(row.logits, begin, result.ids);
    if (options.logprobs)
      result.logprobs.push_back(logProbability(row.logits, engine.vocab(), id));
  };

  auto step = [&](const int32_t *ids, size_t count) {
    std::optional<tenon_draw> next;
    if (engine.drawsTokens() && !options.logprobs)
      next = sampler.next();
    engine.step({{&sequence, ids, static_cast<int>(count), Score::Last, 0, nullptr, &memory,
                  next ? &*next : nullptr}},
                draw);
  };

  Clock clock;
  if (limit > 0) {
    begin = beginAnswer(program, engine, prompt, memory);
    if (prefixes)
      prefixes->makeRoom(
          KvPool::blocksFor(std::min<int64_t>(int64_t(begin.size()) + limit, engine.context())) -
          static_cast<int64_t>(sequence.blocks().size()));
    const int known = sequence.length();
    step(begin.data() + known, begin.size() - known);
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
    step(&id, 1);
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
