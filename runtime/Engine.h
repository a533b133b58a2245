// Runs the compiled program: turns sequences with new tokens into ragged batches, and steps.
//
//   Work{A, 3 tokens}  ┐              ┌─ every work brings 1 token to score:   decode
//   Work{B, 1 token}   ┼─ step(works) ┤
//   Work{C, 900 tokens}┘              └─ otherwise: prefill, in waves of at most so many tokens
//                                        as the machine wants (and 64 scored rows, which
//                                        bounds the logits)
//        wave 1:  A A A B C C C …        wave 2:  C C C …
//
// An encoder sees sequences whole: encode(works) runs as many in a wave as it would take tokens,
// and at least one. What the encoder of an encoder-decoder makes of a text goes to a pool of its
// own, the memory's, from which each step over the sequence that belongs to it reads.
//
// Rows are answered through a sink while their wave's results lie in the arena.
#ifndef TENON_RUNTIME_ENGINE_H
#define TENON_RUNTIME_ENGINE_H

#include "runtime/Executor.h"

#include <functional>
#include <vector>

namespace tenon::rt {

enum class Score { None, Last, All };

// One sequence's share of a step.
struct Work {
  KvSequence *sequence;
  const int32_t *ids;
  int count;
  Score score;
  int unscored = 0;               // with Score::All: the first tokens, whose rows are not wanted
  const int32_t *types = nullptr; // of the ids, where the model has token types; null: all 0
  const KvSequence *memory = nullptr; // encoder-decoders: what encode() has made of its source
  const tenon_draw *draw = nullptr;   // how its next token may be drawn, see Engine::drawsTokens
};

// A scored row; valid during the sink's call only.
struct Row {
  int work;                           // index into the step's works
  int token;                          // index into the work's ids
  const float *logits;                // [vocab]; null where a memory is made, or a token is drawn
  int32_t drawn;                      // the next token, or -1
  std::vector<const float *> hiddens; // a row of each tenon_hidden; empty unless compiled in
};
using RowSink = std::function<void(const Row &)>;

struct EngineOptions : ExecutorOptions {
  int64_t cacheBlocks = 0;  // 0: enough for one sequence of the model's context
  int64_t memoryBlocks = 0; // the same, of an encoder's
};

class Engine {
public:
  // `artefact` must live longer. Throws with ExitMachine when this machine cannot run it.
  Engine(const tenon_compiled &compiled, const Artefact &artefact, const EngineOptions &given);

  // Whether the model continues texts; one that only encodes answers whole ones.
  bool decodes() const { return hasDecoder(compiled); }
  // Whether it is an encoder-decoder, which reads another text first.
  bool hasMemory() const { return compiled.memory.layers > 0; }

  KvPool &pool() { return kvPool; }
  KvPool &memoryPool() { return memory; }
  int vocab() const { return compiled.vocab; }
  // Of what encode() takes.
  int encoderVocab() const { return hasMemory() ? compiled.encoder_vocab : compiled.vocab; }
  int context() const { return compiled.context; }
  const Executor &machine() const { return *executor; }
  // Whether it draws tokens where all works of a step say how.
  bool drawsTokens() const { return executor->drawsTokens(); }

  // A prompt may be cut at multiples of this: computed in two steps, the first maybe as part of
  // another prompt, it gives the bits that it gives in one. Blocks where rows don't depend on their
  // neighbours; whole waves where oneDNN multiplies, which chooses its order of sums by their
  // number (known once a prompt was long enough to ask for it). 0: the last step found oneDNN
  // missing on the way and is like no other.
  int prefixUnit() const;

  // Appends each work's tokens to its sequence and answers its scored rows, in order within a work.
  // Refuses ids outside the vocabulary and sequences longer than the context before anything runs.
  // A sequence that grows beyond what its cached keys are good for (longrope) is computed anew.
  void step(const std::vector<Work> &works, const RowSink &sink);
  // For encoders: the same for whole sequences. Those of an encoder-decoder lie in memoryPool(),
  // and their rows have hidden states only.
  void encode(const std::vector<Work> &works, const RowSink &sink);

  // Until it is null again, every step is recorded there.
  void traceInto(Trace *into) { trace = into; }
  double secondsToStreamWeights() { return executor->secondsToStreamWeights(); }

private:
  struct Piece { // a run of one work's tokens in the batch being built
    int work, first, count;
    bool scoresLast, scoresAll;
  };

  void check(const std::vector<Work> &works, bool encodes) const;
  bool outgrowsCache(const Work &work) const;
  void run(const std::vector<Work> &works, const RowSink &sink);
  void runAnew(const Work &work, const RowSink &sink);
  void runBatch(const std::vector<Work> &works, Phase phase, const RowSink &sink);

  const tenon_compiled &compiled;
  const EngineOptions options; // with the sizes of the pools
  std::unique_ptr<Executor> executor;
  KvPool kvPool, memory;
  Trace *trace = nullptr;

  // The batch being built; members so that decoding allocates nothing.
  std::vector<Piece> pieces;
  std::vector<int32_t> ids, positions, sequenceOf, starts, lengths, blockTable, scoredRows;
  std::vector<int32_t> types, memoryLengths, memoryTable;
  std::vector<tenon_draw> draws; // of scored rows
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_ENGINE_H
