// A stretch of text on its way to becoming tokens, which remembers where in the original it came
// from.
#ifndef TENON_RUNTIME_TOKENIZER_PIECE_H
#define TENON_RUNTIME_TOKENIZER_PIECE_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::rt {

/// Bytes [begin, end) of the original text.
struct Span {
  uint32_t begin, end;
};

struct Piece {
  std::string_view text;
  uint32_t base = 0;           // where unchanged text starts in the original
  const Span *spans = nullptr; // changed text: where each of its bytes came from

  Span origin(size_t begin, size_t end) const {
    if (spans)
      return {spans[begin].begin, spans[end - 1].end};
    return {uint32_t(base + begin), uint32_t(base + end)};
  }
  Piece part(size_t begin, size_t end) const {
    return {text.substr(begin, end - begin), uint32_t(base + begin),
            spans ? spans + begin : nullptr};
  }
};

/// Text that a step has rewritten.
struct Rewritten {
  std::string text;
  std::vector<Span> spans;

  Piece piece() const { return {text, 0, spans.data()}; }
  void append(char byte, Span from) {
    text += byte;
    spans.push_back(from);
  }
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_TOKENIZER_PIECE_H
