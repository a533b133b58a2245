#include "tools/compare/Dump.h"
#include "codegen/Error.h"
#include "ir/Storage.h"
#include "nlohmann/json.hpp"
#include "runtime/Error.h"
#include "runtime/Safetensors.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstring>

namespace tenon::compare {

template <typename T> static double readAs(const char *data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return static_cast<double>(value);
}

static double readBfloat(const char *data) {
  uint16_t bits;
  std::memcpy(&bits, data, sizeof bits);
  return bfloatToFloat(bits);
}

static double readHalf(const char *data) {
  uint16_t bits;
  std::memcpy(&bits, data, sizeof bits);
  return halfToFloat(bits);
}

namespace {
struct Element {
  const char *name;
  int64_t bytes;
  double (*read)(const char *);
};
} // namespace

static constexpr Element elements[] = {
    {"F64", 8, readAs<double>}, {"F32", 4, readAs<float>},   {"BF16", 2, readBfloat},
    {"F16", 2, readHalf},       {"I64", 8, readAs<int64_t>}, {"I32", 4, readAs<int32_t>},
    {"U8", 1, readAs<uint8_t>}, {"I8", 1, readAs<int8_t>},   {"BOOL", 1, readAs<uint8_t>},
};

static llvm::Expected<Numbers> getNumbers(llvm::StringRef path, const rt::Tensor &tensor) {
  for (const Element &element : elements) {
    if (tensor.dtype != element.name)
      continue;
    Numbers numbers = {tensor.shape, std::vector<double>(size_t(tensor.elements))};
    for (int64_t i = 0; i < tensor.elements; ++i)
      numbers.values[i] = element.read(tensor.data + i * element.bytes);
    return numbers;
  }
  return refused(path + ": '" + tensor.name + "' is " + tensor.dtype +
                 "; accepted: F64, F32, BF16, F16, I64, I32, I8, U8, BOOL");
}

llvm::Expected<Dump> Dump::read(llvm::StringRef path) {
  Dump dump;
  dump.path = path.str();
  try {
    rt::SafetensorsFile file(dump.path);
    for (const rt::Tensor &tensor : file.tensors()) {
      llvm::Expected<Numbers> numbers = getNumbers(path, tensor);
      if (!numbers)
        return numbers.takeError();
      dump.tensors[tensor.name] = std::move(*numbers);
    }
  } catch (const rt::Error &error) {
    return refused(error.what());
  }
  return dump;
}

const Numbers *Dump::find(llvm::StringRef name) const {
  auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

llvm::Error writeIntegers(llvm::StringRef path, const Dump &dump,
                          llvm::ArrayRef<llvm::StringRef> names) {
  nlohmann::json header;
  std::string data;
  for (llvm::StringRef name : names) {
    const Numbers &numbers = *dump.find(name);
    size_t begin = data.size();
    for (double value : numbers.values) {
      auto integer = static_cast<int64_t>(value);
      data.append(reinterpret_cast<const char *>(&integer), sizeof integer);
    }
    header[name.str()] = {
        {"dtype", "I64"}, {"shape", numbers.shape}, {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  uint64_t length = text.size();
  std::error_code code;
  llvm::raw_fd_ostream out(path, code);
  if (code)
    return refused(path + ": " + code.message());
  out.write(reinterpret_cast<const char *>(&length), sizeof length);
  out << text << data;
  return llvm::Error::success();
}

double getError(llvm::ArrayRef<double> values, llvm::ArrayRef<double> golden) {
  double largest = 0, squares = 0;
  for (auto [value, wanted] : llvm::zip_equal(values, golden)) {
    double error = std::fabs(value - wanted);
    if (!std::isfinite(error))
      return INFINITY;
    largest = std::max(largest, error);
    squares += wanted * wanted;
  }
  return largest / std::max(1.0, std::sqrt(squares / std::max<double>(1, double(golden.size()))));
}

} // namespace tenon::compare
