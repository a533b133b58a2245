// The printable alphabet in which byte-level vocabularies write their tokens: each of the 256 bytes
// has one character. Printable ASCII and Latin-1 stand for themselves, the other 68 bytes, in
// order, for U+0100 and up: space is "Ġ" (U+0120), newline "Ċ" (U+010A).
#ifndef TENON_RUNTIME_TOKENIZER_BYTEALPHABET_H
#define TENON_RUNTIME_TOKENIZER_BYTEALPHABET_H

#include <optional>
#include <string>
#include <string_view>

namespace tenon::rt {

/// " the" -> "Ġthe".
std::string toByteAlphabet(std::string_view bytes);

/// "Ġthe" -> " the"; nothing if a character is not of the alphabet. The text must be valid UTF-8.
std::optional<std::string> fromByteAlphabet(std::string_view text);

} // namespace tenon::rt

#endif // TENON_RUNTIME_TOKENIZER_BYTEALPHABET_H
