#include "frontend/weights/Safetensors.h"
#include "Support.h"

using llvm::StringRef;
using testing::ElementsAre;
using testing::HasSubstr;

namespace tenon::test {
namespace {

const std::string data = "0123456789abcdef";

llvm::Expected<std::unique_ptr<Safetensors>> read(const Bytes &bytes) {
  return Safetensors::readFile(bytes.map());
}
std::string messageOf(StringRef header, StringRef data = test::data) {
  return test::messageOf(read(Bytes(safetensors(header, data))));
}
std::string indexMessageOf(StringRef index) {
  Bytes bytes(index);
  return test::messageOf(Safetensors::readIndex(bytes.map()));
}

TEST(Safetensors, Tensors) {
  Bytes bytes(safetensors(R"({"__metadata__": {"format": "pt", "x": "y"},
      "b": {"dtype": "F16", "shape": [2, 3], "data_offsets": [4, 16]},
      "a": {"data_offsets": [0, 2], "shape": [], "dtype": "BF16"},
      "ids": {"dtype": "I16", "shape": [1], "data_offsets": [2, 4]},
      "none": {"dtype": "F32", "shape": [0, 4], "data_offsets": [4, 4]}}   )",
                          data));
  auto opened = read(bytes);
  ASSERT_TRUE(bool(opened)) << llvm::toString(opened.takeError());
  Safetensors &file = **opened;
  ASSERT_EQ(file.getTensors().size(), 2u);
  const TensorInfo &b = file.getTensors()[0], &a = file.getTensors()[1];
  EXPECT_EQ(b.name, "b");
  EXPECT_THAT(b.shape, ElementsAre(2, 3));
  EXPECT_EQ(b.storage, Storage::F16);
  EXPECT_EQ(llvm::toStringRef(file.getRows(b, 1, 1)), "abcdef");
  EXPECT_THAT(a.shape, ElementsAre());
  EXPECT_EQ(a.storage, Storage::BF16);
  EXPECT_EQ(llvm::toStringRef(file.getRows(a, 0, 1)), "01");
  EXPECT_EQ(file.explain("ids"), "tensor 'ids' has dtype 'I16'; accepted: F32, F16, BF16");
  EXPECT_EQ(file.explain("none"), "tensor 'none' has a dimension of 0; accepted: 1 and more");
  EXPECT_EQ(file.explain("what"), "");
  EXPECT_EQ(messageOf("{}"), "");
}

TEST(Safetensors, WrongSizes) {
  auto wrong = [](const std::string &file) { return test::messageOf(read(Bytes(file))); };
  EXPECT_THAT(wrong(""), HasSubstr("has 0 bytes"));
  EXPECT_THAT(wrong("1234567"), HasSubstr("has 7 bytes; a safetensors file has at least 8"));
  EXPECT_THAT(wrong(number<uint64_t>(100) + "{}"), HasSubstr("header's size is 100, but the file"));
  for (uint64_t size : {uint64_t(100'000'001), uint64_t(1) << 62, UINT64_MAX})
    EXPECT_THAT(wrong(number(size) + "{}"), HasSubstr("accepted: up to 100000000 bytes"));
}

