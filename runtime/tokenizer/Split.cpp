#include "runtime/tokenizer/Split.h"

#include "runtime/tokenizer/Tokenizer.h"
#include "runtime/tokenizer/Utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace tenon::rt {

using blob::Behaviour;

MatchSpace::MatchSpace() : data(pcre2_match_data_create_8(1, nullptr)) {
  if (!data)
    throw std::bad_alloc();
}
MatchSpace::~MatchSpace() { pcre2_match_data_free_8(data); }

SplitPattern::~SplitPattern() { pcre2_code_free_8(code); }

static std::string pcreMessage(int error) {
  PCRE2_UCHAR8 text[256];
  pcre2_get_error_message_8(error, text, sizeof(text));
  return reinterpret_cast<const char *>(text);
}

void SplitPattern::prepare() const {
  std::call_once(once, [this] { compile(); });
}

void SplitPattern::compile() const {
  int error;
  PCRE2_SIZE at;
  // \C would cut characters apart.
  code = pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(pattern.data()), pattern.size(),
                         PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at, nullptr);
  if (!code)
    throw TokenizerError("the tokenizer's splitting pattern '" + std::string(pattern) +
                         "' is not a regular expression: " + pcreMessage(error) + " at byte " +
                         std::to_string(at));
  jitted = pcre2_jit_compile_8(code, PCRE2_JIT_COMPLETE) == 0;
}

bool SplitPattern::match(std::string_view text, size_t from, const MatchSpace &space, size_t &begin,
                         size_t &end) const {
  auto *subject = reinterpret_cast<PCRE2_SPTR8>(text.data());
  int result = PCRE2_ERROR_JIT_STACKLIMIT;
  if (jitted)
    result = pcre2_jit_match_8(code, subject, text.size(), from, 0, space.get(), nullptr);
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) // the interpreter has the heap
    result = pcre2_match_8(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                           space.get(), nullptr);
  if (result == PCRE2_ERROR_NOMATCH)
    return false;
  if (result < 0)
    throw TokenizerError("the tokenizer's splitting pattern '" + std::string(pattern) +
                         "' failed: " + pcreMessage(result));
  const PCRE2_SIZE *found = pcre2_get_ovector_pointer_8(space.get());
  begin = found[0];
  end = found[1];
  if (begin < from || end < begin) // \K can do that
    throw TokenizerError("the tokenizer's splitting pattern '" + std::string(pattern) +
                         "' matches backwards");
  return true;
}

bool SplitCursor::nextSegment(Segment &segment) {
  if (!hasPendingMatch && !exhausted) {
    hasPendingMatch = searchFrom <= text.size() &&
                      pattern.match(text, searchFrom, space, pendingMatch.begin, pendingMatch.end);
    exhausted = !hasPendingMatch;
    if (hasPendingMatch) {
      searchFrom = pendingMatch.end;
      // After an empty match the search goes on behind the next character.
      if (pendingMatch.begin == pendingMatch.end)
        do
          ++searchFrom;
        while (searchFrom < text.size() && isContinuation(text[searchFrom]));
    }
  }
  size_t gapEnd = hasPendingMatch ? pendingMatch.begin : text.size();
  if (covered < gapEnd) {
    segment = {covered, gapEnd, pattern.invert()};
    covered = gapEnd;
    return true;
  }
  if (!hasPendingMatch)
    return false;
  segment = {pendingMatch.begin, pendingMatch.end, !pattern.invert()};
  covered = pendingMatch.end;
  hasPendingMatch = false;
  return true;
}

bool SplitCursor::joins(const Segment &last, const Segment &next) const {
  switch (pattern.behaviour()) {
  case Behaviour::MergedWithPrevious:
    return !last.isMatch && next.isMatch;
  case Behaviour::MergedWithNext:
    return last.isMatch && !next.isMatch;
  case Behaviour::Contiguous:
    return last.isMatch == next.isMatch;
  default:
    return false;
  }
}

bool SplitCursor::next(size_t &begin, size_t &end) {
  auto give = [&] {
    begin = word.begin;
    end = word.end;
  };
  for (Segment segment; nextSegment(segment);) {
    if (segment.begin == segment.end)
      continue;
    if (segment.isMatch && pattern.behaviour() == Behaviour::Removed)
      continue;
    if (hasWord && joins(word, segment)) {
      word.end = segment.end;
      word.isMatch = segment.isMatch;
      continue;
    }
    bool complete = hasWord;
    if (complete)
      give();
    word = segment;
    hasWord = true;
    if (complete)
      return true;
  }
  if (!hasWord)
    return false;
  give();
  hasWord = false;
  return true;
}

} // namespace tenon::rt
