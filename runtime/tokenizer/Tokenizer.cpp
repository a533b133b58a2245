#include "runtime/tokenizer/Tokenizer.h"

#include "runtime/tokenizer/ByteAlphabet.h"
#include "runtime/tokenizer/Stages.h"
#include "runtime/tokenizer/Unicode.h"
#include "runtime/tokenizer/Utf8.h"

#include <algorithm>

namespace tenon::rt {

using blob::TemplateItem;

struct Tokenizer::Impl : Stages {
  using Stages::Stages;

  /// Tokens that are written as they are, the others are written in the byte alphabet.
  bool isAsWritten(uint32_t id) const {
    return view.tokenFlags[id] & (blob::Added | blob::Verbatim);
  }
  bool has(int32_t id) const { return id >= 0 && uint32_t(id) < view.vocabSize(); }

  std::string written(uint32_t id) const {
    return isAsWritten(id) ? std::string(view.token(id)) : toByteAlphabet(view.token(id));
  }

  std::pair<int32_t, int32_t> trimmed(std::pair<int32_t, int32_t> offsets, uint32_t id,
                                      bool isFirst) const;
  void append(Encoding &out, const std::vector<TextToken> &tokens, std::string_view text,
              int32_t typeId) const;
  Encoding assemble(const Table<TemplateItem> &items, bool addSpecial, std::string_view first,
                    std::string_view second) const;
};

namespace {
/// Valid UTF-8: the text itself, or a repaired copy.
class CleanText {
public:
  explicit CleanText(std::string_view given) : view(given) {
    constexpr size_t kMost = INT32_MAX / 3; // repairing may triple it
    if (given.size() > kMost)
      throw TokenizerError("the text has " + std::to_string(given.size()) + " bytes; at most " +
                           std::to_string(kMost) + " can be tokenized at once");
    if (isValidUtf8(given))
      return;
    appendRepaired(copy, given);
    view = copy;
  }
  CleanText(const CleanText &) = delete;

  std::string_view view;

private:
  std::string copy;
};

/// Turns byte offsets into character offsets.
class CharacterOffsets {
public:
  explicit CharacterOffsets(std::string_view text) {
    if (std::none_of(text.begin(), text.end(), [](char byte) { return uint8_t(byte) >= 0x80; }))
      return;
    characterOf.reserve(text.size() + 1);
    int32_t character = -1;
    for (char byte : text)
      characterOf.push_back(character += !isContinuation(byte));
    characterOf.push_back(character + 1);
  }

