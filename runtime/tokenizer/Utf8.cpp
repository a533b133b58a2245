#include "runtime/tokenizer/Utf8.h"

#include <cstring>

namespace tenon::rt {

Utf8Sequence firstSequence(std::string_view text) {
  auto byte = [&](size_t i) { return uint8_t(text[i]); };
  uint8_t lead = byte(0);
  if (lead < 0x80)
    return {1, true, false};
  size_t length = lead >= 0xc2 && lead <= 0xdf   ? 2
                  : (lead & 0xf0) == 0xe0        ? 3
                  : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                 : 0;
  if (!length)
    return {1, false, false};
  // The second byte's range excludes overlong forms, surrogates and what lies beyond U+10FFFF.
  uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (size_t i = 1; i < length; ++i, low = 0x80, high = 0xbf) {
    if (i == text.size())
      return {i, false, true};
    if (byte(i) < low || byte(i) > high)
      return {i, false, false};
  }
  return {length, true, false};
}

/// How many bytes of ASCII `text` starts with, counted in whole words.
static size_t asciiPrefix(std::string_view text) {
  size_t at = 0;
  for (uint64_t word; at + 8 <= text.size(); at += 8) {
    std::memcpy(&word, text.data() + at, 8);
    if (word & 0x8080808080808080ull)
      break;
  }
  return at;
}

/// The length of the longest valid prefix.
static size_t validPrefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    at += asciiPrefix(text.substr(at));
    if (at == text.size())
      break;
    Utf8Sequence sequence = firstSequence(text.substr(at));
    if (!sequence.valid)
      break;
    at += sequence.length;
  }
  return at;
}

bool isValidUtf8(std::string_view text) { return validPrefix(text) == text.size(); }

void appendRepaired(std::string &out, std::string_view text) {
  while (!text.empty()) {
    size_t valid = validPrefix(text);
    out.append(text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty())
      return;
    out.append(kReplacement);
    text.remove_prefix(firstSequence(text).length);
  }
}

char32_t nextChar(std::string_view text, size_t &at) {
  uint8_t lead = text[at++];
  if (lead < 0x80)
    return lead;
  char32_t c = lead < 0xe0 ? lead & 0x1f : lead < 0xf0 ? lead & 0x0f : lead & 0x07;
  while (at < text.size() && isContinuation(text[at]))
    c = (c << 6) | (text[at++] & 0x3f);
  return c;
}

void appendChar(std::string &out, char32_t c) {
  if (c < 0x80) {
    out += char(c);
  } else if (c < 0x800) {
    out += {char(0xc0 | (c >> 6)), char(0x80 | (c & 0x3f))};
  } else if (c < 0x10000) {
    out += {char(0xe0 | (c >> 12)), char(0x80 | ((c >> 6) & 0x3f)), char(0x80 | (c & 0x3f))};
  } else {
    out += {char(0xf0 | (c >> 18)), char(0x80 | ((c >> 12) & 0x3f)), char(0x80 | ((c >> 6) & 0x3f)),
            char(0x80 | (c & 0x3f))};
  }
}

} // namespace tenon::rt
