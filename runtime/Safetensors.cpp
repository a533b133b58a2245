#include "runtime/Safetensors.h"

#include "runtime/Error.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace tenon::rt {

using nlohmann::json;

static constexpr uint64_t largestHeader = 100 << 20; // as the reference implementation

static int64_t elementBytes(std::string_view dtype) {
  for (auto [name, bytes] : {std::pair<std::string_view, int64_t>{"F64", 8},
                             {"I64", 8},
                             {"U64", 8},
                             {"F32", 4},
                             {"I32", 4},
                             {"U32", 4},
                             {"F16", 2},
                             {"BF16", 2},
                             {"I16", 2},
                             {"U16", 2},
                             {"I8", 1},
                             {"U8", 1},
                             {"BOOL", 1}})
    if (dtype == name)
      return bytes;
  return 0;
}

static Tensor readTensor(const std::string &where, const std::string &name, const json &entry,
                         const char *data, uint64_t dataBytes) {
  auto shape = entry.find("shape"), dtype = entry.find("dtype"), at = entry.find("data_offsets");
  if (!entry.is_object() || shape == entry.end() || !shape->is_array() || dtype == entry.end() ||
      !dtype->is_string() || at == entry.end() || !at->is_array() || at->size() != 2 ||
      !(*at)[0].is_number_unsigned() || !(*at)[1].is_number_unsigned())
    refuse("{}: the header entry of '{}' lacks dtype, shape or data_offsets", where, name);
  Tensor tensor = {name, dtype->get<std::string>(), {}, nullptr, 1};
  int64_t bytes = elementBytes(tensor.dtype);
  if (bytes == 0)
    refuse("{}: '{}' has the unknown dtype '{}'", where, name, tensor.dtype);
  for (const json &extent : *shape) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() > INT64_MAX ||
        __builtin_mul_overflow(tensor.elements, extent.get<int64_t>(), &tensor.elements))
      refuse("{}: '{}' has an impossible shape", where, name);
    tensor.shape.push_back(extent.get<int64_t>());
  }
  uint64_t begin = (*at)[0].get<uint64_t>(), end = (*at)[1].get<uint64_t>();
  if (begin > end || end > dataBytes)
    refuse("{}: '{}' lies at {}..{} but the file holds {} bytes of data", where, name, begin, end,
           dataBytes);
  if (__builtin_mul_overflow(tensor.elements, bytes, &bytes) ||
      static_cast<uint64_t>(bytes) != end - begin)
    refuse("{}: '{}' has {} bytes, which is not what its shape and dtype need", where, name,
           end - begin);
  tensor.data = data + begin;
  return tensor;
}

SafetensorsFile::SafetensorsFile(const std::string &path)
    : fileName(path), file(Mapping::ofFile(path)) {
  const uint64_t size = static_cast<uint64_t>(file.size());
  uint64_t headerBytes = 0;
  if (size < sizeof headerBytes)
    refuse("{}: not a safetensors file ({} bytes)", path, size);
  std::memcpy(&headerBytes, file.data(), sizeof headerBytes);
  if (headerBytes > size - sizeof headerBytes || headerBytes > largestHeader)
    refuse("{}: not a safetensors file (a header of {} bytes in a file of {})", path, headerBytes,
           size);
  const char *header = file.data() + sizeof headerBytes;
  json entries = json::parse(header, header + headerBytes, nullptr, /*allow_exceptions=*/false);
  if (!entries.is_object())
    refuse("{}: the safetensors header is not a JSON object", path);
  for (const auto &[name, entry] : entries.items())
    if (name != "__metadata__")
      all.push_back(readTensor(path, name, entry, header + headerBytes,
                               size - sizeof headerBytes - headerBytes));
}

const Tensor *SafetensorsFile::find(std::string_view name) const {
  for (const Tensor &tensor : all)
    if (tensor.name == name)
      return &tensor;
  return nullptr;
}

SafetensorsWriter::SafetensorsWriter(const std::string &path,
                                     const std::vector<Declaration> &tensors)
    : path(path), partial(path + ".partial") {
  json header = json::object();
  int64_t bytes = 0;
  for (const Declaration &tensor : tensors) {
    int64_t size = sizeof(float);
    bool fits = true;
    for (int64_t extent : tensor.shape)
      fits &= !__builtin_mul_overflow(size, extent, &size);
    offsets.push_back(bytes);
    if (!fits || __builtin_add_overflow(bytes, size, &bytes))
      refuse("{}: '{}' would be too large", path, tensor.name);
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offsets.back(), bytes}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  uint64_t headerBytes = text.size();
  for (int64_t &offset : offsets)
    offset += static_cast<int64_t>(sizeof headerBytes + headerBytes);

  file = open(partial.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0)
    refuse("{}: {}", path, std::strerror(errno));
  text.insert(0, reinterpret_cast<const char *>(&headerBytes), sizeof headerBytes);
  if (pwrite(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ftruncate(file, static_cast<off_t>(text.size()) + bytes) != 0) {
    int error = errno;
    close(file);
    unlink(partial.c_str());
    refuse("{}: {}", path, std::strerror(error));
  }
}

SafetensorsWriter::~SafetensorsWriter() {
  if (file >= 0) {
    close(file);
    unlink(partial.c_str());
  }
}

void SafetensorsWriter::write(size_t tensor, int64_t first, const float *values, int64_t count) {
  const char *from = reinterpret_cast<const char *>(values);
  off_t at = offsets[tensor] + first * static_cast<off_t>(sizeof(float));
  for (size_t left = static_cast<size_t>(count) * sizeof(float); left > 0;) {
    ssize_t written = pwrite(file, from, left, at);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      refuse("{}: {}", path, std::strerror(errno));
    from += written;
    at += written;
    left -= static_cast<size_t>(written);
  }
}

void SafetensorsWriter::finish() {
  int status = close(file);
  file = -1;
  if (status != 0 || rename(partial.c_str(), path.c_str()) != 0) {
    int error = errno;
    unlink(partial.c_str());
    refuse("{}: {}", path, std::strerror(error));
  }
}

} // namespace tenon::rt
