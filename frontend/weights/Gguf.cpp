#include "frontend/weights/Gguf.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

using llvm::ArrayRef;
using llvm::StringRef;
using llvm::Twine;
namespace endian = llvm::support::endian;

namespace tenon {

//===-----------------------------------------------------------------------------------------===//
// Metadata values
//===-----------------------------------------------------------------------------------------===//

// Bytes of a scalar; 0 for strings, arrays and numbers that are no type.
static uint64_t getScalarBytes(GgufType type) {
  switch (type) {
  case GgufType::UInt8:
  case GgufType::Int8:
  case GgufType::Bool:
    return 1;
  case GgufType::UInt16:
  case GgufType::Int16:
    return 2;
  case GgufType::UInt32:
  case GgufType::Int32:
  case GgufType::Float32:
    return 4;
  case GgufType::UInt64:
  case GgufType::Int64:
  case GgufType::Float64:
    return 8;
  case GgufType::String:
  case GgufType::Array:
    break;
  }
  return 0;
}

static bool isFloat(GgufType type) {
  return type == GgufType::Float32 || type == GgufType::Float64;
}

static bool isInteger(GgufType type) {
  return getScalarBytes(type) && !isFloat(type) && type != GgufType::Bool;
}

template <typename T> static T load(const uint8_t *bytes) {
  return endian::read<T, llvm::endianness::little>(bytes);
}

// Only for strings whose length has been checked.
static StringRef loadString(const uint8_t *bytes) {
  return {reinterpret_cast<const char *>(bytes + 8), load<uint64_t>(bytes)};
}

std::optional<int64_t> GgufValue::readInteger(uint64_t index) const {
  const uint8_t *bytes = data + index * getScalarBytes(type);
  switch (type) {
  case GgufType::UInt8:
    return load<uint8_t>(bytes);
  case GgufType::Int8:
    return load<int8_t>(bytes);
  case GgufType::UInt16:
    return load<uint16_t>(bytes);
  case GgufType::Int16:
    return load<int16_t>(bytes);
  case GgufType::UInt32:
    return load<uint32_t>(bytes);
  case GgufType::Int32:
    return load<int32_t>(bytes);
  case GgufType::UInt64:
    if (load<uint64_t>(bytes) > INT64_MAX)
      return std::nullopt;
    return load<uint64_t>(bytes);
  case GgufType::Int64:
    return load<int64_t>(bytes);
  default:
    return std::nullopt;
  }
}

std::optional<double> GgufValue::readFloat(uint64_t index) const {
  if (type == GgufType::Float32)
    return load<float>(data + 4 * index);
  if (type == GgufType::Float64)
    return load<double>(data + 8 * index);
  return std::nullopt;
}

std::optional<StringRef> GgufValue::asString() const {
  if (array || type != GgufType::String)
    return std::nullopt;
  return loadString(data);
}

std::optional<bool> GgufValue::asBool() const {
  if (array || type != GgufType::Bool)
    return std::nullopt;
  return *data != 0;
}

std::optional<int64_t> GgufValue::asInteger() const {
  return array ? std::nullopt : readInteger(0);
}

std::optional<double> GgufValue::asFloat() const { return array ? std::nullopt : readFloat(0); }

std::optional<std::vector<StringRef>> GgufValue::asStrings() const {
  if (!array || type != GgufType::String)
    return std::nullopt;
  std::vector<StringRef> strings;
  strings.reserve(count);
  const uint8_t *bytes = data;
  for (uint64_t i = 0; i < count; ++i) {
    strings.push_back(loadString(bytes));
    bytes += 8 + strings.back().size();
  }
  return strings;
}

std::optional<std::vector<bool>> GgufValue::asBools() const {
  if (!array || type != GgufType::Bool)
    return std::nullopt;
  return std::vector<bool>(data, data + count);
}

std::optional<std::vector<int64_t>> GgufValue::asIntegers() const {
  if (!array || !isInteger(type))
    return std::nullopt;
  std::vector<int64_t> integers;
  integers.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    std::optional<int64_t> integer = readInteger(i);
    if (!integer)
      return std::nullopt;
    integers.push_back(*integer);
  }
  return integers;
}

std::optional<std::vector<double>> GgufValue::asFloats() const {
  if (!array || !isFloat(type))
    return std::nullopt;
  std::vector<double> floats;
  floats.reserve(count);
  for (uint64_t i = 0; i < count; ++i)
    floats.push_back(*readFloat(i));
  return floats;
}

