// The stage that turns a word into tokens. One file for each kind of vocabulary.
#ifndef TENON_RUNTIME_TOKENIZER_MODEL_H
#define TENON_RUNTIME_TOKENIZER_MODEL_H

#include "runtime/tokenizer/BlobView.h"

#include <memory>
#include <vector>

namespace tenon::rt {

/// A token of a word: bytes [begin, end) of it.
struct WordToken {
  int32_t id;
  uint32_t begin, end;
};

class Model {
public:
  virtual ~Model() = default;
  /// Appends the tokens of a word, which is not empty.
  virtual void encode(std::string_view word, std::vector<WordToken> &out) const = 0;
};

/// Byte pair encoding over bytes. The view must outlive the model.
std::unique_ptr<Model> makeByteLevelBpe(const BlobView &view);

/// The model that the blob's header asks for. Throws TokenizerError.
std::unique_ptr<Model> makeModel(const BlobView &view);

} // namespace tenon::rt

#endif // TENON_RUNTIME_TOKENIZER_MODEL_H
