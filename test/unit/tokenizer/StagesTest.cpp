// The stages one by one: normal forms, splitting, translating patterns.
#include "Support.h"

#include "frontend/tokenizer/Pattern.h"
#include "runtime/tokenizer/Normalise.h"
#include "runtime/tokenizer/Split.h"
#include "runtime/tokenizer/Unicode.h"
#include "runtime/tokenizer/Utf8.h"

#include <gmock/gmock.h>
#include <utf8proc.h>

namespace tenon::test {

using rt::blob::Behaviour;
using rt::blob::StepKind;
using testing::ElementsAre;
using testing::HasSubstr;

static std::string normal(StepKind kind, const std::string &text) {
  rt::Rewritten out;
  return rt::normalForm(kind, rt::Piece{text}, out) ? out.text : text;
}

TEST(Normalise, AgreesWithUtf8procOnEveryCharacter) {
  using Reference = utf8proc_uint8_t *(*)(const utf8proc_uint8_t *);
  const std::pair<StepKind, Reference> forms[] = {{StepKind::Nfc, utf8proc_NFC},
                                                  {StepKind::Nfd, utf8proc_NFD},
                                                  {StepKind::Nfkc, utf8proc_NFKC},
                                                  {StepKind::Nfkd, utf8proc_NFKD}};
  for (char32_t c = 1; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000)
      continue;
    // After a letter, and before marks of several classes: what composes, what blocks, what is
    // reordered.
    std::string text = "a";
    rt::appendChar(text, c);
    text += "\u0301\u0323\u0301";
    for (auto [kind, reference] : forms) {
      utf8proc_uint8_t *expected =
          reference(reinterpret_cast<const utf8proc_uint8_t *>(text.c_str()));
      ASSERT_EQ(normal(kind, text), reinterpret_cast<char *>(expected)) << "U+" << std::hex << c;
      free(expected);
    }
  }
}

TEST(Normalise, KeepsTrackOfOrigins) {
  // e + acute | Angstrom sign | x
  std::string text = "e\u0301\u212bx";
  rt::Rewritten out;
  ASSERT_TRUE(rt::normalForm(StepKind::Nfc, rt::Piece{text, 10}, out));
  EXPECT_EQ(out.text, "\u00e9\u00c5x");
  std::vector<std::pair<int, int>> spans;
  for (rt::Span span : out.spans)
    spans.push_back({span.begin, span.end});
  using testing::Pair;
  EXPECT_THAT(spans,
              ElementsAre(Pair(10, 11), Pair(10, 11), Pair(13, 16), Pair(13, 16), Pair(16, 17)));
}

static std::vector<std::string> split(const std::string &pattern, const std::string &text,
                                      Behaviour behaviour = Behaviour::Isolated,
                                      bool invert = false) {
  rt::SplitPattern compiled(pattern, uint32_t(behaviour) | (invert ? rt::blob::kInvert : 0));
  rt::MatchSpace space;
  rt::SplitCursor cursor(compiled, text, space);
  std::vector<std::string> words;
  for (size_t begin, end; cursor.next(begin, end);)
    words.push_back(text.substr(begin, end - begin));
  return words;
}

TEST(Split, Behaviours) {
  std::string text = "the-final--countdown";
  EXPECT_THAT(split("-", text), ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(split("-", text, Behaviour::Removed), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(split("-", text, Behaviour::MergedWithPrevious),
              ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(split("-", text, Behaviour::MergedWithNext),
              ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(split("-", text, Behaviour::Contiguous),
              ElementsAre("the", "-", "final", "--", "countdown"));
  EXPECT_THAT(split("[a-z]+", text, Behaviour::Removed, true),
              ElementsAre("the", "final", "countdown"));
}

TEST(Split, EmptyMatchesCut) {
  EXPECT_THAT(split("(?=b)", "abéb"), ElementsAre("a", "bé", "b"));
  EXPECT_THAT(split("x*", "éa"), ElementsAre("é", "a"));
  EXPECT_THAT(split("x", ""), ElementsAre());
}

TEST(Split, BadPatternsAreErrors) {
  EXPECT_THROW(split("(", "a"), rt::TokenizerError);
  // Catastrophic backtracking ends at a limit.
  EXPECT_THROW(split("(a|a|aa)*\\1$", std::string(64, 'a') + "b"), rt::TokenizerError);
}

static std::string translated(const std::string &pattern) {
  llvm::Expected<std::string> result = translatePattern(pattern);
  return result ? *result : llvm::toString(result.takeError());
}

TEST(Pattern, Translates) {
  EXPECT_EQ(translated(" ?\\p{L}+|[^\\r\\n]"), " ?\\p{L}+|[^\\r\\n]");
  EXPECT_EQ(translated("[a[bc]d]+[x]"), "[abcd]+[x]");
  EXPECT_EQ(translated("[]a]\\["), "[\\]a]\\[");
  EXPECT_EQ(translated("[[:alpha:]x]"), "[[:alpha:]x]");
  EXPECT_EQ(translated("^a"), "(?m)^a");
  EXPECT_EQ(translated("\\u00e9"), "\\x{00e9}");
  EXPECT_THAT(split(translated("\\s+"), "a\u3000\u0085b\u180ec"),
              ElementsAre("a", "\u3000\u0085", "b\u180ec"));
  EXPECT_THAT(split(translated("\\w+"), "a\u0301_1-\u24b6"),
              ElementsAre("a\u0301_1", "-", "\u24b6"));
  EXPECT_THAT(split(literalPattern("a.b*[é]"), "xa.b*[é]y"), ElementsAre("x", "a.b*[é]", "y"));
}

TEST(Pattern, RefusesWhatWouldMeanSomethingElse) {
  for (const char *pattern : {"[a-z&&[^b]]", "[a[^b]]", "\\h", "[\\S]", "a\\", "\\u12", "a\\Kb"})
    EXPECT_THAT(translated(pattern), HasSubstr("is not supported")) << pattern;
}

TEST(Utf8, ReadsAndWritesEveryCharacter) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    std::string text;
    rt::appendChar(text, c);
    EXPECT_EQ(rt::isValidUtf8(text), c < 0xd800 || c >= 0xe000);
    size_t at = 0;
    EXPECT_EQ(rt::nextChar(text, at), c);
    EXPECT_EQ(at, text.size());
  }
}

} // namespace tenon::test