TEST(Safetensors, WrongHeaders) {
  for (auto [header, message] : std::vector<std::pair<StringRef, StringRef>>{
           {"", "at byte 8: the header: is not JSON"},
           {"{\"a\": nonsense}", "at byte 15: the header: is not JSON"},
           {"{} {}", "is not JSON"},
           {"{\"a\xff\": 1}", "is not JSON"},
           {"[]", "is an array; accepted: an object"},
           {"5", "is a number; accepted: an object"},
           {"null", "is null; accepted: an object"},
           {"{\"a\": 5}", "'a' is or holds a number; accepted: an object"},
           {"{\"a\": []}", "'a' is or holds an array"},
           {"{\"a\": {}}", "'a' lacks 'dtype'"},
           {"{\"a\": {\"dtype\": \"F32\", \"shape\": [1]}}", "'a' lacks 'data_offsets'"},
           {"{\"a\": {\"dtype\": 5}}", "'dtype' of 'a' is or holds a number"},
           {"{\"a\": {\"dtype\": [\"F32\"]}}", "'dtype' of 'a' is or holds an array"},
           {"{\"a\": {\"dtype\": \"F32\", \"dtype\": \"F16\"}}", "'a' has 'dtype' twice"},
           {"{\"a\": {\"type\": \"F32\"}}", "'a' has a key 'type'; accepted: dtype, shape"},
           {"{\"a\": {\"shape\": [-1]}}", "'shape' of 'a' is or holds a negative number"},
           {"{\"a\": {\"shape\": [1.5]}}", "a number that is no 64-bit integer"},
           {"{\"a\": {\"shape\": [1e999]}}", "is not JSON"},
           {"{\"a\": {\"shape\": [99999999999999999999]}}", "a number that is no 64-bit integer"},
           {"{\"a\": {\"shape\": [9223372036854775808]}}", "a size from 2^63 on"},
           {"{\"a\": {\"shape\": [1,1,1,1,1,1,1,1,1]}}", "more than 8 sizes"},
           {"{\"a\": {\"shape\": [[1]]}}", "'shape' of 'a' is or holds an array"},
           {"{\"a\": {\"shape\": {}}}", "'shape' of 'a' is or holds an object"},
           {"{\"a\": {\"shape\": [\"1\"]}}", "'shape' of 'a' is or holds a string"},
           {"{\"a\": {\"data_offsets\": [0]}}", "fewer than two numbers"},
           {"{\"a\": {\"data_offsets\": [0, 1, 2]}}", "more than two numbers"},
           {"{\"a\": {\"data_offsets\": 0}}", "accepted: two offsets in an array"},
           {"{\"__metadata__\": 5}", "'__metadata__' is or holds a number"},
           {"{\"__metadata__\": {\"a\": {}}}", "'__metadata__' is or holds an object"},
       })
    EXPECT_THAT(messageOf(header), HasSubstr(message.str())) << header.str();
}

TEST(Safetensors, WrongTensors) {
  auto with = [](StringRef dtype, StringRef shape, StringRef offsets) {
    return messageOf(("{\"a\": {\"dtype\": \"" + dtype + "\", \"shape\": [" + shape +
                      "], \"data_offsets\": [" + offsets + "]}}")
                         .str());
  };
  EXPECT_EQ(with("F32", "4", "0, 16"), "");
  EXPECT_THAT(with("F32", "4", "0, 17"), HasSubstr("accepted: within the 16 bytes of data"));
  EXPECT_THAT(with("F32", "4", "16, 0"), HasSubstr("data_offsets [16, 0]"));
  EXPECT_THAT(with("F32", "4", "18446744073709551600, 18446744073709551615"), HasSubstr("within"));
  EXPECT_THAT(with("I64", "4", "0, 32"), HasSubstr("within"));
  EXPECT_THAT(with("F32", "3", "0, 16"), HasSubstr("has 16 bytes from byte 70 on, but its shape"));
  EXPECT_THAT(with("F16", "4294967296, 4294967296, 2", "0, 16"), HasSubstr("more than 2^63"));
  EXPECT_THAT(with("F32", "4611686018427387904, 1", "0, 0"), HasSubstr("more than 2^63"));
}

TEST(Safetensors, TwoOfOneNameOrPlace) {
  EXPECT_THAT(messageOf(R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                            "a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})"),
              HasSubstr("tensor 'a' occurs twice"));
  EXPECT_THAT(messageOf(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                            "b": {"dtype": "I8", "shape": [4], "data_offsets": [7, 11]}})"),
              HasSubstr("the data of two tensors overlap"));
}

