// Files for the tests of weight readers: built in memory, with whatever is to be wrong.
#ifndef TENON_TEST_UNIT_WEIGHTS_SUPPORT_H
#define TENON_TEST_UNIT_WEIGHTS_SUPPORT_H

#include "frontend/weights/MappedFile.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::test {

// Bytes of exactly their size on the heap, so that a sanitizer sees a read beyond them.
class Bytes {
public:
  explicit Bytes(llvm::StringRef text) : data(new char[text.size()]), size(text.size()) {
    std::copy(text.begin(), text.end(), data.get());
  }
  // Lives as long as this.
  MappedFile map() const {
    return MappedFile("file", llvm::MemoryBuffer::getMemBuffer({data.get(), size}, "file",
                                                               /*RequiresNullTerminator=*/false));
  }

private:
  std::unique_ptr<char[]> data;
  size_t size;
};

// A directory that goes away with what is in it.
class TemporaryDirectory {
public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  // Writes a file and gives its path.
  std::string write(llvm::StringRef name, llvm::StringRef text) const;
  const std::string &path() const { return directory; }

private:
  std::string directory;
};

template <typename T> std::string number(T value) {
  return {reinterpret_cast<const char *>(&value), sizeof(T)};
}

// A GGUF file in its parts; lengths and counts follow unless a test sets them.
struct GgufBuilder {
  uint32_t version = 3;
  std::optional<uint64_t> tensorCount, keyCount;
  std::vector<std::string> keys, tensors;
  std::string data;
  size_t alignment = 32;

  static std::string string(llvm::StringRef text) {
    return number<uint64_t>(text.size()) + text.str();
  }

  // `value` is what follows the type.
  void addKey(llvm::StringRef key, uint32_t type, llvm::StringRef value) {
    keys.push_back(string(key) + number(type) + value.str());
  }
  // Sizes innermost first, as in the file.
  void addTensor(llvm::StringRef name, std::vector<uint64_t> sizes, uint32_t type, uint64_t offset);
  std::string build() const;
};

// Two tensors, and keys of all kinds.
GgufBuilder smallGguf();

// A safetensors file.
std::string safetensors(llvm::StringRef header, llvm::StringRef data);

// The message of a failure; "" for success. One line and not a long one, or the test fails.
std::string checkMessage(llvm::Error error);
template <typename T> std::string messageOf(llvm::Expected<T> result) {
  return checkMessage(result.takeError());
}

} // namespace tenon::test

#endif // TENON_TEST_UNIT_WEIGHTS_SUPPORT_H
