#include "runtime/tokenizer/TextStream.h"

#include "runtime/tokenizer/Utf8.h"

#include <algorithm>

namespace tenon::rt {

/// Where an unfinished character at the end of `bytes` begins; their end if there is none.
static size_t unfinished(std::string_view bytes) {
  size_t earliest = bytes.size() - std::min<size_t>(bytes.size(), 3);
  for (size_t at = earliest; at < bytes.size(); ++at) {
    Utf8Sequence sequence = firstSequence(bytes.substr(at));
    if (sequence.truncated && at + sequence.length == bytes.size())
      return at;
  }
  return bytes.size();
}

std::string TextStream::push(int32_t id) {
  if (skipSpecial && tokenizer.isSpecial(id))
    return {};
  held += tokenizer.bytes(id);
  size_t complete = unfinished(held);
  std::string text;
  appendRepaired(text, std::string_view(held).substr(0, complete));
  held.erase(0, complete);
  return text;
}

std::string TextStream::finish() {
  std::string text;
  appendRepaired(text, held);
  held.clear();
  return text;
}

} // namespace tenon::rt