//===-----------------------------------------------------------------------------------------===//
// The file
//===-----------------------------------------------------------------------------------------===//

const GgufValue *GgufFile::findValue(StringRef key) const {
  auto found = valueIndices.find(key);
  return found == valueIndices.end() ? nullptr : &values[found->second];
}

template <typename T>
static std::optional<T> get(const GgufValue *value, std::optional<T> (GgufValue::*as)() const) {
  return value ? (value->*as)() : std::nullopt;
}

std::optional<StringRef> GgufFile::getString(StringRef key) const {
  return get(findValue(key), &GgufValue::asString);
}
std::optional<bool> GgufFile::getBool(StringRef key) const {
  return get(findValue(key), &GgufValue::asBool);
}
std::optional<int64_t> GgufFile::getInteger(StringRef key) const {
  return get(findValue(key), &GgufValue::asInteger);
}
std::optional<double> GgufFile::getFloat(StringRef key) const {
  return get(findValue(key), &GgufValue::asFloat);
}
std::optional<std::vector<StringRef>> GgufFile::getStrings(StringRef key) const {
  return get(findValue(key), &GgufValue::asStrings);
}
std::optional<std::vector<int64_t>> GgufFile::getIntegers(StringRef key) const {
  return get(findValue(key), &GgufValue::asIntegers);
}
std::optional<std::vector<double>> GgufFile::getFloats(StringRef key) const {
  return get(findValue(key), &GgufValue::asFloats);
}

//===-----------------------------------------------------------------------------------------===//
// Reading
//===-----------------------------------------------------------------------------------------===//

// The format's numbers for the storage that Tenon reads.
static constexpr std::pair<uint32_t, Storage> readableTypes[] = {
    {0, Storage::F32},   {1, Storage::F16},     {30, Storage::BF16}, {2, Storage::Q4_0},
    {3, Storage::Q4_1},  {6, Storage::Q5_0},    {7, Storage::Q5_1},  {8, Storage::Q8_0},
    {10, Storage::Q2_K}, {11, Storage::Q3_K},   {12, Storage::Q4_K}, {13, Storage::Q5_K},
    {14, Storage::Q6_K}, {20, Storage::IQ4_NL},
};

static std::optional<Storage> getStorage(uint32_t type) {
  for (auto [number, storage] : readableTypes)
    if (number == type)
      return storage;
  return std::nullopt;
}

static std::string listReadableTypes() {
  std::string list;
  for (auto [number, storage] : readableTypes)
    list += (list.empty() ? "" : ", ") + std::to_string(number) + " (" +
            getStorageInfo(storage).name.str() + ")";
  return list;
}

