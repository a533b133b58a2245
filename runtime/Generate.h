// Prompt in, tokens out, one by one.
//
//   prompt ids ─ prefill ─▶ logits ─ sample ─▶ id ─ bytes ─▶ characters ─ stop strings ─▶ onToken
//                              ▲               │
//                              └──── decode ◀──┘      until EOS, a stop string, maxTokens or the
//                              context
//
// Of an encoder-decoder the prompt is what the encoder reads; the decoder begins with one token
// that the model's file names.
#ifndef TENON_RUNTIME_GENERATE_H
#define TENON_RUNTIME_GENERATE_H

#include "runtime/Engine.h"
#include "runtime/PrefixCache.h"
#include "runtime/Program.h"
#include "runtime/Sampler.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::rt {

struct GenerateOptions {
  SamplingOptions sampling;
  std::optional<int> maxTokens;  // none: as many as the context holds
  std::vector<std::string> stop; // beside the model's own
  bool ignoreEos = false;        // the model's own stop strings too
  bool logprobs = false;
};

struct Generation {
  std::vector<int32_t> ids; // all that were drawn, an EOS too
  std::string text;         // without EOS and without the stop string; empty without tokenizer
  const char *finishReason = "length"; // or "stop"
  std::vector<double> logprobs;        // of `ids` under the unchanged logits; when asked for
  double promptMs = 0, decodeMs = 0;
};

// Receives each token with the text that became certain with it, which may be empty; text that is
// left at the end comes with the id -1. Returning false ends the generation.
using TokenSink = std::function<bool(int32_t id, std::string_view text)>;

// Refuses an empty prompt, one that the context does not hold, and ids that are no tokens.
void checkPrompt(const Program &program, const Engine &engine, const std::vector<int32_t> &prompt);

// What the model's own sequence begins with: the prompt, or, when it has gone through an encoder
// into `memory`, the token with which answers begin.
std::vector<int32_t> beginAnswer(const Program &program, Engine &engine,
                                 const std::vector<int32_t> &prompt, KvSequence &memory);

// With `prefixes`, what they know of the prompt is not computed again.
Generation generate(Program &program, Engine &engine, const std::vector<int32_t> &prompt,
                    const GenerateOptions &options, const TokenSink &onToken,
                    PrefixCache *prefixes = nullptr);

} // namespace tenon::rt

#endif // TENON_RUNTIME_GENERATE_H
