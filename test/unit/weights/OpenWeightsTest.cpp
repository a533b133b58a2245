#include "frontend/weights/OpenWeights.h"
#include "Support.h"
#include "frontend/weights/Gguf.h"
#include "llvm/Support/FileSystem.h"
#include <cstdlib>
#include <map>

using llvm::StringRef;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

namespace tenon::test {
namespace {

const std::string header = R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})";

TEST(OpenWeights, ByContent) {
  TemporaryDirectory directory;
  auto gguf = openWeights(directory.write("x.safetensors", smallGguf().build()));
  ASSERT_TRUE(bool(gguf)) << llvm::toString(gguf.takeError());
  EXPECT_NE(dynamic_cast<GgufFile *>(gguf->get()), nullptr);
  std::string path = directory.write("model.safetensors", safetensors(header, "1234"));
  for (const std::string &name : {path, directory.path()}) {
    auto file = openWeights(name);
    ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
    EXPECT_EQ((*file)->getName(), path);
    EXPECT_NE((*file)->find("a"), nullptr);
  }
  // A header of 0x7b7b... bytes: the ninth byte decides before the first.
  std::string odd = header + std::string(123 - header.size(), ' ');
  EXPECT_EQ(messageOf(openWeights(directory.write("odd", safetensors(odd, "1234")))), "");
}

TEST(OpenWeights, Refusals) {
  TemporaryDirectory directory;
  auto open = [&](StringRef text) { return messageOf(openWeights(directory.write("x", text))); };
  EXPECT_THAT(messageOf(openWeights(directory.path() + "/none")),
              AllOf(HasSubstr("No such file"), HasSubstr("accepted: a GGUF file, a safetensors")));
  EXPECT_THAT(messageOf(openWeights(directory.path())),
              AllOf(HasSubstr("has no weights"), HasSubstr("accepted: a GGUF file")));
  EXPECT_THAT(messageOf(openWeights("/dev/zero")), HasSubstr("not a regular file"));
  EXPECT_THAT(messageOf(openWeights("")), HasSubstr("accepted"));
  EXPECT_THAT(open(""), HasSubstr("is no checkpoint: it starts with ''; accepted: a GGUF"));
  EXPECT_THAT(open("\x7f"
                   "ELF\n"),
              HasSubstr("it starts with '\\x7FELF\\x0A'"));
  EXPECT_THAT(open("GGU"), HasSubstr("is no checkpoint"));
  EXPECT_THAT(open("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("git lfs pull"));
  EXPECT_THAT(open("PK\x03\x04"), HasSubstr("perhaps a PyTorch pickle"));
  EXPECT_THAT(open("{}"), HasSubstr("lacks 'weight_map'"));
}

TEST(OpenWeights, Sha256) {
  TemporaryDirectory directory;
  std::string path = directory.write("x", "abc");
  std::string digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(checkMessage(checkSha256(path, digest)), "");
  EXPECT_EQ(checkMessage(checkSha256(path, StringRef(digest).upper())), "");
  std::string other = "0" + digest.substr(1);
  EXPECT_THAT(checkMessage(checkSha256(path, other)),
              HasSubstr("sha256 is " + digest + "; accepted: " + other));
  for (const std::string &bad : {std::string(), digest + "0", "g" + digest.substr(1)})
    EXPECT_THAT(checkMessage(checkSha256(path, bad)), HasSubstr("accepted: 64 hexadecimal digits"));
  EXPECT_THAT(checkMessage(checkSha256(path + "y", digest)), HasSubstr("cannot read"));
}

TEST(OpenWeights, ShardedOracle) {
  auto opened = openWeights(TENON_ORACLE_DIR "/tiny/llama-fp16-sharded");
  ASSERT_TRUE(bool(opened)) << llvm::toString(opened.takeError());
  StoredWeights &weights = **opened;
  EXPECT_EQ(weights.getTensors().size(), 21u);
  EXPECT_TRUE(weights.getUnreadable().empty());
  for (const TensorInfo &tensor : weights.getTensors()) {
    EXPECT_EQ(tensor.storage, Storage::F16);
    std::vector<float> values(tensor.shape.back());
    for (int64_t row = 0; row < countRows(tensor); ++row) {
      decodeRow(tensor.storage, weights.getRows(tensor, row, 1).data(), values.size(),
                values.data());
      EXPECT_THAT(values, testing::Each(testing::AllOf(testing::Gt(-8.0f), testing::Lt(8.0f))));
    }
  }
  ASSERT_NE(weights.find("model.embed_tokens.weight"), nullptr);
}

TEST(OpenWeights, SmolLM2) {
  const char *cache = std::getenv("TENON_CACHE"), *home = std::getenv("HOME");
  std::string path =
      (cache ? std::string(cache) : std::string(home ? home : "") + "/.cache/tenon") +
      "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!llvm::sys::fs::exists(path))
    GTEST_SKIP() << path << " is not there";
  auto opened = openWeights(path);
  ASSERT_TRUE(bool(opened)) << llvm::toString(opened.takeError());
  GgufFile &file = dynamic_cast<GgufFile &>(**opened);
  std::map<Storage, int> counts;
  for (const TensorInfo &tensor : file.getTensors())
    ++counts[tensor.storage];
  EXPECT_EQ(counts,
            (std::map<Storage, int>{{Storage::Q4_1, 210}, {Storage::F32, 61}, {Storage::Q8_0, 1}}));
  EXPECT_THAT(file.find("token_embd.weight")->shape, ElementsAre(49152, 576));
  EXPECT_THAT(file.find("blk.29.ffn_down.weight")->shape, ElementsAre(576, 1536));
  EXPECT_EQ(file.getInteger("llama.block_count"), 30);
  EXPECT_EQ(file.getStrings("tokenizer.ggml.tokens")->size(), 49152u);
  EXPECT_EQ(file.getStrings("tokenizer.ggml.merges")->size(), 48900u);
  EXPECT_EQ(file.getIntegers("tokenizer.ggml.token_type")->size(), 49152u);

  std::vector<float> gain(576);
  decodeRow(Storage::F32, file.getRows(*file.find("output_norm.weight"), 0, 1).data(), 576,
            gain.data());
  EXPECT_THAT(gain, testing::Each(testing::AllOf(testing::Gt(-100.0f), testing::Lt(100.0f))));
}

} // namespace
} // namespace tenon::test
