// The stages of a tokenizer, made ready from its blob, and the way of a text through them.
#ifndef TENON_RUNTIME_TOKENIZER_STAGES_H
#define TENON_RUNTIME_TOKENIZER_STAGES_H

#include "runtime/tokenizer/AddedTokens.h"
#include "runtime/tokenizer/Model.h"
#include "runtime/tokenizer/Piece.h"
#include "runtime/tokenizer/Split.h"

namespace tenon::rt {

/// A token and the bytes of the text that it came from.
struct TextToken {
  int32_t id;
  Span from;
};

struct Stages {
  Stages(const void *blob, size_t bytes); // throws TokenizerError
  Stages(const Stages &) = delete;

  /// The tokens of a text, which must be valid UTF-8.
  std::vector<TextToken> run(std::string_view text) const;

  BlobView view;
  std::unique_ptr<Model> model;
  AddedTokens rawAdded, normalAdded;
  std::vector<std::unique_ptr<SplitPattern>>
      patterns; // one for each step of view.split; null: no pattern
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_TOKENIZER_STAGES_H
