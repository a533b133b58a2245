#include "runtime/tokenizer/Stages.h"

#include "runtime/tokenizer/Normalise.h"
#include "runtime/tokenizer/Tokenizer.h"
#include "runtime/tokenizer/Utf8.h"

namespace tenon::rt {

using blob::StepKind;

Stages::Stages(const void *blob, size_t bytes)
    : view(blob, bytes), model(makeModel(view)), rawAdded(view, view.rawTrie),
      normalAdded(view, view.normalTrie) {
  for (const blob::Step &step : view.normalise)
    if (step.kind < StepKind::Nfc || step.kind > StepKind::Nfkd)
      throw TokenizerError("the tokenizer data asks for an unknown way to normalise text");
  for (const blob::Step &step : view.split) {
    bool hasPattern = step.kind == StepKind::Regex;
    if (!hasPattern && step.kind != StepKind::PrefixSpace)
      throw TokenizerError("the tokenizer data asks for an unknown way to split text");
    patterns.push_back(hasPattern ? std::make_unique<SplitPattern>(view.text(step), step.option)
                                  : nullptr);
  }
}

namespace {
/// One text on its way. Each member function is a stage that hands what it makes to the next.
class Run {
public:
  explicit Run(const Stages &stages) : stages(stages) {}

  std::vector<TextToken> over(std::string_view text) {
    cutAtAdded(stages.rawAdded, Piece{text}, &Run::normalise);
    return std::move(tokens);
  }

private:
  /// Added tokens are emitted, what lies between them goes to `next`.
  void cutAtAdded(const AddedTokens &added, const Piece &piece, void (Run::*next)(Piece)) {
    AddedTokens::Cursor cursor(added, piece.text);
    for (AddedTokens::Cursor::Stretch stretch; cursor.next(stretch);) {
      if (stretch.token)
        tokens.push_back({int32_t(stretch.token->id), piece.origin(stretch.begin, stretch.end)});
      else
        (this->*next)(piece.part(stretch.begin, stretch.end));
    }
  }

  void normalise(Piece piece) {
    Rewritten last;
    for (const blob::Step &step : stages.view.normalise) {
      Rewritten rewritten;
      if (!normalForm(step.kind, piece, rewritten))
        continue;
      last = std::move(rewritten);
      piece = last.piece();
    }
    cutAtAdded(stages.normalAdded, piece, &Run::split);
  }

  void split(Piece piece) { splitFrom(0, piece); }

  void splitFrom(size_t step, const Piece &piece) {
    if (step == stages.view.split.size)
      return encode(piece);
    if (stages.view.split[step].kind == StepKind::PrefixSpace)
      return prefixSpace(step, piece);
    SplitCursor cursor(*stages.patterns[step], piece.text, space);
    for (size_t begin, end; cursor.next(begin, end);)
      splitFrom(step + 1, piece.part(begin, end));
  }

  /// The space is said to come from the character it is put before.
  void prefixSpace(size_t step, const Piece &piece) {
    if (piece.text.front() == ' ')
      return splitFrom(step + 1, piece);
    size_t first = 0;
    nextChar(piece.text, first);
    Rewritten prefixed;
    prefixed.append(' ', piece.origin(0, first));
    for (size_t i = 0; i < piece.text.size(); ++i)
      prefixed.append(piece.text[i], piece.origin(i, i + 1));
    splitFrom(step + 1, prefixed.piece());
  }

  void encode(const Piece &word) {
    wordTokens.clear();
    stages.model->encode(word.text, wordTokens);
    for (const WordToken &token : wordTokens)
      tokens.push_back({token.id, word.origin(token.begin, token.end)});
  }

  const Stages &stages;
  MatchSpace space;
  std::vector<WordToken> wordTokens; // of one word
  std::vector<TextToken> tokens;     // of the text
};
} // namespace

std::vector<TextToken> Stages::run(std::string_view text) const { return Run(*this).over(text); }

} // namespace tenon::rt
