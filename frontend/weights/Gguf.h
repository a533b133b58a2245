// Reads GGUF, version 2 and 3, little-endian
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md):
//
//   "GGUF" | version u32 | tensors u64 | keys u64
//   keys     x { key string | type u32 | value }              string = length u64, bytes
//   tensors  x { name string | dimensions u32 | sizes u64, innermost first | type u32 | offset u64
//   } padding to general.alignment (32) | data: tensor offsets count from here
//
// The file stays mapped. Nothing that it says is believed before it is compared with its size.
#ifndef TENON_FRONTEND_WEIGHTS_GGUF_H
#define TENON_FRONTEND_WEIGHTS_GGUF_H

#include "frontend/tokenizer/GgufMetadata.h"
#include "frontend/weights/StoredWeights.h"

namespace tenon {

// The format's numbers for types of metadata values.
enum class GgufType : uint32_t {
  UInt8,
  Int8,
  UInt16,
  Int16,
  UInt32,
  Int32,
  Float32,
  Bool,
  String,
  Array,
  UInt64,
  Int64,
  Float64
};

// A metadata value, still in the file. The getters give nothing if it is of another kind.
class GgufValue {
public:
  llvm::StringRef getKey() const { return key; }
  GgufType getType() const { return type; } // of the elements, if it is an array
  bool isArray() const { return array; }
  uint64_t size() const { return count; } // of an array; 1 otherwise

  std::optional<llvm::StringRef> asString() const;
  std::optional<bool> asBool() const;
  std::optional<int64_t> asInteger() const; // of any width; not a u64 from 2^63 on
  std::optional<double> asFloat() const;    // f32 or f64
  std::optional<std::vector<llvm::StringRef>> asStrings() const;
  std::optional<std::vector<bool>> asBools() const;
  std::optional<std::vector<int64_t>> asIntegers() const;
  std::optional<std::vector<double>> asFloats() const;

private:
  friend class GgufReader;

  std::optional<int64_t> readInteger(uint64_t index) const;
  std::optional<double> readFloat(uint64_t index) const;

  llvm::StringRef key;
  GgufType type;
  bool array;
  uint64_t count;
  const uint8_t *data; // the first element
};

// The key-value pairs of a file. The typed getters want a key that must be there and be of that
// kind: their error names the file, the key, the byte offset, what is there and what was wanted.
// Use `find` for a key that may be absent.
class GgufMetadata {
public:
  llvm::ArrayRef<GgufEntry> getEntries() const { return entries; } // in file order
  const GgufValue *find(llvm::StringRef key) const;

  llvm::Expected<llvm::StringRef> getString(llvm::StringRef key) const;
  llvm::Expected<int64_t> getInteger(llvm::StringRef key) const;
  llvm::Expected<double> getFloat(llvm::StringRef key) const;
  llvm::Expected<bool> getBool(llvm::StringRef key) const;
  llvm::Expected<std::vector<llvm::StringRef>> getStrings(llvm::StringRef key) const;
  llvm::Expected<std::vector<int64_t>> getIntegers(llvm::StringRef key) const;
  llvm::Expected<std::vector<double>> getFloats(llvm::StringRef key) const;

private:
  friend class GgufReader;

  std::string fileName;
  std::vector<GgufEntry> entries;
  llvm::DenseMap<llvm::StringRef, size_t> indices;
};

class GgufFile final : public MappedWeights {
public:
  static llvm::Expected<std::unique_ptr<GgufFile>> open(llvm::StringRef path);
  static llvm::Expected<std::unique_ptr<GgufFile>> create(MappedFile file);
  // Of bytes that outlive the result; `name` is for messages.
  static llvm::Expected<std::unique_ptr<GgufFile>> create(llvm::StringRef name,
                                                          llvm::ArrayRef<uint8_t> bytes);

  const GgufMetadata &getMetadata() const { return metadata; }

private:
  friend class GgufReader;
  explicit GgufFile(llvm::StringRef name) : MappedWeights(name.str()) {}

  std::optional<MappedFile> file; // none when made of bytes
  GgufMetadata metadata;
};

} // namespace tenon

#endif // TENON_FRONTEND_WEIGHTS_GGUF_H
