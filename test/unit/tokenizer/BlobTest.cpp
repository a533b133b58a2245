// Damaged blobs: one clear error, never undefined behaviour (run this with the sanitizers).
#include "Support.h"

#include "runtime/tokenizer/Blob.h"

#include <gmock/gmock.h>
#include <random>

namespace tenon::test {

using namespace rt::blob;
using testing::HasSubstr;
using testing::Not;

static std::string openError(const void *data, size_t bytes) {
  try {
    rt::Tokenizer::open(data, bytes);
    return "";
  } catch (const rt::TokenizerError &error) {
    return error.what();
  }
}
static std::string openError(const std::vector<uint8_t> &blob) {
  return openError(blob.data(), blob.size());
}

class BlobTest : public testing::Test {
protected:
  void SetUp() override {
    Json json = smallTokenizer();
    json["normalizer"] = {{"type", "NFC"}};
    json["added_tokens"][0]["normalized"] = true;
    Built t = buildFromJson(json);
    ASSERT_TRUE(t) << t.error;
    blob = t.blob;
  }
  Header &header() { return *reinterpret_cast<Header *>(blob.data()); }
  template <typename T> T *section(Section index) {
    return reinterpret_cast<T *>(blob.data() + header().sections[index].offset);
  }

  std::vector<uint8_t> blob;
};

TEST_F(BlobTest, EachKindOfDamageHasItsMessage) {
  struct Damage {
    const char *message;
    std::function<void()> make;
  };
  const Damage cases[] = {
      {"does not start with TENONTOK", [&] { header().magic[0] = 'X'; }},
      {"has format version 99; this runtime reads version 1", [&] { header().version = 99; }},
      {"its header says", [&] { ++header().bytes; }},
      {"model kind 77", [&] { header().model = rt::blob::Model(77); }},
      {"special token's id", [&] { header().bos = 263; }},
      {"special token's id", [&] { header().unknown = -2; }},
      {"'strings' does not fit", [&] { header().sections[Strings].bytes = UINT64_MAX; }},
      {"'split' does not fit", [&] { header().sections[Split].offset = UINT64_MAX - 7; }},
      {"'pair' does not fit", [&] { header().sections[Pair].offset += 4; }},
      {"token tables differ", [&] { header().sections[rt::blob::TokenFlags].bytes -= 1; }},
      {"outside the strings", [&] { section<uint32_t>(TokenOffsets)[5] = 1u << 30; }},
      {"outside the strings", [&] { section<uint32_t>(TokenOffsets)[263] = 1u << 30; }},
      {"added token's id", [&] { section<AddedToken>(AddedTokens)->id = 263; }},
      {"children are out of range", [&] { section<TrieNode>(NormalTrie)->firstChild = 0; }},
      {"children are out of range", [&] { section<TrieNode>(NormalTrie)->children = 60000; }},
      {"trie's token is out of range", [&] { section<TrieNode>(NormalTrie)->added = 1; }},
      {"step's text", [&] { section<Step>(Split)->text.bytes = UINT64_MAX; }},
      {"unknown way to normalise", [&] { section<Step>(Normalise)->kind = StepKind::Regex; }},
      {"unknown way to split", [&] { section<Step>(Split)->kind = StepKind::Nfc; }},
      {"template's token", [&] { section<TemplateItem>(Single)->what = -3; }},
      {"template's token", [&] { section<TemplateItem>(Pair)->what = 263; }},
      {"token_hash is broken",
       [&] {
         size_t n = header().sections[TokenHash].bytes / sizeof(TokenSlot);
         for (size_t i = 0; i < n; ++i)
           section<TokenSlot>(TokenHash)[i] = {0, 0};
       }},
      {"merge_hash is broken",
       [&] {
         size_t n = header().sections[MergeHash].bytes / sizeof(MergeSlot);
         for (size_t i = 0; i < n; ++i)
           section<MergeSlot>(MergeHash)[i] = {0, 0, 0, 0};
       }},
  };
  const std::vector<uint8_t> sound = blob;
  ASSERT_EQ(openError(blob), "");
  for (const Damage &damage : cases) {
    blob = sound;
    damage.make();
    std::string error = openError(blob);
    EXPECT_THAT(error, HasSubstr(damage.message));
    EXPECT_THAT(error, Not(HasSubstr("\n")));
  }
}

TEST_F(BlobTest, EveryTruncationIsRefused) {
  for (size_t bytes = 0; bytes < blob.size(); ++bytes) {
    // An exact copy, so that a read beyond the end is seen.
    std::vector<uint8_t> shorter(blob.begin(), blob.begin() + bytes);
    EXPECT_NE(openError(shorter), "");
    if (bytes < sizeof(Header))
      continue;
    reinterpret_cast<Header *>(shorter.data())->bytes = bytes;
    openError(shorter); // may be sound, must not read beyond
  }
}

TEST_F(BlobTest, MisalignedBlobsAreRefused) {
  std::vector<uint8_t> moved(blob.size() + 1);
  std::copy(blob.begin(), blob.end(), moved.begin() + 1);
  EXPECT_THAT(openError(moved.data() + 1, blob.size()), HasSubstr("not aligned"));
}

TEST_F(BlobTest, RandomDamageNeverCrashes) {
  std::mt19937 random(1);
  const std::vector<uint8_t> sound = blob;
  const std::string text = "hello <|end|> e\u0301 \u212b 12 hehellooo   x" + std::string(80, 'h');
  int opened = 0;
  for (int round = 0; round < 20000; ++round) {
    blob = sound;
    for (int n = 1 + random() % 4; n > 0; --n) {
      // Half of the damage goes to the header and the pipeline, where it does most.
      size_t at = random() % 2 ? random() % sizeof(Header) : random() % blob.size();
      blob[at] = random() % 2 ? random() : blob[at] ^ (1u << random() % 8);
    }
    try {
      rt::Tokenizer t = rt::Tokenizer::open(blob.data(), blob.size());
      ++opened;
      rt::Encoding encoding = t.encode(text);
      t.encodePair(text, "x");
      t.decode(encoding.ids, true);
      t.find("hello");
    } catch (const rt::TokenizerError &) {
    }
  }
  EXPECT_GT(opened, 1000);
}

} // namespace tenon::test
