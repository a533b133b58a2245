#include "Support.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using llvm::StringRef;

namespace tenon::test {

TemporaryDirectory::TemporaryDirectory() {
  llvm::SmallString<128> path;
  EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("tenon-weights", path));
  directory = path.str().str();
}

TemporaryDirectory::~TemporaryDirectory() { llvm::sys::fs::remove_directories(directory); }

std::string TemporaryDirectory::write(StringRef name, StringRef text) const {
  llvm::SmallString<128> path(directory);
  llvm::sys::path::append(path, name);
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  EXPECT_FALSE(error) << error.message();
  stream << text;
  return path.str().str();
}

void GgufBuilder::addTensor(StringRef name, std::vector<uint64_t> sizes, uint32_t type,
                            uint64_t offset) {
  std::string entry = string(name) + number<uint32_t>(sizes.size());
  for (uint64_t size : sizes)
    entry += number(size);
  tensors.push_back(entry + number(type) + number(offset));
}

std::string GgufBuilder::build() const {
  std::string file = "GGUF" + number(version) + number(tensorCount.value_or(tensors.size())) +
                     number(keyCount.value_or(keys.size()));
  for (const std::string &key : keys)
    file += key;
  for (const std::string &tensor : tensors)
    file += tensor;
  while (file.size() % alignment)
    file += '\0';
  return file + data;
}

GgufBuilder smallGguf() {
  GgufBuilder file;
  file.addKey("u8", 0, number<uint8_t>(200));
  file.addKey("i8", 1, number<int8_t>(-100));
  file.addKey("u16", 2, number<uint16_t>(60000));
  file.addKey("i16", 3, number<int16_t>(-30000));
  file.addKey("u32", 4, number<uint32_t>(4000000000));
  file.addKey("i32", 5, number<int32_t>(-2000000000));
  file.addKey("f32", 6, number(1.5f));
  file.addKey("bool", 7, number<uint8_t>(1));
  file.addKey("string", 8, GgufBuilder::string("text"));
  file.addKey("u64", 10, number<uint64_t>(UINT64_MAX));
  file.addKey("i64", 11, number<int64_t>(INT64_MIN));
  file.addKey("f64", 12, number(0.1));
  auto array = [&](StringRef key, uint32_t type, uint64_t count, const std::string &elements) {
    file.addKey(key, 9, number(type) + number(count) + elements);
  };
  array("strings", 8, 3,
        GgufBuilder::string("a") + GgufBuilder::string("") + GgufBuilder::string("bc"));
  array("integers", 5, 2, number<int32_t>(-1) + number<int32_t>(7));
  array("floats", 6, 2, number(0.5f) + number(-2.0f));
  array("bools", 7, 2, std::string("\1\0", 2));
  array("nothing", 8, 0, "");
  file.addTensor("matrix", {32, 3}, 3, 0); // q4_1: 3 rows of 20 bytes
  file.addTensor("vector", {5}, 0, 64);    // f32
  for (int i = 0; i < 84; ++i)
    file.data += static_cast<char>(i);
  return file;
}

std::string safetensors(StringRef header, StringRef data) {
  return number<uint64_t>(header.size()) + header.str() + data.str();
}

std::string checkMessage(llvm::Error error) {
  std::string message = llvm::toString(std::move(error));
  EXPECT_THAT(message, testing::Not(testing::HasSubstr("\n")));
  EXPECT_LT(message.size(), 700u) << message;
  return message;
}

} // namespace tenon::test
