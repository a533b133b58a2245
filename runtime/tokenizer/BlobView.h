// A tokenizer blob whose every offset and id has been checked: what is reached through a BlobView
// is in bounds.
#ifndef TENON_RUNTIME_TOKENIZER_BLOBVIEW_H
#define TENON_RUNTIME_TOKENIZER_BLOBVIEW_H

#include "runtime/tokenizer/Blob.h"

namespace tenon::rt {

template <typename T> struct Table {
  const T *data = nullptr;
  size_t size = 0;
  const T *begin() const { return data; }
  const T *end() const { return data + size; }
  const T &operator[](size_t i) const { return data[i]; }
};

class BlobView {
public:
  BlobView(const void *data, size_t bytes); // throws TokenizerError

  uint32_t vocabSize() const { return tokenFlags.size; }
  std::string_view token(uint32_t id) const {
    return strings.substr(tokenOffsets[id], tokenOffsets[id + 1] - tokenOffsets[id]);
  }
  std::string_view text(const blob::Step &step) const {
    return strings.substr(step.text.offset, step.text.bytes);
  }

  /// The id of the vocabulary token with these bytes, or kEmpty. Added tokens are not found here.
  uint32_t findToken(std::string_view bytes) const;

  /// The merge of two neighbours, or null.
  const blob::MergeSlot *findMerge(uint32_t left, uint32_t right) const {
    if (!mergeHash.size)
      return nullptr;
    size_t slot = blob::firstSlot(blob::hashPair(left, right), mergeHash.size);
    while (mergeHash[slot].left != blob::kEmpty) {
      if (mergeHash[slot].left == left && mergeHash[slot].right == right)
        return &mergeHash[slot];
      if (++slot == mergeHash.size)
        slot = 0;
    }
    return nullptr;
  }

  const blob::Header *header = nullptr;
  std::string_view strings;
  Table<uint32_t> tokenOffsets;
  Table<uint8_t> tokenFlags;
  Table<blob::TokenSlot> tokenHash;
  Table<blob::MergeSlot> mergeHash;
  Table<blob::AddedToken> added;
  Table<blob::TrieNode> rawTrie, normalTrie;
  Table<blob::Step> normalise, split;
  Table<blob::TemplateItem> single, pair;

private:
  void checkHeader(const void *data, size_t bytes);
  void checkTokens() const;
  void checkHashes() const;
  void checkTrie(const Table<blob::TrieNode> &trie) const;
  void checkSteps(const Table<blob::Step> &steps) const;
  void checkTemplate(const Table<blob::TemplateItem> &items) const;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_TOKENIZER_BLOBVIEW_H