static std::string printShape(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

// Walks through the file once. Every step returns false after noting what is wrong.
class GgufReader {
public:
  explicit GgufReader(GgufFile &result) : result(result), bytes(result.file.getBytes()) {}

  llvm::Error read() {
    if (readHeader() && readValues() && readTensors() && placeTensors())
      return llvm::Error::success();
    return result.file.failAtByte(errorOffset, message);
  }

private:
  struct Tensor {
    TensorInfo info;
    uint32_t type;
    uint64_t place;  // of its entry in the file
    uint64_t offset; // from the start of the data
  };

  bool fail(uint64_t at, const Twine &text) {
    errorOffset = at;
    message = text.str();
    return false;
  }
  bool need(uint64_t count, const Twine &what) {
    if (count <= bytes.size() - offset)
      return true;
    return fail(offset, what + " needs " + Twine(count) + " bytes, but the file ends after " +
                            Twine(bytes.size() - offset) + "; is it cut short?");
  }
  template <typename T> bool readNumber(T &number, const Twine &what) {
    if (!need(sizeof(T), what))
      return false;
    number = load<T>(bytes.data() + offset);
    offset += sizeof(T);
    return true;
  }
  bool readString(StringRef &text, const Twine &what) {
    uint64_t start = offset, length;
    if (!readNumber(length, what + "'s length") || !need(length, what))
      return false;
    text = loadString(bytes.data() + start);
    offset += length;
    return true;
  }

  bool readHeader();
  bool readValues();
  bool readValue(GgufValue &value);
  bool readElements(GgufValue &value);
  bool readAlignment(uint64_t &alignment);
  bool readTensors();
  bool readTensor(Tensor &tensor);
  bool placeTensors();

  // The shortest that an entry can be bounds how many there are.
  static constexpr uint64_t minKeyBytes = 8 + 4 + 1, minTensorBytes = 8 + 4 + 8 + 4 + 8;
  static constexpr uint32_t maxDimensions = 4;

  GgufFile &result;
  ArrayRef<uint8_t> bytes;
  uint64_t offset = 0; // never beyond bytes.size()
  uint64_t tensorCount = 0, keyCount = 0;
  std::vector<Tensor> tensors;
  uint64_t errorOffset = 0;
  std::string message;
};

bool GgufReader::readHeader() {
  uint32_t version;
  if (!need(4, "the magic number"))
    return false;
  if (llvm::toStringRef(bytes.take_front(4)) != "GGUF")
    return fail(0, "starts with " + quote(llvm::toStringRef(bytes.take_front(4))) +
                       "; accepted: 'GGUF'");
  offset = 4;
  if (!readNumber(version, "the version"))
    return false;
  if (version != 2 && version != 3) {
    uint32_t swapped = llvm::byteswap(version);
    return swapped == 2 || swapped == 3
               ? fail(4, "the file is big-endian; accepted: little-endian")
               : fail(4, "GGUF version is " + Twine(version) + "; accepted: 2, 3");
  }
  if (!readNumber(tensorCount, "the number of tensors") ||
      !readNumber(keyCount, "the number of metadata keys"))
    return false;
  uint64_t left = bytes.size() - offset;
  if (tensorCount > left / minTensorBytes)
    return fail(8, "a file of " + Twine(bytes.size()) + " bytes cannot hold " + Twine(tensorCount) +
                       " tensors");
  if (keyCount > left / minKeyBytes)
    return fail(16, "a file of " + Twine(bytes.size()) + " bytes cannot hold " + Twine(keyCount) +
                        " metadata keys");
  return true;
}

bool GgufReader::readValues() {
  result.values.reserve(keyCount);
  for (uint64_t i = 0; i < keyCount; ++i) {
    uint64_t start = offset;
    GgufValue value;
    if (!readString(value.key, "metadata key " + Twine(i)) || !readValue(value))
      return false;
    if (!result.valueIndices.try_emplace(value.key, i).second)
      return fail(start, "metadata key " + quote(value.key) + " occurs twice");
    result.values.push_back(value);
  }
  return true;
}

bool GgufReader::readValue(GgufValue &value) {
  uint64_t start = offset;
  uint32_t type;
  if (!readNumber(type, "the type of " + quote(value.key)))
    return false;
  value.type = static_cast<GgufType>(type);
  value.array = value.type == GgufType::Array;
  value.count = 1;
  if (value.array) {
    start = offset;
    if (!readNumber(type, "the element type of " + quote(value.key)) ||
        !readNumber(value.count, "the length of " + quote(value.key)))
      return false;
    value.type = static_cast<GgufType>(type);
  }
  if (value.type != GgufType::String && !getScalarBytes(value.type))
    return fail(start, quote(value.key) + " has " + (value.array ? "elements of type " : "type ") +
                           Twine(type) + "; accepted: 0 to 12" +
                           (value.array ? " without 9 (array)" : ""));
  return readElements(value);
}

bool GgufReader::readElements(GgufValue &value) {
  value.data = bytes.data() + offset;
  bool isString = value.type == GgufType::String;
  uint64_t minBytes = isString ? 8 : getScalarBytes(value.type);
  if (value.count > (bytes.size() - offset) / minBytes)
    return fail(offset, quote(value.key) + " has " + Twine(value.count) + " elements of at least " +
                            Twine(minBytes) + " bytes, but the file ends after " +
                            Twine(bytes.size() - offset) + " bytes; is it cut short?");
  if (!isString) {
    offset += value.count * minBytes;
    return true;
  }
  for (uint64_t i = 0; i < value.count; ++i) {
    uint64_t length = 0, start = offset;
    bool fits = bytes.size() - offset >= 8;
    if (fits) {
      length = load<uint64_t>(bytes.data() + offset);
      fits = length <= bytes.size() - offset - 8;
    }
    if (!fits)
      return fail(start, "string " + Twine(i) + " of " + quote(value.key) + " has " +
                             Twine(length) + " bytes, which is more than the file has left");
    offset += 8 + length;
  }
  return true;
}

bool GgufReader::readAlignment(uint64_t &alignment) {
  alignment = 32;
  const GgufValue *value = result.findValue("general.alignment");
  if (!value)
    return true;
  int64_t number = value->asInteger().value_or(0);
  alignment = number;
  if (number >= 8 && number <= (1 << 20) && llvm::isPowerOf2_64(number))
    return true;
  return fail(value->data - bytes.data(), "general.alignment is " + Twine(number) +
                                              "; accepted: a power of two from 8 to 2^20");
}

bool GgufReader::readTensors() {
  tensors.resize(tensorCount);
  for (Tensor &tensor : tensors)
    if (!readTensor(tensor))
      return false;
  return true;
}

bool GgufReader::readTensor(Tensor &tensor) {
  tensor.place = offset;
  StringRef name;
  if (!readString(name, "the name of tensor " + Twine(&tensor - tensors.data())))
    return false;
  tensor.info.name = name.str();
  uint64_t start = offset;
  uint32_t dimensions;
  if (!readNumber(dimensions, "tensor " + quote(name)))
    return false;
  if (dimensions < 1 || dimensions > maxDimensions)
    return fail(start, "tensor " + quote(name) + " has " + Twine(dimensions) +
                           " dimensions; accepted: 1 to " + Twine(maxDimensions));
  tensor.info.shape.resize(dimensions);
  int64_t elements = 1;
  for (int64_t &size : llvm::reverse(tensor.info.shape)) {
    start = offset;
    if (!readNumber(size, "tensor " + quote(name)))
      return false;
    if (size < 1 || llvm::MulOverflow(elements, size, elements))
      return fail(start, "tensor " + quote(name) + " has a dimension of " +
                             Twine(static_cast<uint64_t>(size)) +
                             "; accepted: 1 and more, whose product is below 2^63");
  }
  return readNumber(tensor.type, "tensor " + quote(name)) &&
         readNumber(tensor.offset, "tensor " + quote(name));
}

// Where the data begins is known after the last entry.
bool GgufReader::placeTensors() {
  uint64_t alignment;
  if (!readAlignment(alignment))
    return false;
  uint64_t dataStart = llvm::alignTo(offset, alignment);
  uint64_t dataBytes = bytes.size() - std::min<uint64_t>(dataStart, bytes.size());
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  ranges.reserve(tensors.size());
  for (Tensor &tensor : tensors) {
    std::string name = "tensor " + quote(tensor.info.name);
    if (tensor.offset % alignment)
      return fail(tensor.place, name + " lies at offset " + Twine(tensor.offset) +
                                    "; accepted: multiples of " + Twine(alignment));
    if (tensor.offset > dataBytes)
      return fail(tensor.place, name + " lies at offset " + Twine(tensor.offset) + " of " +
                                    Twine(dataBytes) + " bytes of data; is the file cut short?");
    std::optional<Storage> storage = getStorage(tensor.type);
    bool isNew;
    if (!storage) {
      isNew = result.addUnreadable(tensor.info.name, name + " has type " + Twine(tensor.type) +
                                                         " (entry at byte " + Twine(tensor.place) +
                                                         "); accepted: " + listReadableTypes());
    } else {
      tensor.info.storage = *storage;
      std::optional<int64_t> size = countBytes(tensor.info);
      if (!size)
        return fail(tensor.place, name + " of type " + getStorageInfo(*storage).name +
                                      " has shape " + printShape(tensor.info.shape) +
                                      "; accepted: rows of a multiple of " +
                                      Twine(getStorageInfo(*storage).valuesPerBlock) +
                                      " elements, below 2^63 bytes in all");
      if (uint64_t(*size) > dataBytes - tensor.offset)
        return fail(tensor.place, name + " needs " + Twine(*size) + " bytes at offset " +
                                      Twine(tensor.offset) + " of " + Twine(dataBytes) +
                                      " bytes of data; is the file cut short?");
      ranges.push_back({dataStart + tensor.offset, dataStart + tensor.offset + *size});
      const uint8_t *data = bytes.data() + dataStart + tensor.offset;
      isNew = result.add(std::move(tensor.info), data);
    }
    if (!isNew)
      return fail(tensor.place, name + " occurs twice");
  }
  if (std::optional<uint64_t> overlap = findOverlap(std::move(ranges)))
    return fail(*overlap, "the data of two tensors overlap");
  return true;
}

llvm::Expected<std::unique_ptr<GgufFile>> GgufFile::read(MappedFile file) {
  std::unique_ptr<GgufFile> result(new GgufFile(std::move(file)));
  if (llvm::Error error = GgufReader(*result).read())
    return error;
  return result;
}

llvm::Expected<std::unique_ptr<GgufFile>> GgufFile::open(StringRef path) {
  llvm::Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  return read(std::move(*file));
}

} // namespace tenon
