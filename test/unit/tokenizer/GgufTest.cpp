// Tokenizers from GGUF metadata.
#include "Support.h"

#include <fstream>
#include <gmock/gmock.h>
#include <unistd.h>

namespace tenon::test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

static Built build(const Metadata &metadata) {
  return Built(buildTokenizerFromGguf(metadata, tokenizersYaml()));
}

TEST(Gguf, SameAsTheTokenizerJson) {
  Metadata metadata = smallMetadata();
  metadata.integers["tokenizer.ggml.eos_token_id"] = 262;
  Built gguf = build(metadata), json = buildFromJson(smallTokenizer());
  ASSERT_TRUE(gguf) << gguf.error;
  std::string text = "hello<|end|> hehell  12\n";
  EXPECT_EQ(gguf->encode(text).ids, json->encode(text).ids);
  EXPECT_EQ(gguf->encode(text).tokens, json->encode(text).tokens);
  EXPECT_EQ(gguf->encode(text).offsets, json->encode(text).offsets);
  EXPECT_EQ(gguf->eos(), 262);
  EXPECT_EQ(gguf->bos(), std::nullopt);
  EXPECT_TRUE(gguf->isSpecial(262));
}

TEST(Gguf, BosAndEos) {
  Metadata metadata = smallMetadata();
  metadata.integers["tokenizer.ggml.bos_token_id"] = 'B';
  metadata.integers["tokenizer.ggml.eos_token_id"] = 'E';
  EXPECT_THAT(build(metadata)->encodeIds("x"), ElementsAre('x'));
  metadata.bools["tokenizer.ggml.add_bos_token"] = true;
  metadata.bools["tokenizer.ggml.add_eos_token"] = true;
  EXPECT_THAT(build(metadata)->encodeIds("x"), ElementsAre('B', 'x', 'E'));
  EXPECT_THAT(build(metadata)->encodeIds("x", false), ElementsAre('x'));
  EXPECT_THAT(build(metadata)->encodePair("x", "y").typeIds, ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(build(metadata)->encodePair("x", "y").ids, ElementsAre('B', 'x', 'E', 'B', 'y', 'E'));
}

TEST(Gguf, PipelinesByName) {
  Metadata metadata = smallMetadata();
  metadata.integers["tokenizer.ggml.bos_token_id"] = 'B';
  auto ids = [&](const char *pre, const std::string &text) {
    metadata.strings["tokenizer.ggml.pre"] = pre;
    Built t = build(metadata);
    EXPECT_TRUE(t) << t.error;
    return t->encode(text).ids;
  };
  EXPECT_THAT(ids("llama-bpe", "he"), ElementsAre('B', 256)); // BOS unless the file says otherwise
  EXPECT_THAT(ids("qwen2", "e\u0301"), ElementsAre(0xc3, 0xa9)); // NFC
  EXPECT_THAT(ids("smollm", "e\u0301"), ElementsAre('e', 0xcc, 0x81));
  metadata.strings.erase("tokenizer.ggml.pre");
  EXPECT_EQ(build(metadata).error, "");
}

TEST(Gguf, EveryPipelineOfTheTableWorks) {
  std::ifstream yaml(tokenizersYaml());
  std::vector<std::string> names;
  bool inTable = false;
  for (std::string line; std::getline(yaml, line);) {
    if (inTable && line.rfind("  ", 0) == 0)
      names.push_back(line.substr(2, line.find(':') - 2));
    else
      inTable = line == "pre_tokenizers:";
  }
  ASSERT_GT(names.size(), 20u);
  for (const std::string &name : names) {
    Metadata metadata = smallMetadata();
    metadata.integers["tokenizer.ggml.bos_token_id"] = 'B';
    metadata.strings["tokenizer.ggml.pre"] = name;
    Built t = build(metadata);
    ASSERT_TRUE(t) << name << ": " << t.error;
    std::string text = "Hello, hello!\n\n  I'm 12345 — 小河流过 \t[x](y)…\r\n  ";
    EXPECT_EQ(t->decode(t->encodeIds(text, false)), text) << name;
  }
}

TEST(Gguf, EachMistakeHasItsMessage) {
  struct Mistake {
    const char *message;
    std::function<void(Metadata &)> make;
  };
  const Mistake mistakes[] = {
      {"has no tokenizer.ggml.model", [](Metadata &m) { m.strings.erase("tokenizer.ggml.model"); }},
      {"tokenizer.ggml.model is 'rwkv'; accepted: gpt2",
       [](Metadata &m) { m.strings["tokenizer.ggml.model"] = "rwkv"; }},
      {"tokenizer.ggml.pre is 'nonsense'; accepted: default, gpt-2, ",
       [](Metadata &m) { m.strings["tokenizer.ggml.pre"] = "nonsense"; }},
      {"has no tokenizer.ggml.tokens",
       [](Metadata &m) { m.stringLists.erase("tokenizer.ggml.tokens"); }},
      {"has no tokenizer.ggml.tokens",
       [](Metadata &m) { m.stringLists["tokenizer.ggml.tokens"].clear(); }},
      {"has no tokenizer.ggml.merges",
       [](Metadata &m) { m.stringLists.erase("tokenizer.ggml.merges"); }},
      {"token_type has 262 entries for 263 tokens",
       [](Metadata &m) { m.integerLists["tokenizer.ggml.token_type"].pop_back(); }},
      {"token_type of token 0 is 9; accepted: 1 to 6",
       [](Metadata &m) { m.integerLists["tokenizer.ggml.token_type"][0] = 9; }},
      {"merge 6 joins 'h' and 'zz', but 'zz' is not in the vocabulary",
       [](Metadata &m) { m.stringLists["tokenizer.ggml.merges"].push_back("h zz"); }},
      {"merge 6 is 'h'",
       [](Metadata &m) { m.stringLists["tokenizer.ggml.merges"].push_back("h"); }},
      {"merge 6 is ''", [](Metadata &m) { m.stringLists["tokenizer.ggml.merges"].push_back(""); }},
      {"bos_token_id is 263; there are 263 tokens",
       [](Metadata &m) { m.integers["tokenizer.ggml.bos_token_id"] = 263; }},
      {"eos_token_id is -1; there are 263 tokens",
       [](Metadata &m) { m.integers["tokenizer.ggml.eos_token_id"] = -1; }},
      {"asks for a BOS token but has no",
       [](Metadata &m) { m.bools["tokenizer.ggml.add_bos_token"] = true; }},
  };
  for (const Mistake &mistake : mistakes) {
    Metadata metadata = smallMetadata();
    mistake.make(metadata);
    std::string error = build(metadata).error;
    EXPECT_THAT(error, HasSubstr(mistake.message));
    EXPECT_THAT(error, testing::StartsWith("hand-made.gguf: error: "));
    EXPECT_THAT(error, Not(HasSubstr("\n")));
  }
}

TEST(Gguf, MistakesInTheTable) {
  std::string path = testing::TempDir() + "tokenizers-" + std::to_string(getpid()) + ".yaml";
  auto error = [&](const std::string &text) {
    std::ofstream(path) << text;
    return Built(buildTokenizerFromGguf(smallMetadata(), path)).error;
  };
  const std::string head = "models: {gpt2: byte-level-bpe}\npre_tokenizers: {gpt-2: g}\n";
  EXPECT_EQ(error(head + "pipelines: {g: {split: [p]}}\npatterns: {p: 'a+'}\n"), "");
  EXPECT_THAT(error("modells: {}\n"), HasSubstr("unknown key 'modells'"));
  EXPECT_THAT(error("models: 3\n"), HasSubstr("'models' must be a map"));
  EXPECT_THAT(error("models: {gpt2: magic}\n"), HasSubstr("'magic'; accepted: byte-level-bpe"));
  EXPECT_THAT(error(head), HasSubstr(":2:25: error: 'g' is not one of 'pipelines'"));
  EXPECT_THAT(error(head + "pipelines: {g: {split: [p]}}\npatterns: {}\n"),
              HasSubstr("'p' is not one of 'patterns'"));
  EXPECT_THAT(error(head + "pipelines: {g: {splitt: [p]}}\n"), HasSubstr("unknown key 'splitt'"));
  EXPECT_THAT(error(head + "pipelines: {g: {}}\n"), HasSubstr("must have a list 'split'"));
  EXPECT_THAT(error(head + "pipelines: {g: {normalise: NFX, split: []}}\n"),
              HasSubstr("'NFX'; accepted: NFC"));
  EXPECT_THAT(error(head + "pipelines: {g: {split: [], add_bos: 1}}\n"),
              HasSubstr("add_bos must be true or false"));
  EXPECT_THAT(error(head + "pipelines: {g: {split: [p]}}\npatterns: {p: '[a&&b]'}\n"),
              HasSubstr("intersection"));
  EXPECT_THAT(error(head + "pipelines: {g: {split: [p]}}\npatterns: {p: '(a'}\n"),
              HasSubstr("is not a regular expression"));
  std::remove(path.c_str());
}

} // namespace tenon::test
