// Reads GGUF, version 2 and 3, little-endian
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md):
//
//   "GGUF" | version u32 | tensors u64 | keys u64
//   keys     x { key string | type u32 | value }              string = length u64, bytes
//   tensors  x { name string | rank u32 | sizes u64, innermost first | type u32 | offset u64 }
//   padding to general.alignment (32) | data: tensor offsets count from here
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

class GgufFile final : public StoredWeights, public GgufMetadata {
public:
  static llvm::Expected<std::unique_ptr<GgufFile>> open(llvm::StringRef path);
  static llvm::Expected<std::unique_ptr<GgufFile>> read(MappedFile file);

  llvm::StringRef getName() const override { return file.getPath(); }

  llvm::ArrayRef<GgufValue> getValues() const { return values; } // in file order
  const GgufValue *findValue(llvm::StringRef key) const;

  // GgufMetadata
  llvm::StringRef fileName() const override { return file.getPath(); }
  std::optional<llvm::StringRef> getString(llvm::StringRef key) const override;
  std::optional<bool> getBool(llvm::StringRef key) const override;
  std::optional<int64_t> getInteger(llvm::StringRef key) const override;
  std::optional<std::vector<llvm::StringRef>> getStrings(llvm::StringRef key) const override;
  std::optional<std::vector<int64_t>> getIntegers(llvm::StringRef key) const override;
  std::optional<double> getFloat(llvm::StringRef key) const;
  std::optional<std::vector<double>> getFloats(llvm::StringRef key) const;

private:
  friend class GgufReader;
  explicit GgufFile(MappedFile file) : file(std::move(file)) {}

  MappedFile file;
  std::vector<GgufValue> values;
  llvm::StringMap<size_t> valueIndices;
};

} // namespace tenon

#endif // TENON_FRONTEND_WEIGHTS_GGUF_H
