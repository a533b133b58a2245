#include "runtime/PrefixCache.h"

#include <algorithm>

namespace tenon::rt {

// Tokens that two texts begin with.
static size_t commonTokens(const std::vector<int32_t> &a, const std::vector<int32_t> &b) {
  const size_t length = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(length), b.begin()).first -
      a.begin());
}

static int roundDown(size_t tokens, int unit) {
  return unit == 0 ? 0 : static_cast<int>(tokens) / unit * unit;
}

KvSequence PrefixCache::begin(const std::vector<int32_t> &prompt) {
  auto best = entries.end();
  size_t known = 0;
  for (auto entry = entries.begin(); entry != entries.end(); ++entry)
    if (size_t common = commonTokens(entry->ids, prompt); common > known) {
      known = common;
      best = entry;
    }
  // A single token would be decoded, which adds up in another order.
  known = std::min(known, prompt.size() - std::min<size_t>(prompt.size(), 2));
  const int length = roundDown(known, engine.prefixUnit());
  if (length == 0)
    return KvSequence(engine.pool());
  std::rotate(best, best + 1, entries.end());
  KvSequence sequence = entries.back().sequence.fork();
  sequence.truncate(length);
  return sequence;
}

void PrefixCache::keep(const std::vector<int32_t> &prompt, const KvSequence &sequence) {
  const int length = roundDown(prompt.size(), engine.prefixUnit());
  if (length == 0)
    return;
  std::vector<int32_t> ids(prompt.begin(), prompt.begin() + length);
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    const size_t common = commonTokens(entry->ids, ids);
    if (common == ids.size()) { // known already
      std::rotate(entry, entry + 1, entries.end());
      return;
    }
    if (common == entry->ids.size()) { // a beginning of this one
      entries.erase(entry);
      break;
    }
  }
  KvSequence kept = sequence.fork();
  kept.truncate(length);
  entries.push_back({std::move(ids), std::move(kept)});
  if (entries.size() > most)
    entries.erase(entries.begin());
}

void PrefixCache::makeRoom(int64_t blocks) {
  while (!entries.empty() && engine.pool().freeBlocks() < blocks)
    entries.erase(entries.begin());
}

} // namespace tenon::rt
