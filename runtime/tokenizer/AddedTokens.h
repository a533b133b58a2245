// Finding added tokens ("<|im_end|>") in a text: the leftmost match, the longest among those that
// start there.
#ifndef TENON_RUNTIME_TOKENIZER_ADDEDTOKENS_H
#define TENON_RUNTIME_TOKENIZER_ADDEDTOKENS_H

#include "runtime/tokenizer/BlobView.h"

#include <array>

namespace tenon::rt {

class AddedTokens {
public:
  AddedTokens(const BlobView &view, Table<blob::TrieNode> trie);

  /// Walks over a text: stretches without added tokens, and added tokens.
  class Cursor {
  public:
    Cursor(const AddedTokens &tokens, std::string_view text) : tokens(tokens), text(text) {}

    struct Stretch {
      size_t begin, end;
      const blob::AddedToken *token; // null: ordinary text
    };
    bool next(Stretch &stretch);

  private:
    bool nextToken(Stretch &stretch);

    const AddedTokens &tokens;
    std::string_view text;
    size_t covered = 0; // stretches have been given out up to here
    size_t searchAt = 0;
    Stretch pending{0, 0, nullptr}; // found, to be given out after the text before it
    bool exhausted = false;
  };

private:
  /// The longest token that starts at `at`: its end and index, or false.
  bool longest(std::string_view text, size_t at, size_t &end, int32_t &added) const;

  const BlobView &view;
  Table<blob::TrieNode> trie;
  std::array<uint32_t, 256> first{}; // the root's child for a byte, or 0
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_TOKENIZER_ADDEDTOKENS_H
