#include "runtime/tokenizer/AddedTokens.h"

#include "runtime/tokenizer/Unicode.h"
#include "runtime/tokenizer/Utf8.h"

#include <algorithm>

namespace tenon::rt {

using blob::TrieNode;

AddedTokens::AddedTokens(const BlobView &view, Table<TrieNode> trie) : view(view), trie(trie) {
  if (trie.size)
    for (uint32_t i = 0; i < trie[0].children; ++i)
      first[trie[trie[0].firstChild + i].byte] = trie[0].firstChild + i;
}

bool AddedTokens::longest(std::string_view text, size_t at, size_t &end, int32_t &added) const {
  bool found = false;
  uint32_t node = first[uint8_t(text[at])];
  while (node) {
    ++at;
    if (trie[node].added >= 0) {
      found = true;
      end = at;
      added = trie[node].added;
    }
    if (at == text.size())
      break;
    const TrieNode *begin = trie.data + trie[node].firstChild;
    const TrieNode *stop = begin + trie[node].children;
    const TrieNode *child =
        std::lower_bound(begin, stop, uint8_t(text[at]),
                         [](const TrieNode &n, uint8_t byte) { return n.byte < byte; });
    node = child != stop && child->byte == uint8_t(text[at]) ? uint32_t(child - trie.data) : 0;
  }
  return found;
}

static bool wordBefore(std::string_view text, size_t at) {
  if (!at)
    return false;
  do
    --at;
  while (at && isContinuation(text[at]));
  return isWord(nextChar(text, at));
}

static bool wordAfter(std::string_view text, size_t at) {
  return at < text.size() && isWord(nextChar(text, at));
}

/// Where the white space that ends at `at` begins, but not before `limit`.
static size_t spaceBefore(std::string_view text, size_t at, size_t limit) {
  while (at > limit) {
    size_t begin = at;
    do
      --begin;
    while (begin > limit && isContinuation(text[begin]));
    size_t end = begin;
    if (!isWhiteSpace(nextChar(text, end)))
      break;
    at = begin;
  }
  return at;
}

static size_t spaceAfter(std::string_view text, size_t at) {
  while (at < text.size()) {
    size_t end = at;
    if (!isWhiteSpace(nextChar(text, end)))
      break;
    at = end;
  }
  return at;
}

bool AddedTokens::Cursor::nextToken(Stretch &stretch) {
  if (!tokens.trie.size)
    return false;
  while (searchAt < text.size()) {
    size_t begin = searchAt, end;
    int32_t index;
    if (!tokens.first[uint8_t(text[begin])] || !tokens.longest(text, begin, end, index)) {
      ++searchAt;
      continue;
    }
    searchAt = end;
    const blob::AddedToken &token = tokens.view.added[index];
    if ((token.flags & blob::SingleWord) && (wordBefore(text, begin) || wordAfter(text, end)))
      continue;
    if (token.flags & blob::StripLeft)
      begin = spaceBefore(text, begin, covered);
    if (token.flags & blob::StripRight)
      searchAt = end = spaceAfter(text, end);
    stretch = {begin, end, &token};
    return true;
  }
  return false;
}

bool AddedTokens::Cursor::next(Stretch &stretch) {
  if (!pending.token && !exhausted)
    exhausted = !nextToken(pending);
  size_t plainEnd = pending.token ? pending.begin : text.size();
  if (covered < plainEnd) {
    stretch = {covered, plainEnd, nullptr};
    covered = plainEnd;
    return true;
  }
  if (!pending.token)
    return false;
  stretch = pending;
  covered = pending.end;
  pending.token = nullptr;
  return true;
}

} // namespace tenon::rt
