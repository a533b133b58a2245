#include "runtime/tokenizer/BlobView.h"

#include "runtime/tokenizer/Tokenizer.h"

#include <string>

namespace tenon::rt {

using namespace blob;

[[noreturn]] static void corrupt(const std::string &what) {
  throw TokenizerError("the tokenizer data is corrupt: " + what);
}

static void require(bool condition, const char *what) {
  if (!condition)
    corrupt(what);
}

template <typename T>
static Table<T> section(const Header &header, Section index, const char *name) {
  const Range &range = header.sections[index];
  if (range.offset % 8 || range.offset > header.bytes ||
      range.bytes > header.bytes - range.offset || range.bytes % sizeof(T))
    corrupt(std::string("section '") + name + "' does not fit");
  const char *base = reinterpret_cast<const char *>(&header);
  return {reinterpret_cast<const T *>(base + range.offset), size_t(range.bytes / sizeof(T))};
}

BlobView::BlobView(const void *data, size_t bytes) {
  checkHeader(data, bytes);
  Table<char> pool = section<char>(*header, Strings, "strings");
  strings = {pool.data, pool.size};
  tokenOffsets = section<uint32_t>(*header, TokenOffsets, "token_offsets");
  tokenFlags = section<uint8_t>(*header, TokenFlags, "token_flags");
  tokenHash = section<TokenSlot>(*header, TokenHash, "token_hash");
  mergeHash = section<MergeSlot>(*header, MergeHash, "merge_hash");
  added = section<AddedToken>(*header, AddedTokens, "added");
  rawTrie = section<TrieNode>(*header, RawTrie, "raw_trie");
  normalTrie = section<TrieNode>(*header, NormalTrie, "normal_trie");
  normalise = section<Step>(*header, Normalise, "normalise");
  split = section<Step>(*header, Split, "split");
  single = section<TemplateItem>(*header, Single, "single");
  pair = section<TemplateItem>(*header, Pair, "pair");

  checkTokens();
  checkHashes();
  checkTrie(rawTrie);
  checkTrie(normalTrie);
  checkSteps(normalise);
  checkSteps(split);
  checkTemplate(single);
  checkTemplate(pair);
}

void BlobView::checkHeader(const void *data, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(data) % 8)
    throw TokenizerError("the tokenizer data is not aligned to 8 bytes");
  require(bytes >= sizeof(Header), "it is shorter than its header");
  header = static_cast<const Header *>(data);
  require(!std::memcmp(header->magic, kMagic, sizeof(kMagic)), "it does not start with TENONTOK");
  if (header->version != kVersion)
    throw TokenizerError("the tokenizer data has format version " +
                         std::to_string(header->version) + "; this runtime reads version " +
                         std::to_string(kVersion));
  if (header->bytes != bytes)
    corrupt("its header says " + std::to_string(header->bytes) + " bytes, there are " +
            std::to_string(bytes));
}

void BlobView::checkTokens() const {
  size_t n = tokenFlags.size;
  require(n > 0 && n <= kMaxTokens && tokenOffsets.size == n + 1,
          "the token tables differ in length");
  uint32_t unordered = 0;
  for (size_t i = 0; i < n; ++i)
    unordered |= tokenOffsets[i] > tokenOffsets[i + 1];
  require(!unordered && tokenOffsets[n] <= strings.size(), "a token lies outside the strings");
  for (int32_t id : {header->bos, header->eos, header->unknown})
    require(id >= -1 && id < int64_t(n), "a special token's id is out of range");
  for (const AddedToken &token : added)
    require(token.id < n, "an added token's id is out of range");
}

void BlobView::checkHashes() const {
  // Megabytes, at each start: without branches. An unused slot is what ends a search; its other
  // fields are 0.
  uint32_t n = vocabSize();
  uint32_t bad = 0, unused = 0;
  for (const TokenSlot &slot : tokenHash) {
    bad |= slot.id + 1 > n; // kEmpty + 1 is 0
    unused |= slot.id == kEmpty;
  }
  require(!bad && (unused || !tokenHash.size), "token_hash is broken");
  bad = unused = 0;
  for (const MergeSlot &slot : mergeHash) {
    bad |= uint32_t(slot.merged >= n) | uint32_t(slot.rank == kEmpty);
    unused |= slot.left == kEmpty;
  }
  require(!bad && (unused || !mergeHash.size), "merge_hash is broken");
}

void BlobView::checkTrie(const Table<TrieNode> &trie) const {
  for (size_t i = 0; i < trie.size; ++i) {
    const TrieNode &node = trie[i];
    // Children after their parent: no walk can circle.
    require(!node.children || (node.firstChild > i && node.firstChild < trie.size &&
                               node.children <= trie.size - node.firstChild),
            "a trie node's children are out of range");
    require(node.added >= -1 && node.added < int64_t(added.size), "a trie's token is out of range");
  }
}

void BlobView::checkSteps(const Table<Step> &steps) const {
  for (const Step &step : steps)
    require(step.text.offset <= strings.size() &&
                step.text.bytes <= strings.size() - step.text.offset,
            "a step's text lies outside the strings");
}

void BlobView::checkTemplate(const Table<TemplateItem> &items) const {
  for (const TemplateItem &item : items)
    require(item.what >= kSecondText && item.what < int64_t(vocabSize()),
            "a template's token is out of range");
}

uint32_t BlobView::findToken(std::string_view bytes) const {
  if (!tokenHash.size)
    return kEmpty;
  uint64_t hash = hashBytes(bytes);
  size_t slot = firstSlot(hash, tokenHash.size);
  while (tokenHash[slot].id != kEmpty) {
    if (tokenHash[slot].tag == uint32_t(hash) && token(tokenHash[slot].id) == bytes)
      return tokenHash[slot].id;
    if (++slot == tokenHash.size)
      slot = 0;
  }
  return kEmpty;
}

} // namespace tenon::rt
