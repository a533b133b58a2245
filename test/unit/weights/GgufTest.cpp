#include "frontend/weights/Gguf.h"
#include "Support.h"

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;

namespace tenon::test {
namespace {

llvm::Expected<std::unique_ptr<GgufFile>> read(const Bytes &bytes) {
  return GgufFile::read(bytes.map());
}
std::string messageOf(const std::string &file) { return test::messageOf(read(Bytes(file))); }

class Small : public testing::Test {
protected:
  void SetUp() override {
    auto result = read(bytes);
    ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
    file = std::move(*result);
  }
  Bytes bytes{smallGguf().build()};
  std::unique_ptr<GgufFile> file;
};

TEST_F(Small, Tensors) {
  ASSERT_EQ(file->getTensors().size(), 2u);
  const TensorInfo &matrix = file->getTensors()[0], &vector = file->getTensors()[1];
  EXPECT_EQ(matrix.name, "matrix");
  EXPECT_THAT(matrix.shape, ElementsAre(3, 32)); // outermost first
  EXPECT_EQ(matrix.storage, Storage::Q4_1);
  EXPECT_THAT(vector.shape, ElementsAre(5));
  EXPECT_EQ(vector.storage, Storage::F32);
  EXPECT_EQ(file->find("vector"), &vector);
  EXPECT_EQ(file->find("vectors"), nullptr);
  EXPECT_EQ(file->explain("vector"), "");

  llvm::ArrayRef<uint8_t> rows = file->getRows(matrix, 1, 2);
  ASSERT_EQ(rows.size(), 40u);
  EXPECT_EQ(rows.front(), 20);
  EXPECT_EQ(rows.back(), 59);
  ASSERT_EQ(file->getRows(vector, 0, 1).size(), 20u);
  EXPECT_EQ(file->getRows(vector, 0, 1).front(), 64);
  EXPECT_TRUE(file->getRows(matrix, 3, 0).empty());
}

TEST_F(Small, Metadata) {
  EXPECT_EQ(file->fileName(), "file");
  EXPECT_THAT(file->getInteger("u8"), Optional(200));
  EXPECT_THAT(file->getInteger("i8"), Optional(-100));
  EXPECT_THAT(file->getInteger("u16"), Optional(60000));
  EXPECT_THAT(file->getInteger("i16"), Optional(-30000));
  EXPECT_THAT(file->getInteger("u32"), Optional(4000000000));
  EXPECT_THAT(file->getInteger("i32"), Optional(-2000000000));
  EXPECT_THAT(file->getInteger("i64"), Optional(INT64_MIN));
  EXPECT_EQ(file->getInteger("u64"), std::nullopt); // 2^64 - 1
  EXPECT_THAT(file->getFloat("f32"), Optional(1.5));
  EXPECT_THAT(file->getFloat("f64"), Optional(0.1));
  EXPECT_THAT(file->getBool("bool"), Optional(true));
  EXPECT_EQ(file->getString("string"), llvm::StringRef("text"));
  EXPECT_THAT(file->getStrings("strings"), Optional(ElementsAre("a", "", "bc")));
  EXPECT_THAT(file->getStrings("nothing"), Optional(ElementsAre()));
  EXPECT_THAT(file->getIntegers("integers"), Optional(ElementsAre(-1, 7)));
  EXPECT_THAT(file->getFloats("floats"), Optional(ElementsAre(0.5, -2.0)));
  EXPECT_THAT(file->findValue("bools")->asBools(), Optional(ElementsAre(true, false)));
  EXPECT_EQ(file->getValues().size(), 17u);
  EXPECT_EQ(file->getValues()[12].getKey(), "strings");
  EXPECT_EQ(file->getValues()[12].size(), 3u);
  EXPECT_EQ(file->findValue("none"), nullptr);
}

TEST_F(Small, EachGetterHasOneKind) {
  for (const GgufValue &value : file->getValues()) {
    int answers = value.asString().has_value() + value.asBool().has_value() +
                  value.asInteger().has_value() + value.asFloat().has_value() +
                  value.asStrings().has_value() + value.asBools().has_value() +
                  value.asIntegers().has_value() + value.asFloats().has_value();
    EXPECT_EQ(answers, value.getKey() == "u64" ? 0 : 1) << value.getKey().str();
  }
}

TEST(Gguf, Version2AndAlignment) {
  GgufBuilder file = smallGguf();
  file.version = 2;
  EXPECT_EQ(messageOf(file.build()), "");
  file.alignment = 64;
  file.addKey("general.alignment", 4, number<uint32_t>(64));
  Bytes bytes(file.build());
  auto result = read(bytes);
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  EXPECT_EQ((*result)->getRows(*(*result)->find("vector"), 0, 1).front(), 64);
  file.keys.back() =
      GgufBuilder::string("general.alignment") + number<uint32_t>(4) + number<uint32_t>(48);
  EXPECT_THAT(messageOf(file.build()), HasSubstr("general.alignment is 48; accepted: a power"));
  file.keys.back() =
      GgufBuilder::string("general.alignment") + number<uint32_t>(8) + GgufBuilder::string("64");
  EXPECT_THAT(messageOf(file.build()), HasSubstr("general.alignment is 0"));
}

TEST(Gguf, NoTensors) {
  GgufBuilder file;
  EXPECT_EQ(messageOf(file.build()), "");
  EXPECT_EQ(messageOf(file.build().substr(0, 24)), ""); // without padding
}

TEST(Gguf, AnUnknownTypeSpoilsOnlyItsTensor) {
  GgufBuilder file = smallGguf();
  file.addTensor("new", {7, 3}, 39, 32);
  Bytes bytes(file.build());
  auto result = read(bytes);
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  EXPECT_EQ((*result)->getTensors().size(), 2u);
  EXPECT_EQ((*result)->find("new"), nullptr);
  EXPECT_THAT((*result)->explain("new").str(),
              AllOf(HasSubstr("tensor 'new' has type 39 (entry at byte "),
                    HasSubstr("accepted: 0 (f32), 1 (f16), 30 (bf16), 2 (q4_0)")));
  ASSERT_EQ((*result)->getUnreadable().size(), 1u);
  EXPECT_EQ((*result)->getUnreadable()[0].name, "new");
}

TEST(Gguf, WrongStarts) {
  EXPECT_THAT(messageOf(""), HasSubstr("file: error: at byte 0: the magic number needs 4 bytes"));
  EXPECT_THAT(messageOf("GGML" + std::string(60, '\0')), HasSubstr("'GGML'; accepted: 'GGUF'"));
  GgufBuilder file = smallGguf();
  file.version = 1;
  EXPECT_THAT(messageOf(file.build()), HasSubstr("at byte 4: GGUF version is 1; accepted: 2, 3"));
  file.version = 4;
  EXPECT_THAT(messageOf(file.build()), HasSubstr("GGUF version is 4"));
  file.version = 0x03000000;
  EXPECT_THAT(messageOf(file.build()), HasSubstr("big-endian; accepted: little-endian"));
}

TEST(Gguf, HugeCounts) {
  for (uint64_t count : {uint64_t(1) << 60, UINT64_MAX, uint64_t(1) << 32}) {
    GgufBuilder file = smallGguf();
    file.tensorCount = count;
    EXPECT_THAT(messageOf(file.build()),
                AllOf(HasSubstr("at byte 8: "), HasSubstr(std::to_string(count) + " tensors")));
    file = smallGguf();
    file.keyCount = count;
    EXPECT_THAT(messageOf(file.build()), HasSubstr(std::to_string(count) + " metadata keys"));
    file = smallGguf();
    file.addKey("long", 8, number(count) + "abc");
    EXPECT_THAT(messageOf(file.build()), HasSubstr("string 0 of 'long' has"));
    file = smallGguf();
    for (uint32_t type : {0, 6, 8, 12}) {
      file.keys.resize(17);
      file.addKey("many", 9, number(type) + number(count));
      EXPECT_THAT(messageOf(file.build()),
                  HasSubstr("'many' has " + std::to_string(count) + " elements"));
    }
    file = smallGguf();
    file.keys[0] = number(count) + "key";
    EXPECT_THAT(messageOf(file.build()), HasSubstr("metadata key 0 needs"));
    file = smallGguf();
    file.tensors[1] = number(count) + "name";
    EXPECT_NE(messageOf(file.build()), "");
  }
}

TEST(Gguf, WrongMetadata) {
  GgufBuilder file = smallGguf();
  file.addKey("f32", 4, number<uint32_t>(1));
  EXPECT_THAT(messageOf(file.build()), HasSubstr("metadata key 'f32' occurs twice"));
  file.keys.pop_back();
  file.addKey("odd", 13, "");
  EXPECT_THAT(messageOf(file.build()), HasSubstr("'odd' has type 13; accepted: 0 to 12"));
  file.keys.pop_back();
  file.addKey("nested", 9, number<uint32_t>(9) + number<uint64_t>(1));
  EXPECT_THAT(messageOf(file.build()), HasSubstr("'nested' has elements of type 9; accepted"));
  file.keys.pop_back();
  file.addKey(std::string(5000, 'k') + "\n", 99, "");
  EXPECT_THAT(messageOf(file.build()), HasSubstr("kkk...' has type 99"));
  file.keys.pop_back();
  file.addKey("a\nb", 99, "");
  EXPECT_THAT(messageOf(file.build()), HasSubstr("'a\\x0Ab' has type 99"));
}

TEST(Gguf, WrongTensors) {
  auto with = [](std::vector<uint64_t> sizes, uint32_t type, uint64_t offset) {
    GgufBuilder file = smallGguf();
    file.addTensor("t", std::move(sizes), type, offset);
    file.data.resize(256);
    return messageOf(file.build());
  };
  EXPECT_EQ(with({2}, 0, 96), "");
  EXPECT_THAT(with({}, 0, 96), HasSubstr("'t' has 0 dimensions; accepted: 1 to 4"));
  EXPECT_THAT(with({1, 1, 1, 1, 1}, 0, 96), HasSubstr("'t' has 5 dimensions"));
  EXPECT_THAT(with({0}, 0, 96), HasSubstr("'t' has a dimension of 0; accepted: 1 and more"));
  EXPECT_THAT(with({4, 0}, 0, 96), HasSubstr("dimension of 0"));
  EXPECT_THAT(with({UINT64_MAX}, 0, 96), HasSubstr("dimension of 18446744073709551615"));
  EXPECT_THAT(with({1u << 31, 1u << 31, 4}, 0, 96), HasSubstr("product is below 2^63"));
  EXPECT_THAT(with({1u << 31, 1u << 31}, 99, 96), ""); // not ours to measure
  EXPECT_THAT(with({1u << 31, 1u << 31, 1}, 0, 96), HasSubstr("below 2^63 bytes in all"));
  EXPECT_THAT(with({uint64_t(1) << 60}, 0, 96), HasSubstr("needs 4611686018427387904 bytes"));
  EXPECT_THAT(with({31}, 3, 96),
              HasSubstr("'t' of type q4_1 has shape [31]; accepted: rows of a multiple of 32"));
  EXPECT_THAT(with({128, 2}, 14, 96), HasSubstr("multiple of 256"));
  EXPECT_THAT(with({2}, 0, 97), HasSubstr("offset 97; accepted: multiples of 32"));
  EXPECT_THAT(with({2}, 0, 288), HasSubstr("offset 288 of 256 bytes of data"));
  EXPECT_THAT(with({1}, 0, 256), HasSubstr("needs 4 bytes at offset 256 of 256"));
  EXPECT_THAT(with({2}, 0, uint64_t(0) - 32), HasSubstr("offset 18446744073709551584 of 256"));
  EXPECT_THAT(with({2}, 99, uint64_t(0) - 32), HasSubstr("offset 18446744073709551584 of 256"));
  EXPECT_THAT(with({2}, 0, 64), HasSubstr("the data of two tensors overlap"));
  EXPECT_THAT(with({64}, 0, 0), HasSubstr("overlap"));

  GgufBuilder file = smallGguf();
  file.addTensor("matrix", {1}, 0, 96);
  file.data.resize(256);
  EXPECT_THAT(messageOf(file.build()), HasSubstr("tensor 'matrix' occurs twice"));
  file.tensors.pop_back();
  file.addTensor("matrix", {1}, 99, 96);
  EXPECT_THAT(messageOf(file.build()), HasSubstr("tensor 'matrix' occurs twice"));
  std::swap(file.tensors.front(), file.tensors.back());
  EXPECT_THAT(messageOf(file.build()), HasSubstr("tensor 'matrix' occurs twice"));
}

// Every type at every width near its block's, and with every number of missing bytes.
TEST(Gguf, SizesOfBlocks) {
  const std::pair<uint32_t, const char *> types[] = {
      {2, "q4_0"},  {3, "q4_1"},  {6, "q5_0"},  {7, "q5_1"},  {8, "q8_0"},   {10, "q2_k"},
      {11, "q3_k"}, {12, "q4_k"}, {13, "q5_k"}, {14, "q6_k"}, {20, "iq4_nl"}};
  for (auto [type, name] : types) {
    SCOPED_TRACE(name);
    const StorageInfo &info = getStorageInfo(*parseStorage(name));
    const uint64_t block = info.valuesPerBlock;
    for (uint64_t width = 1; width <= 2 * block + 1; ++width) {
      GgufBuilder file;
      file.addTensor("t", {width, 3}, type, 0);
      file.data.resize(6 * info.bytesPerBlock);
      if (width % block)
        ASSERT_THAT(messageOf(file.build()),
                    HasSubstr("'t' of type " + std::string(name) + " has shape [3, " +
                              std::to_string(width) + "]; accepted: rows of a multiple of " +
                              std::to_string(block)));
      else
        ASSERT_EQ(messageOf(file.build()), "");
    }
    for (int64_t present = 0; present <= 3 * info.bytesPerBlock; ++present) {
      GgufBuilder file;
      file.addTensor("t", {block, 3}, type, 0);
      file.data.resize(present);
      if (present < 3 * info.bytesPerBlock)
        ASSERT_THAT(messageOf(file.build()), HasSubstr("is the file cut short?"));
      else
        ASSERT_EQ(messageOf(file.build()), "");
    }
  }
}

// Every prefix of a good file is refused, and says so.
TEST(Gguf, Truncated) {
  std::string file = smallGguf().build();
  for (size_t size = 0; size < file.size(); ++size)
    ASSERT_THAT(messageOf(file.substr(0, size)), HasSubstr("file: error: at byte ")) << size;
}

} // namespace
} // namespace tenon::test
