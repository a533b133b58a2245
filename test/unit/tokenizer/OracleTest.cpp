// Every golden vector of the byte-level vocabularies, exactly.
#include "Support.h"

#include "frontend/weights/Gguf.h"
#include "runtime/tokenizer/TextStream.h"

#include <fstream>

namespace tenon::test {

using Offsets = std::vector<std::pair<int32_t, int32_t>>;
using Ids = std::vector<int32_t>;

static std::string streamed(const rt::Tokenizer &tokenizer, const Ids &ids) {
  rt::TextStream stream(tokenizer);
  std::string text;
  for (int32_t id : ids)
    text += stream.push(id);
  return text + stream.finish();
}

/// What all cases have.
static void checkText(const rt::Tokenizer &tokenizer, const Json &c) {
  std::string text = c["text"];
  Ids ids = tokenizer.encodeIds(text);
  EXPECT_EQ(ids, c["ids"].get<Ids>());
  EXPECT_EQ(tokenizer.encode(text).ids, ids);
  EXPECT_EQ(tokenizer.decode(ids, false), c["decoded"].get<std::string>());
  EXPECT_EQ(tokenizer.decode(ids, true), c["decoded_skip_special"].get<std::string>());
  EXPECT_EQ(tokenizer.decode(tokenizer.encodeIds(text, false)) == text, c["roundtrip"].get<bool>());
  EXPECT_EQ(streamed(tokenizer, ids), tokenizer.decode(ids, false));
}

class OracleTest : public testing::TestWithParam<const char *> {};

TEST_P(OracleTest, AllCases) {
  std::string folder = oracle("tokenizers/") + GetParam();
  Built built(buildTokenizerFromJson(folder + "/tokenizer.json"));
  ASSERT_TRUE(built) << built.error;
  Json vectors = readJson(folder + "/vectors.json");
  EXPECT_EQ(built->vocabSize(), vectors["vocab_size"].get<int32_t>());
  ASSERT_EQ(vectors["cases"].size(), 75u);
  for (const Json &c : vectors["cases"]) {
    SCOPED_TRACE(c["text"].dump());
    checkText(*built.tokenizer, c);
    std::string text = c["text"];
    rt::Encoding encoding = built->encode(text);
    EXPECT_EQ(encoding.tokens, c["tokens"].get<std::vector<std::string>>());
    EXPECT_EQ(encoding.offsets, c["offsets"].get<Offsets>());
    EXPECT_EQ(built->encodeIds(text, false), c["ids_no_special"].get<Ids>());
    EXPECT_EQ(built->encode(text, false).ids, c["ids_no_special"].get<Ids>());
  }
  ASSERT_FALSE(vectors["pairs"].empty());
  for (const Json &c : vectors["pairs"]) {
    SCOPED_TRACE(c.dump());
    rt::Encoding pair = built->encodePair(c["a"].get<std::string>(), c["b"].get<std::string>());
    EXPECT_EQ(pair.ids, c["ids"].get<Ids>());
    EXPECT_EQ(pair.typeIds, c["type_ids"].get<Ids>());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, OracleTest,
                         testing::Values("bpe-bytelevel", "bpe-bytelevel-prefix", "bpe-smollm",
                                         "bpe-llama3", "bpe-qwen2"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

static void checkSmolLM2(const Built &built) {
  ASSERT_TRUE(built) << built.error;
  EXPECT_EQ(built->vocabSize(), 49152);
  Json cases = readJson(oracle("smollm2/tokenization.json"))["cases"];
  ASSERT_EQ(cases.size(), 164u);
  for (const Json &c : cases) {
    SCOPED_TRACE(c["text"].dump());
    checkText(*built.tokenizer, c);
  }
}

TEST(SmolLM2, FromTokenizerJson) {
  checkSmolLM2(Built(buildTokenizerFromJson(oracle("smollm2/tokenizer.json"))));
}

static std::string modelFile() {
  const char *home = std::getenv("HOME");
  return std::string(home ? home : "") + "/.cache/tenon/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

static Built fromModelFile() {
  llvm::Expected<std::unique_ptr<GgufFile>> file = GgufFile::open(modelFile());
  return Built(file ? buildTokenizerFromGguf(**file, tokenizersYaml())
                    : llvm::Expected<std::vector<uint8_t>>(file.takeError()));
}

TEST(SmolLM2, FromGguf) {
  if (!std::ifstream(modelFile()))
    GTEST_SKIP() << modelFile() << " is missing: scripts/install-deps.sh fetches it";
  Built built = fromModelFile();
  checkSmolLM2(built);
  EXPECT_EQ(built->bos(), 1);
  EXPECT_EQ(built->eos(), 2);
}

TEST(SmolLM2, BothFilesAgreeOnAllBytes) {
  if (!std::ifstream(modelFile()))
    GTEST_SKIP() << modelFile() << " is missing: scripts/install-deps.sh fetches it";
  Built gguf = fromModelFile();
  Built json(buildTokenizerFromJson(oracle("smollm2/tokenizer.json")));
  ASSERT_TRUE(gguf) << gguf.error;
  ASSERT_TRUE(json) << json.error;
  for (int32_t id = 0; id < json->vocabSize(); ++id)
    ASSERT_EQ(gguf->bytes(id), json->bytes(id)) << id;
  std::ifstream file(oracle("smollm2/perplexity_text.txt"));
  std::string text(std::istreambuf_iterator<char>(file), {});
  ASSERT_GT(text.size(), 6000u);
  EXPECT_EQ(gguf->encodeIds(text), json->encodeIds(text));
}

} // namespace tenon::test
