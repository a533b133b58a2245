// tokenizer.json files that are wrong, or ask for what is not there: one line that says what and
// where.
#include "Support.h"

#include <fstream>
#include <gmock/gmock.h>

namespace tenon::test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

static auto isRefusal(const std::string &message) {
  return AllOf(StartsWith("FILE: error: "), HasSubstr(message), Not(HasSubstr("\n")));
}

TEST(Json, EachMistakeHasItsMessage) {
  struct Mistake {
    const char *pointer, *value, *message;
  };
  const Mistake mistakes[] = {
      {"/model/type", R"("Unigram")", "model.type is 'Unigram'; supported: BPE"},
      {"/model/type", "3", "model.type must be a string"},
      {"/model", "[]", "model must be an object"},
      {"/model/vocab", "[]", "model.vocab must be an object"},
      {"",
       R"({"model": {"type": "BPE", "vocab": {}, "merges": []}, "pre_tokenizer": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"}})",
       "the vocabulary is empty"},
      {"/model/vocab/h", "-1", "model.vocab['h'] must be a whole number below 4194304"},
      {"/model/vocab/h", "4194304", "model.vocab['h'] must be a whole number below 4194304"},
      {"/model/vocab/h", "1e3", "model.vocab['h'] must be a whole number"},
      {"/model/vocab/h", "101", "gives the id 101 to both 'e' and 'h'"},
      {"/model/merges", R"([["h"]])", "model.merges[0] must have two tokens"},
      {"/model/merges", R"([["h", 1]])", "model.merges[0][1] must be a string"},
      {"/model/merges", R"(["h e l"])", "merge 0 is 'h e l'"},
      {"/model/merges", R"(["h x"])",
       "merge 0 joins 'h' and 'x', but 'hx' is not in the vocabulary"},
      {"/model/byte_fallback", "true", "model.byte_fallback is true"},
      {"/model/end_of_word_suffix", R"("</w>")", "model.end_of_word_suffix is '</w>'"},
      {"/model/unk_token", R"("<unk>")",
       "model.unk_token is '<unk>', which is not in the vocabulary"},
      {"/model/fuse_unk", "1", "model.fuse_unk must be true or false"},
      {"/added_tokens/0/id", "7", "added_tokens[0] gives '<|end|>' the id 7, which is 'ć' in"},
      {"/added_tokens/0/id", "4194304", "added_tokens[0].id must be a whole number below"},
      {"/added_tokens/0/content", "null", "added_tokens[0].content must be a string"},
      {"/added_tokens", "{}", "added_tokens must be a list"},
      {"/normalizer", R"({"type": "Lowercase"})",
       "normalizer has type 'Lowercase'; supported: NFC"},
      {"/normalizer", "{}", "normalizer has no 'type'"},
      {"/pre_tokenizer", "null", "pre_tokenizer has no 'ByteLevel'"},
      {"/pre_tokenizer", R"({"type": "Metaspace"})",
       "pre_tokenizer has type 'Metaspace'; supported: "},
      {"/pre_tokenizer",
       R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Digits"}]})",
       "pre_tokenizer.pretokenizers[1] ('Digits') comes after 'ByteLevel'"},
      {"/pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Gone"})",
       "pre_tokenizer.behavior is 'Gone'; supported: Isolated"},
      {"/pre_tokenizer",
       R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"}, {"type": "ByteLevel"}]})",
       "'(a' is not a regular expression: missing closing parenthesis at byte 2"},
      {"/post_processor", R"({"type": "Magic"})",
       "post_processor has type 'Magic'; supported: Bert"},
      {"/post_processor",
       R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "C", "type_id": 0}}], "pair": [], "special_tokens": {}})",
       "post_processor.single[0].Sequence.id is 'C'; accepted: A, B"},
      {"/post_processor",
       R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}], "pair": [], "special_tokens": {}})",
       "post_processor.special_tokens has no '<s>'"},
      {"/post_processor",
       R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "s", "type_id": 0}}], "pair": [], "special_tokens": {"s": {"ids": [263]}}})",
       "post_processor.special_tokens.s.ids[0] must be a whole number below 263"},
      {"/decoder", R"({"type": "WordPiece"})",
       "decoder has type 'WordPiece'; supported: ByteLevel"},
      {"/decoder", "null", "decoder is missing"},
  };
  for (const Mistake &mistake : mistakes) {
    Json json = smallTokenizer();
    json[Json::json_pointer(mistake.pointer)] = Json::parse(mistake.value);
    EXPECT_THAT(buildFromJson(json).error, isRefusal(mistake.message)) << mistake.pointer;
  }
}

