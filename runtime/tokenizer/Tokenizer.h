// Text to token ids and back, in every executable.
//
//   text ─ added tokens ─▶ pieces ─ normalise ─▶ pieces ─ split ─▶ words ─ model ─▶ ids
//         ("<|im_end|>")           (NFC …)               (regex)          (BPE …)
//   ids ─ template ─▶ ids
//         (BOS, EOS)
//
// Everything a tokenizer knows lies in one blob (Blob.h) that the compiler wrote: tables are used
// in place, so that opening one costs a validation pass and nothing is parsed, hashed or copied. A
// Tokenizer is immutable after open() and may be used by several threads at once.
//
// Text is UTF-8. Bytes that are not are replaced by U+FFFD, one for each maximal ill-formed
// subsequence, before anything else sees the text; offsets then count the characters of the
// replaced text.
#ifndef TENON_RUNTIME_TOKENIZER_TOKENIZER_H
#define TENON_RUNTIME_TOKENIZER_TOKENIZER_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::rt {

/// A blob that cannot be used, or text that a tokenizer's own regular expression gives up on: one
/// line.
struct TokenizerError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Parallel arrays, one entry for each token.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<std::string> tokens; // as the vocabulary's author wrote them: "Ġthe", "##ing", "<s>"
  std::vector<std::pair<int32_t, int32_t>>
      offsets;                  // [begin, end) in characters of the text; (0, 0) if inserted
  std::vector<int32_t> typeIds; // 0, or 1 for the second text of a pair
};

class Tokenizer {
public:
  /// The blob is used in place: it must be 8-byte aligned and outlive the tokenizer. Throws
  /// TokenizerError.
  static Tokenizer open(const void *blob, size_t bytes);

  Tokenizer(Tokenizer &&) noexcept;
  Tokenizer &operator=(Tokenizer &&) noexcept;
  ~Tokenizer();

  /// `addSpecial` puts in what the model's template asks for (BOS, EOS, [CLS] …). The strings of
  /// added tokens in the text always become those tokens.
  Encoding encode(std::string_view text, bool addSpecial = true) const;
  Encoding encodePair(std::string_view first, std::string_view second,
                      bool addSpecial = true) const;

  /// The ids of encode(), several times faster.
  std::vector<int32_t> encodeIds(std::string_view text, bool addSpecial = true) const;

  /// Valid UTF-8: bytes that do not form a character become U+FFFD. Ids without a token (an LM head
  /// is often padded beyond the vocabulary) contribute nothing.
  std::string decode(const std::vector<int32_t> &ids, bool skipSpecial = false) const;

  /// The bytes that a token stands for, perhaps part of a character only; empty for ids without a
  /// token. What to stream: see TextStream.h.
  std::string_view bytes(int32_t id) const;

  /// The token as the vocabulary's author wrote it.
  std::string token(int32_t id) const;

  /// The id of a token written so.
  std::optional<int32_t> find(std::string_view token) const;

  int32_t vocabSize() const;        // ids are below this
  bool isSpecial(int32_t id) const; // skipped by decode(…, skipSpecial)
  std::optional<int32_t> bos() const;
  std::optional<int32_t> eos() const;

private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_TOKENIZER_TOKENIZER_H
