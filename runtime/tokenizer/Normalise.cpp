#include "runtime/tokenizer/Normalise.h"

#include "runtime/tokenizer/Utf8.h"

#include <algorithm>
#include <utf8proc.h>

namespace tenon::rt {

using blob::StepKind;

namespace {
/// A character of the result. `delta` says how it consumes the source: 1 = it was inserted after
/// the character that the one before it came from, 0 = it replaces one character, -k = it replaces
/// 1 + k characters.
struct Char {
  utf8proc_int32_t c;
  int delta;
  int combiningClass;
  uint32_t order; // its place before marks are reordered
};
} // namespace

static int combiningClassOf(utf8proc_int32_t c) {
  return utf8proc_get_property(c)->combining_class;
}

/// Canonical or compatibility decomposition with marks in canonical order.
static std::vector<Char> decompose(std::string_view text, bool compatibility) {
  auto options = utf8proc_option_t(UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0));
  std::vector<Char> chars;
  chars.reserve(text.size());
  std::vector<utf8proc_int32_t> parts(32);
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t c = nextChar(text, at);
    int boundary = 0;
    auto decomposeInto = [&] {
      return utf8proc_decompose_char(c, parts.data(), parts.size(), options, &boundary);
    };
    utf8proc_ssize_t count = decomposeInto();
    if (count > utf8proc_ssize_t(parts.size())) {
      parts.resize(count);
      count = decomposeInto();
    }
    if (count < 0) // not a code point that utf8proc knows how to treat
      parts[0] = c, count = 1;
    for (utf8proc_ssize_t i = 0; i < count; ++i)
      chars.push_back({parts[i], i ? 1 : 0, combiningClassOf(parts[i]), uint32_t(chars.size())});
  }
  for (auto run = chars.begin(); run != chars.end();) {
    auto isMark = [](const Char &c) { return c.combiningClass != 0; };
    run = std::find_if(run, chars.end(), isMark);
    auto end = std::find_if_not(run, chars.end(), isMark);
    std::sort(run, end, [](const Char &a, const Char &b) {
      return std::pair(a.combiningClass, a.order) < std::pair(b.combiningClass, b.order);
    });
    run = end;
  }
  return chars;
}

/// The primary composite of a starter and what follows it, or 0.
static utf8proc_int32_t compose(utf8proc_int32_t first, utf8proc_int32_t second) {
  if (second < 0x300) // nothing below is the second half of a composite
    return 0;
  utf8proc_int32_t both[2] = {first, second};
  auto options = utf8proc_option_t(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  return utf8proc_normalize_utf32(both, 2, options) == 1 ? both[0] : 0;
}

/// Canonical composition, in place.
static void recompose(std::vector<Char> &chars) {
  constexpr size_t kNone = SIZE_MAX;
  size_t starter = kNone, kept = 0;
  for (const Char &next : chars) {
    // `next` is blocked from the starter by a mark between them of the same or a higher class.
    bool adjacent = starter != kNone && kept == starter + 1;
    bool reachable =
        adjacent || (starter != kNone && chars[kept - 1].combiningClass < next.combiningClass);
    utf8proc_int32_t composite = reachable ? compose(chars[starter].c, next.c) : 0;
    if (composite) {
      chars[starter].c = composite;
      chars[starter].delta += next.delta - 1;
      continue;
    }
    if (!next.combiningClass)
      starter = kept;
    chars[kept++] = next;
  }
  chars.resize(kept);
}

/// Everything below U+0300 is in NFC, everything in ASCII in every form.
static bool isTriviallyNormal(StepKind kind, std::string_view text) {
  uint8_t limit = kind == StepKind::Nfc ? 0xcc : 0x80;
  return std::all_of(text.begin(), text.end(),
                     [limit](char byte) { return uint8_t(byte) < limit; });
}

bool normalForm(StepKind kind, const Piece &piece, Rewritten &out) {
  if (isTriviallyNormal(kind, piece.text))
    return false;
  std::vector<Char> chars = decompose(piece.text, kind == StepKind::Nfkc || kind == StepKind::Nfkd);
  if (kind == StepKind::Nfc || kind == StepKind::Nfkc)
    recompose(chars);

  size_t at = 0; // what of the source has been consumed
  Span from{0, 0};
  for (const Char &next : chars) {
    for (int consume = std::max(0, 1 - next.delta), i = 0; i < consume && at < piece.text.size();
         ++i) {
      size_t begin = at;
      nextChar(piece.text, at);
      Span origin = piece.origin(begin, at);
      if (i == 0)
        from = origin;
    }
    size_t before = out.text.size();
    appendChar(out.text, next.c);
    out.spans.insert(out.spans.end(), out.text.size() - before, from);
  }
  return true;
}

} // namespace tenon::rt
