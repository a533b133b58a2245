#include "runtime/GenerateBeams.h"

#include "runtime/Clock.h"
#include "runtime/StopStrings.h"
#include "runtime/tokenizer/TextStream.h"

#include <algorithm>

namespace tenon::rt {

namespace {
// What ends a text: an id of the model's own, or a string.
class Endings {
public:
  Endings(Program &program, const GenerateOptions &options)
      : tokenizer(program.hasTokenizer() ? &program.tokenizer() : nullptr), stops(options.stop) {
    if (!options.ignoreEos) {
      eos = program.meta().eos;
      stops.insert(stops.end(), program.meta().stop.begin(), program.meta().stop.end());
    }
    for (const std::string &stop : stops)
      longestStop = std::max(longestStop, stop.size());
  }

  int idCount() const { return static_cast<int>(eos.size()); }
  bool isEos(int32_t id) const { return std::find(eos.begin(), eos.end(), id) != eos.end(); }

  // Whether the last id ends the text.
  bool reached(const std::vector<int32_t> &ids) const {
    return isEos(ids.back()) || completesStop(ids);
  }

  // As `generate` answers: without EOS, cut at the stop string.
  Generation describe(const Beam &beam) const {
    Generation result;
    result.ids = beam.ids;
    result.logprobs = beam.logprobs;
    result.finishReason = reached(beam.ids) ? "stop" : "length";
    if (!tokenizer)
      return result;
    TextStream characters(*tokenizer);
    StopStrings stopStrings(stops);
    for (int32_t id : beam.ids)
      if (!isEos(id))
        result.text += stopStrings.push(characters.push(id));
    result.text += stopStrings.push(characters.finish()) + stopStrings.flush();
    return result;
  }

private:
  // A stop string that ends in the last token begins at most longestStop - 1 bytes before it.
  bool completesStop(const std::vector<int32_t> &ids) const {
    if (!tokenizer || longestStop == 0)
      return false;
    std::string tail(tokenizer->bytes(ids.back()));
    const size_t enough = tail.size() + longestStop - 1;
    for (size_t i = ids.size() - 1; i-- > 0 && tail.size() < enough;)
      tail.insert(0, tokenizer->bytes(ids[i]));
    return std::any_of(stops.begin(), stops.end(), [&](const std::string &stop) {
      return !stop.empty() && tail.find(stop) != std::string::npos;
    });
  }

  const Tokenizer *tokenizer;
  std::vector<int32_t> eos;
  std::vector<std::string> stops;
  size_t longestStop = 0;
};
} // namespace

int64_t beamBlocks(int64_t promptTokens, int64_t maxTokens, int beams) {
  // Each beam's own: the block that the prompt left half full, and what it generates.
  return KvPool::blocksFor(promptTokens) + beams * (KvPool::blocksFor(maxTokens) + 1);
}

BeamGeneration generateBeams(Program &program, Engine &engine, const std::vector<int32_t> &prompt,
                             const GenerateOptions &options, const BeamOptions &beamOptions) {
  checkPrompt(program, engine, prompt);
  const Endings endings(program, options);
  const int vocab = program.drawableIds();
  checkBeams(beamOptions, vocab, endings.idCount());
  // The last token is never fed, so one more than the context has room for.
  const int begun = engine.hasMemory() ? 1 : static_cast<int>(prompt.size());
  const int room = engine.context() - begun + 1;
  BeamSearch search(beamOptions, vocab, std::min(options.maxTokens.value_or(room), room),
                    endings.idCount(),
                    [&](const std::vector<int32_t> &ids) { return endings.reached(ids); });
  auto score = [&](const Row &row) { search.score(row.work, row.logits); };

  BeamGeneration generation;
  Clock clock;
  KvSequence memory(engine.memoryPool()); // all beams read the same
  std::vector<KvSequence> sequences;      // of the running beams
  sequences.emplace_back(engine.pool());
  auto work = [&](KvSequence &sequence, const int32_t *ids, size_t count) {
    return Work{&sequence, ids, static_cast<int>(count), Score::Last, 0, nullptr, &memory};
  };
  if (!search.running().empty()) {
    const std::vector<int32_t> begin = beginAnswer(program, engine, prompt, memory);
    engine.step({work(sequences[0], begin.data(), begin.size())}, score);
    search.advance();
  }
  generation.promptMs = clock.lapMs();
  while (!search.running().empty()) {
    std::vector<KvSequence> next;
    std::vector<Work> works;
    next.reserve(search.running().size());
    for (const Beam &beam : search.running()) {
      next.push_back(sequences[beam.parent].fork());
      works.push_back(work(next.back(), &beam.ids.back(), 1));
    }
    sequences = std::move(next); // blocks that no beam continues go back to the pool
    engine.step(works, score);
    search.advance();
  }
  generation.decodeMs = clock.lapMs();
  for (const Beam &beam : search.finished())
    generation.beams.push_back({endings.describe(beam), beam.score});
  return generation;
}

} // namespace tenon::rt
