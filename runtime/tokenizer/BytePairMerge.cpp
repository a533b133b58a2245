#include "runtime/tokenizer/BytePairMerge.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace tenon::rt {

using blob::kEmpty;
using blob::MergeSlot;

/// Beyond this many symbols a heap beats scanning.
constexpr size_t kShort = 48;

/// For each symbol the rank of the pair it begins (kEmpty: cannot merge); the lowest is found by
/// scanning.
static size_t mergeShort(const BlobView &view, WordToken *symbols, size_t count) {
  uint32_t rank[kShort];
  uint32_t merged[kShort];
  auto look = [&](size_t i) {
    const MergeSlot *merge =
        i + 1 < count ? view.findMerge(symbols[i].id, symbols[i + 1].id) : nullptr;
    rank[i] = merge ? merge->rank : kEmpty;
    merged[i] = merge ? merge->merged : 0;
  };
  for (size_t i = 0; i < count; ++i)
    look(i);
  for (;;) {
    size_t best = std::min_element(rank, rank + count) - rank;
    if (rank[best] == kEmpty)
      return count;
    symbols[best].id = merged[best];
    symbols[best].end = symbols[best + 1].end;
    std::copy(symbols + best + 2, symbols + count, symbols + best + 1);
    std::copy(rank + best + 2, rank + count, rank + best + 1);
    std::copy(merged + best + 2, merged + count, merged + best + 1);
    --count;
    look(best);
    if (best)
      look(best - 1);
  }
}

/// The same with a linked list of symbols and a heap of (rank, position). An entry of the heap
/// counts only while its rank is still that of the pair at its position.
static size_t mergeLong(const BlobView &view, WordToken *symbols, size_t count) {
  constexpr uint32_t kEnd = UINT32_MAX;
  struct Node {
    uint32_t previous, next;
    uint32_t rank, merged;
  };
  std::vector<Node> nodes(count);
  auto look = [&](size_t i) {
    uint32_t next = nodes[i].next;
    const MergeSlot *merge =
        next != kEnd ? view.findMerge(symbols[i].id, symbols[next].id) : nullptr;
    nodes[i].rank = merge ? merge->rank : kEmpty;
    nodes[i].merged = merge ? merge->merged : 0;
    return merge != nullptr;
  };
  auto entry = [&](size_t i) { return (uint64_t(nodes[i].rank) << 32) | i; };

  std::vector<uint64_t> entries;
  entries.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    nodes[i].previous = i ? uint32_t(i - 1) : kEnd;
    nodes[i].next = i + 1 < count ? uint32_t(i + 1) : kEnd;
    if (look(i))
      entries.push_back(entry(i));
  }
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> queue(std::greater<>(),
                                                                             std::move(entries));
  while (!queue.empty()) {
    uint32_t rank = uint32_t(queue.top() >> 32);
    uint32_t i = uint32_t(queue.top());
    queue.pop();
    Node &node = nodes[i];
    if (node.rank != rank)
      continue;
    uint32_t gone = node.next;
    symbols[i].id = node.merged;
    symbols[i].end = symbols[gone].end;
    nodes[gone].rank = kEmpty; // its entries no longer count
    node.next = nodes[gone].next;
    if (node.next != kEnd)
      nodes[node.next].previous = i;
    if (look(i))
      queue.push(entry(i));
    if (node.previous != kEnd && look(node.previous))
      queue.push(entry(node.previous));
  }

  size_t kept = 0;
  for (uint32_t i = 0; i != kEnd; i = nodes[i].next)
    symbols[kept++] = symbols[i];
  return kept;
}

size_t mergePairs(const BlobView &view, WordToken *symbols, size_t count) {
  if (count < 2)
    return count;
  return count <= kShort ? mergeShort(view, symbols, count) : mergeLong(view, symbols, count);
}

} // namespace tenon::rt
