// UTF-8: checking, repairing, reading and writing characters.
#ifndef TENON_RUNTIME_TOKENIZER_UTF8_H
#define TENON_RUNTIME_TOKENIZER_UTF8_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::rt {

constexpr std::string_view kReplacement = "\xef\xbf\xbd"; // U+FFFD

/// The first sequence of non-empty `text`: its length, and whether it is a character. If it is not,
/// the length is that of the maximal ill-formed subsequence (at least 1), which one U+FFFD
/// replaces. `truncated` tells whether more bytes could have made it a character.
struct Utf8Sequence {
  size_t length;
  bool valid;
  bool truncated;
};
Utf8Sequence firstSequence(std::string_view text);

bool isValidUtf8(std::string_view text);

/// Appends `text` with ill-formed subsequences replaced by U+FFFD.
void appendRepaired(std::string &out, std::string_view text);

/// The character at `at`, which is moved behind it. The text must be valid.
char32_t nextChar(std::string_view text, size_t &at);

void appendChar(std::string &out, char32_t c);

inline bool isContinuation(char byte) { return (byte & 0xc0) == 0x80; }

} // namespace tenon::rt

#endif // TENON_RUNTIME_TOKENIZER_UTF8_H