// Headers that grow in a parser which builds what it reads.
TEST(Safetensors, Bombs) {
  std::string deep(20'000'000, '[');
  EXPECT_THAT(messageOf(deep), HasSubstr("is an array"));
  EXPECT_THAT(messageOf("{\"a\": {\"shape\": " + deep), HasSubstr("holds an array"));
  std::string objects;
  for (int i = 0; i < 1'000'000; ++i)
    objects += "{\"a\":";
  EXPECT_THAT(messageOf(objects), HasSubstr("'a' has a key 'a'"));
  std::string zeros = "{\"a\": {\"shape\": [0";
  for (int i = 0; i < 1'000'000; ++i)
    zeros += ",0";
  EXPECT_THAT(messageOf(zeros), HasSubstr("more than 8 sizes"));
  EXPECT_THAT(messageOf("{\"" + std::string(10'000'000, 'n') + "\": 5}"), HasSubstr("nnn...' is"));
  EXPECT_THAT(indexMessageOf(deep), HasSubstr("is an array; accepted: an object"));
  EXPECT_THAT(indexMessageOf("{\"x\": " + deep), HasSubstr("nests more than 64 deep"));
  EXPECT_THAT(indexMessageOf(objects), HasSubstr("nests more than 64 deep"));
}

TEST(Safetensors, WrongIndex) {
  EXPECT_THAT(indexMessageOf("{}"), HasSubstr("the index lacks 'weight_map'"));
  EXPECT_THAT(indexMessageOf("{\"weight_map\""), HasSubstr("is not JSON"));
  EXPECT_THAT(indexMessageOf("{\"weight_map\": []}"),
              HasSubstr("'weight_map' is or holds an array"));
  EXPECT_THAT(indexMessageOf("{\"weight_map\": 1}"),
              HasSubstr("'weight_map' is or holds a number"));
  EXPECT_THAT(indexMessageOf("{\"weight_map\": \"a\"}"), HasSubstr("is or holds a string"));
  EXPECT_THAT(indexMessageOf("{\"weight_map\": {\"a\": {}}}"), HasSubstr("holds an object"));
  EXPECT_THAT(indexMessageOf("{\"weight_map\": {}, \"weight_map\": {}}"), HasSubstr("twice"));
  for (StringRef shard :
       {"../a.safetensors", "/etc/passwd", "a/b", "..", ".", "", "a\\\\b", "a\\u0000"})
    EXPECT_THAT(indexMessageOf(("{\"weight_map\": {\"t\": \"" + shard + "\"}}").str()),
                HasSubstr("accepted: the name of a file beside the index"))
        << shard.str();
}

TEST(Safetensors, Shards) {
  TemporaryDirectory directory;
  auto shard = [](StringRef name) {
    return safetensors(("{\"" + name +
                        "\": {\"dtype\": \"F32\", \"shape\": [2, 2], "
                        "\"data_offsets\": [0, 16]}}")
                           .str(),
                       data);
  };
  directory.write("1.safetensors", shard("a"));
  directory.write("2.safetensors", shard("b"));
  directory.write("3.safetensors", shard("a"));
  auto open = [&](StringRef map) -> llvm::Expected<std::unique_ptr<Safetensors>> {
    auto index = MappedFile::open(directory.write(
        "model.safetensors.index.json",
        ("{\"metadata\": {\"total_size\": 32, \"x\": [null, {\"weight_map\": 1.5}]}, "
         "\"weight_map\": {" +
         map + "}}")
            .str()));
    if (!index)
      return index.takeError();
    return Safetensors::readIndex(*index);
  };
  auto both = open(R"("b": "2.safetensors", "a": "1.safetensors")");
  ASSERT_TRUE(bool(both)) << llvm::toString(both.takeError());
  EXPECT_EQ((*both)->getTensors().size(), 2u);
  for (StringRef name : {"a", "b"})
    EXPECT_EQ(llvm::toStringRef((*both)->getRows(*(*both)->find(name), 1, 1)), data.substr(8));
  EXPECT_THAT(test::messageOf(open(R"("a": "1.safetensors", "b": "1.safetensors")")),
              HasSubstr("places tensor 'b' in '1.safetensors', which does not have it"));
  EXPECT_THAT(test::messageOf(open(R"("a": "1.safetensors", "c": "3.safetensors")")),
              HasSubstr("3.safetensors: error: tensor 'a' occurs twice"));
  EXPECT_THAT(test::messageOf(open(R"("a": "4.safetensors")")),
              HasSubstr("4.safetensors: error: cannot read"));
}

} // namespace
} // namespace tenon::test