  /// A part of a character counts as the whole.
  std::pair<int32_t, int32_t> of(Span span) const {
    if (characterOf.empty())
      return {span.begin, span.end};
    int32_t begin = characterOf[span.begin];
    return {begin, span.begin == span.end ? begin : characterOf[span.end - 1] + 1};
  }

private:
  std::vector<int32_t> characterOf; // empty: each byte is a character
};
} // namespace

/// Leaves out the spaces at a token's ends. add_prefix_space may have put one in front of the first
/// token.
std::pair<int32_t, int32_t> Tokenizer::Impl::trimmed(std::pair<int32_t, int32_t> offsets,
                                                     uint32_t id, bool isFirst) const {
  // Only a space is a space in the byte alphabet.
  std::string_view text = view.token(id);
  bool asWritten = isAsWritten(id);
  auto isSpace = [&](char32_t c) { return asWritten ? isWhiteSpace(c) : c == ' '; };
  int32_t leading = 0, trailing = 0;
  if (asWritten && !isValidUtf8(text))
    return offsets;
  for (size_t at = 0; at < text.size() && isSpace(asWritten ? nextChar(text, at) : text[at++]);)
    ++leading;
  for (size_t end = text.size(); end;) {
    size_t at = end - 1;
    while (asWritten && at && isContinuation(text[at]))
      --at;
    size_t begin = at;
    if (!isSpace(asWritten ? nextChar(text, at) : text[at]))
      break;
    ++trailing;
    end = begin;
  }
  if (leading && (isFirst || !offsets.first) && (view.header->postFlags & blob::KeepPrefixSpace))
    --leading;
  offsets.first = std::min(offsets.first + leading, offsets.second);
  if (offsets.second >= trailing)
    offsets.second = std::max(offsets.second - trailing, offsets.first);
  return offsets;
}

void Tokenizer::Impl::append(Encoding &out, const std::vector<TextToken> &tokens,
                             std::string_view text, int32_t typeId) const {
  CharacterOffsets characters(text);
  for (const TextToken &token : tokens) {
    std::pair<int32_t, int32_t> offsets = characters.of(token.from);
    if (view.header->postFlags & blob::TrimOffsets)
      offsets = trimmed(offsets, token.id, &token == &tokens.front());
    out.ids.push_back(token.id);
    out.tokens.push_back(written(token.id));
    out.offsets.push_back(offsets);
    out.typeIds.push_back(typeId);
  }
}

Encoding Tokenizer::Impl::assemble(const Table<TemplateItem> &items, bool addSpecial,
                                   std::string_view first, std::string_view second) const {
  Encoding out;
  for (const TemplateItem &item : items) {
    if (item.what < 0) {
      CleanText text(item.what == blob::kFirstText ? first : second);
      append(out, run(text.view), text.view, item.typeId);
    } else if (addSpecial) {
      out.ids.push_back(item.what);
      out.tokens.push_back(written(item.what));
      out.offsets.push_back({0, 0});
      out.typeIds.push_back(item.typeId);
    }
  }
  return out;
}

Tokenizer Tokenizer::open(const void *blob, size_t bytes) {
  return Tokenizer(std::make_unique<const Impl>(blob, bytes));
}

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl) : impl(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer &&) noexcept = default;
Tokenizer &Tokenizer::operator=(Tokenizer &&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Encoding Tokenizer::encode(std::string_view text, bool addSpecial) const {
  return impl->assemble(impl->view.single, addSpecial, text, {});
}

Encoding Tokenizer::encodePair(std::string_view first, std::string_view second,
                               bool addSpecial) const {
  return impl->assemble(impl->view.pair, addSpecial, first, second);
}

std::vector<int32_t> Tokenizer::encodeIds(std::string_view text, bool addSpecial) const {
  std::vector<int32_t> ids;
  for (const TemplateItem &item : impl->view.single) {
    if (item.what == blob::kFirstText) {
      std::vector<TextToken> tokens = impl->run(CleanText(text).view);
      ids.reserve(ids.size() + tokens.size());
      for (const TextToken &token : tokens)
        ids.push_back(token.id);
    } else if (item.what >= 0 && addSpecial) {
      ids.push_back(item.what);
    }
  }
  return ids;
}

std::string Tokenizer::decode(const std::vector<int32_t> &ids, bool skipSpecial) const {
  std::string raw;
  for (int32_t id : ids)
    if (!skipSpecial || !isSpecial(id))
      raw += bytes(id);
  if (isValidUtf8(raw))
    return raw;
  std::string text;
  appendRepaired(text, raw);
  return text;
}

std::string_view Tokenizer::bytes(int32_t id) const {
  return impl->has(id) ? impl->view.token(id) : std::string_view();
}

std::string Tokenizer::token(int32_t id) const {
  return impl->has(id) ? impl->written(id) : std::string();
}

std::optional<int32_t> Tokenizer::find(std::string_view token) const {
  for (uint32_t id = 0; id < impl->view.vocabSize(); ++id)
    if (impl->isAsWritten(id) && impl->view.token(id) == token)
      return int32_t(id);
  if (!isValidUtf8(token))
    return std::nullopt;
  std::optional<std::string> bytes = fromByteAlphabet(token);
  uint32_t id = bytes ? impl->view.findToken(*bytes) : blob::kEmpty;
  return id == blob::kEmpty ? std::nullopt : std::optional<int32_t>(id);
}

int32_t Tokenizer::vocabSize() const { return int32_t(impl->view.vocabSize()); }

bool Tokenizer::isSpecial(int32_t id) const {
  return impl->has(id) && (impl->view.tokenFlags[id] & blob::Special);
}

static std::optional<int32_t> known(int32_t id) {
  return id < 0 ? std::nullopt : std::optional<int32_t>(id);
}
std::optional<int32_t> Tokenizer::bos() const { return known(impl->view.header->bos); }
std::optional<int32_t> Tokenizer::eos() const { return known(impl->view.header->eos); }

} // namespace tenon::rt