TEST(Json, NotATokenizer) {
  EXPECT_THAT(buildFromText("").error, isRefusal("parse error at line 1, column 1"));
  EXPECT_THAT(buildFromText("{").error, isRefusal("parse error"));
  EXPECT_THAT(buildFromText("[]").error, isRefusal("must be an object"));
  EXPECT_THAT(buildFromText("{}").error, isRefusal("has no 'model'"));
  std::string notUtf8 = buildFromText("{\"a\": \"\xff\"}").error;
  EXPECT_THAT(notUtf8, isRefusal("ill-formed UTF-8"));
  EXPECT_THAT(notUtf8, Not(HasSubstr("\xff")));
  EXPECT_THAT(buildFromText(std::string("\x00\x01", 2)).error, isRefusal("parse error"));
  EXPECT_THAT(buildFromText(std::string(1 << 20, '[')).error, isRefusal("parse error"));
  EXPECT_THAT(buildFromText(std::string(1 << 20, '[') + std::string(1 << 20, ']')).error,
              isRefusal("must be an object"));
}

TEST(Json, EveryTruncationIsRefused) {
  std::string text = smallTokenizer().dump();
  for (size_t bytes = 0; bytes < text.size(); bytes += 13)
    EXPECT_NE(buildFromText(text.substr(0, bytes)).error, "");
}

TEST(Json, UnreadableFiles) {
  auto error = [](const std::string &path) { return Built(buildTokenizerFromJson(path)).error; };
  EXPECT_EQ(error("/nowhere/tokenizer.json"),
            "/nowhere/tokenizer.json: error: cannot read: No such file or directory");
  EXPECT_THAT(error("/"), HasSubstr("not a file"));
}

TEST(Json, DeepSequencesAreFollowed) {
  Json json = smallTokenizer();
  for (int i = 0; i < 3; ++i)
    json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {json["pre_tokenizer"]}}};
  EXPECT_EQ(buildFromJson(json).error, "");
  for (int i = 0; i < 100; ++i)
    json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {json["pre_tokenizer"]}}};
  EXPECT_THAT(buildFromJson(json).error, isRefusal("nested deeper"));
}

TEST(Json, TokensOutsideTheByteAlphabetAreKeptButNotProduced) {
  Json json = smallTokenizer();
  json["model"]["vocab"].erase("hello");
  json["model"]["merges"].erase(3);
  json["model"]["vocab"]["小"] = 259;
  Built t = buildFromJson(json);
  ASSERT_TRUE(t) << t.error;
  EXPECT_THAT(t->encodeIds("小"), ElementsAre(0xe5, 0xb0, 0x8f));
  EXPECT_EQ(t->decode({259}), "小");
  EXPECT_EQ(t->token(259), "小");
}

TEST(Json, MissingBytes) {
  Json json = smallTokenizer();
  json["model"]["vocab"].erase("z");
  Built dropping = buildFromJson(json);
  ASSERT_TRUE(dropping) << dropping.error;
  EXPECT_THAT(dropping->encodeIds("azzb"), ElementsAre('a', 'b'));
  json["model"]["unk_token"] = "?";
  EXPECT_THAT(buildFromJson(json)->encodeIds("azzb"), ElementsAre('a', '?', '?', 'b'));
  json["model"]["fuse_unk"] = true;
  EXPECT_THAT(buildFromJson(json)->encodeIds("azzb?"), ElementsAre('a', '?', 'b', '?'));
}

TEST(Json, AnUnreachableTokenIsNotProducedForItsOwnText) {
  // "lla" is a token, but no merge makes it; with ignore_merges it is one all the same.
  Json json = smallTokenizer();
  json["model"]["vocab"]["lla"] = 263;
  Built merging = buildFromJson(json);
  ASSERT_TRUE(merging) << merging.error;
  EXPECT_THAT(merging->encodeIds("lla"), ElementsAre(257, 'a'));
  json["model"]["ignore_merges"] = true;
  EXPECT_THAT(buildFromJson(json)->encodeIds("lla llab"), ElementsAre(263, ' ', 257, 'a', 'b'));
}

TEST(Json, RobertaAndBertTemplates) {
  Json json = smallTokenizer();
  json["post_processor"] = {{"type", "RobertaProcessing"},
                            {"sep", {"b", 'b'}},
                            {"cls", {"a", 'a'}},
                            {"trim_offsets", false},
                            {"add_prefix_space", true}};
  Built roberta = buildFromJson(json);
  ASSERT_TRUE(roberta) << roberta.error;
  EXPECT_THAT(roberta->encodeIds("x"), ElementsAre('a', 'x', 'b'));
  EXPECT_THAT(roberta->encodePair("x", "y").ids, ElementsAre('a', 'x', 'b', 'b', 'y', 'b'));
  EXPECT_THAT(roberta->encodePair("x", "y").typeIds, ElementsAre(0, 0, 0, 0, 0, 0));
  json["post_processor"]["type"] = "BertProcessing";
  EXPECT_THAT(buildFromJson(json)->encodePair("x", "y").typeIds, ElementsAre(0, 0, 0, 1, 1));
}

} // namespace tenon::test
