// Stop strings are found wherever the text is cut, and nothing is held back in vain.
#include "runtime/StopStrings.h"

#include <gtest/gtest.h>

using namespace tenon::rt;

namespace {
struct Stopped {
  std::string text;
  bool stopped;
};
Stopped stopThrough(std::vector<std::string> stops, const std::string &text, size_t piece) {
  StopStrings matcher(std::move(stops));
  std::string out;
  for (size_t i = 0; i < text.size() && !matcher.stopped(); i += piece)
    out += matcher.push(std::string_view(text).substr(i, piece));
  out += matcher.flush();
  return {out, matcher.stopped()};
}
} // namespace

TEST(StopStrings, HoldBackOnlyWhatMayBecomeOne) {
  StopStrings matcher({"\n\n", "END"});
  EXPECT_EQ(matcher.push("a\n"), "a");
  EXPECT_EQ(matcher.push("b EN"), "\nb ");
  EXPECT_EQ(matcher.push("Q"), "ENQ");
  EXPECT_EQ(matcher.push("x END y"), "x ");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.push("more"), "");
  EXPECT_EQ(matcher.flush(), "");
}

TEST(StopStrings, AnswerDoesNotDependOnTheCuts) {
  struct Case {
    std::vector<std::string> stops;
    std::string text, expected;
    bool stopped;
  } cases[] = {
      {{}, "free", "free", false},
      {{""}, "empty stops nothing", "empty stops nothing", false},
      {{"aab"}, "aaaab!", "aa", true},
      {{"abcd", "bc"}, "xabcd", "xa", true}, // bc completes first
      {{"bc", "abc"}, "xabc", "x", true},    // both complete: the longer
      {{"abab"}, "ababa", "", true},
      {{"stop"}, "ends with sto", "ends with sto", false},
      {{"\xe2\x82\xac"}, "1 \xe2\x82\xac", "1 ", true},
  };
  for (const Case &test : cases)
    for (size_t piece : {1, 2, 3, 100}) {
      Stopped result = stopThrough(test.stops, test.text, piece);
      EXPECT_EQ(result.text, test.expected) << test.text << " in pieces of " << piece;
      EXPECT_EQ(result.stopped, test.stopped) << test.text;
    }
}
