// What a tokenizer is, whatever file it came from: the readers fill one in, writeBlob() makes it
// what the runtime maps. The field names and flags are those of runtime/tokenizer/Blob.h, which
// explains them.
#ifndef TENON_FRONTEND_TOKENIZER_TOKENIZERSPEC_H
#define TENON_FRONTEND_TOKENIZER_TOKENIZERSPEC_H

#include "runtime/tokenizer/Blob.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon {

struct TokenizerSpec {
  struct Token {
    std::string bytes;
    uint8_t flags = rt::blob::Absent;
    bool fromText = false; // the model may produce it from these bytes
  };
  struct Merge {
    uint32_t left, right, merged;
  };
  struct Added {
    uint32_t id;
    uint32_t flags;   // AddedFlag
    bool normalised;  // looked for in the normalised text, not in the text as it is
    std::string text; // how it reads there
  };
  struct Step {
    rt::blob::StepKind kind;
    uint32_t option = 0;
    std::string text;
  };

  rt::blob::Model model = rt::blob::Model::ByteLevelBpe;
  uint32_t modelFlags = 0, postFlags = 0;
  std::optional<uint32_t> bos, eos, unknown;
  std::vector<Token> tokens; // by id
  std::vector<Merge> merges; // by rank
  std::vector<Added> added;
  std::vector<Step> normalise, split;
  std::vector<rt::blob::TemplateItem> single = {{rt::blob::kFirstText, 0}};
  std::vector<rt::blob::TemplateItem> pair = {{rt::blob::kFirstText, 0},
                                              {rt::blob::kSecondText, 1}};
};

/// The merges of byte pair encoding, which files give as pairs of written tokens.
class MergeResolver {
public:
  void addToken(llvm::StringRef written, uint32_t id) { ids.try_emplace(written, id); }
  llvm::Error addMerge(TokenizerSpec &spec, llvm::StringRef left, llvm::StringRef right) const;
  /// "Ġ t"
  llvm::Error addMerge(TokenizerSpec &spec, llvm::StringRef pair) const;

private:
  llvm::StringMap<uint32_t> ids;
};

/// Sets a token that is written in the byte alphabet; one that is not is kept as it is, and no text
/// leads to it.
void setByteLevelToken(TokenizerSpec &spec, uint32_t id, llvm::StringRef written);

/// Makes a token, new or of the vocabulary, one that is found in the text before the model sees it.
/// `searched` is how it reads where it is looked for.
void setAddedToken(TokenizerSpec &spec, uint32_t id, llvm::StringRef content, bool special,
                   uint32_t flags = 0, bool normalised = false, llvm::StringRef searched = {});

/// Checks that the patterns compile, and finds out which tokens their own bytes lead to.
llvm::Expected<std::vector<uint8_t>> writeBlob(const TokenizerSpec &spec);

} // namespace tenon

#endif // TENON_FRONTEND_TOKENIZER_TOKENIZERSPEC_H
