// What the golden vectors do not reach: invalid text, long words, added tokens with conditions,
// streaming.
#include "Support.h"

#include "runtime/tokenizer/TextStream.h"

#include <chrono>
#include <gmock/gmock.h>
#include <random>
#include <thread>

namespace tenon::test {

using testing::ElementsAre;
using testing::Pair;
using Ids = std::vector<int32_t>;

TEST(Encode, MergesLowestRankFirst) {
  Built t = buildFromJson(smallTokenizer());
  ASSERT_TRUE(t) << t.error;
  rt::Encoding encoding = t->encode("hello hehell hi");
  // "he" before "Ġh".
  EXPECT_THAT(encoding.tokens, ElementsAre("hello", "Ġ", "he", "hell", "Ġh", "i"));
  EXPECT_THAT(encoding.ids, ElementsAre(259, ' ', 256, 258, 260, 'i'));
  EXPECT_THAT(encoding.offsets, ElementsAre(Pair(0, 5), Pair(5, 6), Pair(6, 8), Pair(8, 12),
                                            Pair(12, 14), Pair(14, 15)));
}

TEST(Encode, FindAndTokenAreInverse) {
  Built t = buildFromJson(smallTokenizer());
  ASSERT_TRUE(t) << t.error;
  for (int32_t id = 0; id < t->vocabSize(); ++id)
    EXPECT_EQ(t->find(t->token(id)), id);
  EXPECT_EQ(t->find("<|start|>"), std::nullopt);
  EXPECT_EQ(t->find("\xff"), std::nullopt);
  EXPECT_TRUE(t->isSpecial(262));
  EXPECT_FALSE(t->isSpecial(261));
}

TEST(Encode, IdsBeyondTheVocabularyHaveNoText) {
  Built t = buildFromJson(smallTokenizer());
  ASSERT_TRUE(t) << t.error;
  for (int32_t id : {-1, 263, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(t->bytes(id), "");
    EXPECT_EQ(t->token(id), "");
    EXPECT_FALSE(t->isSpecial(id));
    EXPECT_EQ(t->decode({'a', id, 'b'}), "ab");
  }
}

TEST(Encode, InvalidUtf8BecomesReplacementCharacters) {
  Built t = buildFromJson(smallTokenizer());
  ASSERT_TRUE(t) << t.error;
  // One for each maximal ill-formed subsequence: a truncated character, an overlong form, a
  // surrogate.
  const std::pair<std::string, std::string> cases[] = {
      {"a\xf0\x9f\x98z", "a\ufffdz"},
      {"\xc0\xaf", "\ufffd\ufffd"},
      {"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
      {"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},
      {"\xe2\x82", "\ufffd"},
      {"ok\x80", "ok\ufffd"},
  };
  for (auto &[bad, repaired] : cases) {
    EXPECT_EQ(t->encodeIds(bad), t->encodeIds(repaired));
    EXPECT_EQ(t->encode(bad).offsets, t->encode(repaired).offsets);
    EXPECT_EQ(t->decode(t->encodeIds(bad)), repaired);
  }
}

TEST(Encode, PartOfACharacterHasTheOffsetsOfTheWhole) {
  Built t = buildFromJson(smallTokenizer());
  ASSERT_TRUE(t) << t.error;
  EXPECT_THAT(t->encode("é€").offsets,
              ElementsAre(Pair(0, 1), Pair(0, 1), Pair(1, 2), Pair(1, 2), Pair(1, 2)));
}

TEST(Encode, LongWordsMergeAsShortOnesDo) {
  Built t = buildFromJson(smallTokenizer());
  ASSERT_TRUE(t) << t.error;
  // Unmergeable letters keep the two apart: a word below the limit of scanning, inside one above
  // it.
  std::mt19937 random(7);
  std::string longWord;
  Ids expected;
  for (int i = 0; i < 200; ++i) {
    std::string part;
    for (int n = random() % 12; n >= 0; --n)
      part += "heloa"[random() % 5];
    Ids ids = t->encodeIds(part);
    expected.insert(expected.end(), ids.begin(), ids.end());
    expected.push_back('x');
    longWord += part + "x";
  }
  EXPECT_EQ(t->encodeIds(longWord), expected);
}

TEST(Encode, AMegabyteWithoutASpaceIsQuick) {
  Built t = buildFromJson(smallTokenizer());
  ASSERT_TRUE(t) << t.error;
  std::string hello;
  while (hello.size() < (1 << 20))
    hello += "hello";
  for (const std::string &text : {hello, std::string(1 << 20, 'a'), std::string(1 << 20, ' '),
                                  std::string(1 << 20, '\n'), std::string(1 << 20, '.')}) {
    auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(t->decode(t->encodeIds(text)), text);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  }
}

TEST(Encode, SeveralThreadsAtOnce) {
  Built t = buildFromJson(smallTokenizer());
  ASSERT_TRUE(t) << t.error;
  std::vector<std::thread> threads;
  std::vector<Ids> results(4);
  for (Ids &result : results)
    threads.emplace_back([&t, &result] { result = t->encodeIds("hello hello 12 é"); });
  for (std::thread &thread : threads)
    thread.join();
  for (Ids &result : results)
    EXPECT_EQ(result, results[0]);
}

/// A small tokenizer whose added token "<|end|>" has this set.
static Built withAdded(const char *key, bool value) {
  Json json = smallTokenizer();
  json["added_tokens"][0][key] = value;
  return buildFromJson(json);
}

TEST(AddedTokens, LongestAtTheLeftmostPlace) {
  Json json = smallTokenizer();
  Json token = json["added_tokens"][0];
  int id = token["id"];
  for (const char *content : {"<|", "<|end|>s", "nd"}) {
    token["id"] = ++id;
    token["content"] = content;
    json["added_tokens"].push_back(token);
  }
  Built t = buildFromJson(json);
  ASSERT_TRUE(t) << t.error;
  EXPECT_THAT(t->encode("<|end|>s<|end|><|e<|end").tokens,
              ElementsAre("<|end|>s", "<|end|>", "<|", "e", "<|", "e", "nd"));
}

TEST(AddedTokens, SingleWord) {
  Built t = withAdded("single_word", true);
  ASSERT_TRUE(t) << t.error;
  EXPECT_THAT(t->encodeIds("<|end|>"), ElementsAre(262));
  EXPECT_THAT(t->encodeIds(".<|end|>\n"), ElementsAre('.', 262, '\n'));
  EXPECT_EQ(t->encodeIds("é<|end|>").size(), 9u);
  EXPECT_EQ(t->encodeIds("<|end|>é").size(), 9u);
}

TEST(AddedTokens, StripTakesTheSpaceAround) {
  Built left = withAdded("lstrip", true);
  ASSERT_TRUE(left) << left.error;
  rt::Encoding encoding = left->encode("a \u3000<|end|> b");
  EXPECT_THAT(encoding.ids, ElementsAre('a', 262, ' ', 'b'));
  EXPECT_THAT(encoding.offsets[1], Pair(1, 10));

  Built right = withAdded("rstrip", true);
  ASSERT_TRUE(right) << right.error;
  EXPECT_THAT(right->encodeIds("a <|end|> \n<|end|>  "), ElementsAre('a', ' ', 262, 262));
}

TEST(AddedTokens, NormalisedTokensAreFoundInTheNormalisedText) {
  Json json = smallTokenizer();
  json["normalizer"] = {{"type", "NFC"}};
  Json &token = json["added_tokens"][0];
  token["content"] = "<\u00e9>";
  token["normalized"] = true;
  Built t = buildFromJson(json);
  ASSERT_TRUE(t) << t.error;
  EXPECT_THAT(t->encodeIds("a<e\u0301>"), ElementsAre('a', 262));
  EXPECT_THAT(t->encode("a<e\u0301>").offsets[1], Pair(1, 5));
  EXPECT_EQ(t->decode({262}), "<\u00e9>");

  token["normalized"] = false;
  Built raw = buildFromJson(json);
  ASSERT_TRUE(raw) << raw.error;
  EXPECT_THAT(raw->encodeIds("<\u00e9>"), ElementsAre(262));
  EXPECT_EQ(raw->encodeIds("<e\u0301>").size(), 4u);
}

TEST(TextStream, HoldsBackUnfinishedCharacters) {
  Built t = buildFromJson(smallTokenizer());
  ASSERT_TRUE(t) << t.error;
  rt::TextStream stream(*t.tokenizer, /*skipSpecial=*/true);
  EXPECT_EQ(stream.push('h'), "h");
  EXPECT_EQ(stream.push(0xf0), "");
  EXPECT_EQ(stream.push(0x9f), "");
  EXPECT_EQ(stream.push(262), "");
  EXPECT_EQ(stream.push(0x98), "");
  EXPECT_EQ(stream.push(0x80), "😀");
  EXPECT_EQ(stream.push(0xe2), "");
  EXPECT_EQ(stream.push('x'), "\ufffdx");
  EXPECT_EQ(stream.push(0xff), "\ufffd");
  EXPECT_EQ(stream.push(0xe2), "");
  EXPECT_EQ(stream.finish(), "\ufffd");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Offsets, TrimmingLeavesOutSpaces) {
  Json json = smallTokenizer();
  json["post_processor"] = {
      {"type", "ByteLevel"}, {"trim_offsets", true}, {"add_prefix_space", false}};
  Built t = buildFromJson(json);
  ASSERT_TRUE(t) << t.error;
  EXPECT_THAT(t->encode("x ha \n").offsets,
              ElementsAre(Pair(0, 1), Pair(2, 3), Pair(3, 4), Pair(5, 5), Pair(5, 6)));
  // The space in front of the text is taken for one that add_prefix_space put there.
  json["post_processor"]["add_prefix_space"] = true;
  Built prefix = buildFromJson(json);
  ASSERT_TRUE(prefix) << prefix.error;
  EXPECT_THAT(prefix->encode(" ha").offsets, ElementsAre(Pair(0, 2), Pair(2, 3)));
}

} // namespace tenon::test
