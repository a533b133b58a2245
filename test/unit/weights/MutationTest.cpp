// Every byte of small files, changed in every way that has a meaning of its own, and many changes
// at once. A reader may refuse or accept what results; it may not crash, and what it accepts must
// be readable to the last byte. Run these under the sanitizers.
#include "Support.h"
#include "frontend/weights/Gguf.h"
#include "frontend/weights/Safetensors.h"
#include <random>

namespace tenon::test {
namespace {

template <typename Reader> struct Fuzzer {
  Reader read;
  int accepted = 0, refused = 0;

  void operator()(const std::string &file) {
    Bytes bytes(file);
    auto result = read(bytes.map());
    if (!result) {
      ++refused;
      checkMessage(result.takeError());
      return;
    }
    ++accepted;
    uint64_t sum = 0;
    for (const TensorInfo &tensor : (*result)->getTensors())
      for (uint8_t byte : (*result)->getRows(tensor, 0, countRows(tensor)))
        sum += byte;
    volatile uint64_t keep = sum;
    (void)keep;
    touch(**result);
  }

  static void touch(Safetensors &) {}
  static void touch(GgufFile &file) {
    for (const GgufValue &value : file.getValues()) {
      value.asString();
      value.asBool();
      value.asInteger();
      value.asFloat();
      value.asStrings();
      value.asBools();
      value.asIntegers();
      value.asFloats();
    }
  }
};
template <typename Reader> Fuzzer(Reader) -> Fuzzer<Reader>;

template <typename Reader> void mutate(const std::string &good, Reader read, int rounds) {
  Fuzzer fuzz{read};
  fuzz(good);
  ASSERT_EQ(fuzz.accepted, 1);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string file = good;
    for (int bit = 0; bit < 8; ++bit) {
      file[i] = good[i] ^ (1 << bit);
      fuzz(file);
    }
    for (char byte : {'\0', '\x7f', '\x80', '\xff', '"', '[', '{'}) {
      file[i] = byte;
      fuzz(file);
    }
    file = good;
    file.erase(i, 1);
    fuzz(file);
    file.insert(i, 2, good[i]);
    fuzz(file);
    for (uint64_t number : {UINT64_MAX, uint64_t(1) << 63, uint64_t(1) << 62, uint64_t(0)})
      fuzz(std::string(good).replace(i, 8, test::number(number)));
  }
  std::mt19937 random(1);
  for (int round = 0; round < rounds; ++round) {
    std::string file = good;
    for (int changes = 1 + random() % 4; changes; --changes)
      file[random() % file.size()] = random();
    fuzz(file);
  }
  EXPECT_GT(fuzz.accepted, 100);
  EXPECT_GT(fuzz.refused, 100);
}

TEST(Mutation, Gguf) { mutate(smallGguf().build(), GgufFile::read, 20000); }

TEST(Mutation, Safetensors) {
  mutate(safetensors(R"({"__metadata__":{"k":"v"},)"
                     R"("a":{"dtype":"F16","shape":[2,3],"data_offsets":[4,16]},)"
                     R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})",
                     "0123456789abcdef"),
         Safetensors::readFile, 20000);
}

} // namespace
} // namespace tenon::test
