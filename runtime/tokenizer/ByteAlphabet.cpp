#include "runtime/tokenizer/ByteAlphabet.h"

#include "runtime/tokenizer/Utf8.h"

#include <array>

namespace tenon::rt {

namespace {
struct Alphabet {
  std::array<char16_t, 256> charOf{};
  std::array<int16_t, 256 + 68> byteOf{};

  constexpr Alphabet() {
    for (int16_t &byte : byteOf)
      byte = -1;
    char16_t next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
      charOf[byte] = printable ? char16_t(byte) : next++;
      byteOf[charOf[byte]] = int16_t(byte);
    }
  }
};
constexpr Alphabet kAlphabet;
} // namespace

std::string toByteAlphabet(std::string_view bytes) {
  std::string text;
  for (char byte : bytes)
    appendChar(text, kAlphabet.charOf[uint8_t(byte)]);
  return text;
}

std::optional<std::string> fromByteAlphabet(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    char32_t c = nextChar(text, at);
    if (c >= kAlphabet.byteOf.size() || kAlphabet.byteOf[c] < 0)
      return std::nullopt;
    bytes += char(kAlphabet.byteOf[c]);
  }
  return bytes;
}

} // namespace tenon::rt
