// Cutting text into words by a regular expression.
#ifndef TENON_RUNTIME_TOKENIZER_SPLIT_H
#define TENON_RUNTIME_TOKENIZER_SPLIT_H

#include "runtime/tokenizer/Blob.h"

#include <memory>
#include <mutex>
#include <string_view>

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;

namespace tenon::rt {

/// Room for one match: each thread needs its own, any number of patterns may share it.
class MatchSpace {
public:
  MatchSpace();
  ~MatchSpace();
  MatchSpace(const MatchSpace &) = delete;
  pcre2_real_match_data_8 *get() const { return data; }

private:
  pcre2_real_match_data_8 *data;
};

/// A pattern, compiled when it is first used: a start that tokenizes nothing pays nothing.
class SplitPattern {
public:
  SplitPattern(std::string_view pattern, uint32_t option) : pattern(pattern), option(option) {}
  ~SplitPattern();
  SplitPattern(const SplitPattern &) = delete;

  /// Compiles the pattern unless that is done. Throws TokenizerError if it is not a regular
  /// expression.
  void prepare() const;

  /// Looks for the first match that starts at `from` or later. The text must be valid UTF-8.
  bool match(std::string_view text, size_t from, const MatchSpace &space, size_t &begin,
             size_t &end) const;

  blob::Behaviour behaviour() const { return blob::Behaviour(option & (blob::kInvert - 1)); }
  bool invert() const { return option & blob::kInvert; }

private:
  void compile() const;

  std::string_view pattern;
  uint32_t option;
  mutable std::once_flag once;
  mutable pcre2_real_code_8 *code = nullptr;
  mutable bool jitted = false;
};

/// Walks over the words that a pattern cuts a text into.
class SplitCursor {
public:
  SplitCursor(const SplitPattern &pattern, std::string_view text, const MatchSpace &space)
      : pattern(pattern), text(text), space(space) {
    pattern.prepare();
  }

  /// The next word, never empty; false after the last.
  bool next(size_t &begin, size_t &end);

private:
  /// A match, or what lies between two.
  struct Segment {
    size_t begin, end;
    bool isMatch;
  };
  bool nextSegment(Segment &segment);
  bool joins(const Segment &last, const Segment &next) const;

  const SplitPattern &pattern;
  std::string_view text;
  const MatchSpace &space;
  size_t covered = 0;                // segments have been given out up to here
  size_t searchFrom = 0;             // where to look for the next match
  Segment pendingMatch{0, 0, false}; // found, to be given out after what lies before it
  bool hasPendingMatch = false, exhausted = false;
  Segment word{0, 0, false}; // being assembled
  bool hasWord = false;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_TOKENIZER_SPLIT_H
