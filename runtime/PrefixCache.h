// Keeps the cached positions of prompts, so that a prompt which begins as an earlier one did is not
// computed from its start again:
//
//   kept      The | cat | sat | on | the |        blocks [ 4 | 0 ]
//   prompt    The | cat | sat | down             begins with block 4, computes from its end on
//
// Tokens are compared, and a hit changes no bit of the answer: only what a prefill computed is
// kept (decode adds up in another order), and only cut where the engine says that a prompt in two
// parts is the same as in one.
#ifndef TENON_RUNTIME_PREFIXCACHE_H
#define TENON_RUNTIME_PREFIXCACHE_H

#include "runtime/Engine.h"

#include <vector>

namespace tenon::rt {

class PrefixCache {
public:
  // The engine must live longer. Keeps the prompts that were used last.
  explicit PrefixCache(Engine &engine, size_t prompts = 8) : engine(engine), most(prompts) {}

  // A sequence with the longest beginning of the prompt that is known, maybe of no tokens.
  KvSequence begin(const std::vector<int32_t> &prompt);
  // `sequence` holds the whole prompt and nothing else.
  void keep(const std::vector<int32_t> &prompt, const KvSequence &sequence);
  // Forgets prompts, the longest unused first, until so many blocks are free.
  void makeRoom(int64_t blocks);

private:
  struct Entry {
    std::vector<int32_t> ids;
    KvSequence sequence; // of ids
  };

  Engine &engine;
  size_t most;
  std::vector<Entry> entries; // the last used at the end
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_PREFIXCACHE_H
