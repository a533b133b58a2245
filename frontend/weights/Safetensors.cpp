#include "frontend/weights/Safetensors.h"
#include "frontend/weights/SafetensorsJson.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include <set>

using llvm::StringRef;
using llvm::Twine;

namespace tenon {

// As the format's own library has it.
static constexpr uint64_t maxHeaderBytes = 100'000'000;

static std::optional<Storage> getStorage(StringRef dtype) {
  return llvm::StringSwitch<std::optional<Storage>>(dtype)
      .Case("F32", Storage::F32)
      .Case("F16", Storage::F16)
      .Case("BF16", Storage::BF16)
      .Default(std::nullopt);
}

llvm::Error Safetensors::addFile(MappedFile mapped) {
  files.push_back(std::move(mapped));
  const MappedFile &file = files.back();
  llvm::ArrayRef<uint8_t> bytes = file.getBytes();
  if (bytes.size() < 8)
    return file.fail("has " + Twine(bytes.size()) + " bytes; a safetensors file has at least 8");
  uint64_t headerBytes = llvm::support::endian::read64le(bytes.data());
  if (headerBytes > maxHeaderBytes)
    return file.failAtByte(0, "the header's size is " + Twine(headerBytes) + "; accepted: up to " +
                                  Twine(maxHeaderBytes) + " bytes");
  if (headerBytes > bytes.size() - 8)
    return file.failAtByte(0, "the header's size is " + Twine(headerBytes) +
                                  ", but the file ends after " + Twine(bytes.size() - 8) +
                                  " more bytes; is it cut short?");
  llvm::Expected<std::vector<SafetensorsEntry>> entries =
      parseSafetensorsHeader(file, 8, headerBytes);
  if (!entries)
    return entries.takeError();

  uint64_t dataStart = 8 + headerBytes, dataBytes = bytes.size() - dataStart;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (SafetensorsEntry &entry : *entries) {
    std::string what = "tensor " + quote(entry.name);
    if (entry.begin > entry.end || entry.end > dataBytes)
      return file.fail(what + " has data_offsets [" + Twine(entry.begin) + ", " + Twine(entry.end) +
                       "]; accepted: within the " + Twine(dataBytes) +
                       " bytes of data; is the file cut short?");
    uint64_t size = entry.end - entry.begin;
    if (size)
      ranges.push_back({dataStart + entry.begin, dataStart + entry.end});
    std::optional<Storage> storage = getStorage(entry.dtype);
    bool isNew;
    if (!storage) {
      isNew = addUnreadable(entry.name, what + " has dtype " + quote(entry.dtype) +
                                            "; accepted: F32, F16, BF16");
    } else if (llvm::is_contained(entry.shape, 0)) {
      isNew = addUnreadable(entry.name, what + " has a dimension of 0; accepted: 1 and more");
    } else {
      TensorInfo info{entry.name, std::move(entry.shape), *storage};
      std::optional<int64_t> expected = countBytes(info);
      if (!expected || uint64_t(*expected) != size)
        return file.fail(what + " has " + Twine(size) + " bytes from byte " +
                         Twine(dataStart + entry.begin) + " on, but its shape and dtype " +
                         (expected ? "need " + Twine(*expected) : "need more than 2^63"));
      isNew = add(std::move(info), bytes.data() + dataStart + entry.begin);
    }
    if (!isNew)
      return file.fail(what + " occurs twice");
  }
  if (std::optional<uint64_t> overlap = findOverlap(std::move(ranges)))
    return file.failAtByte(*overlap, "the data of two tensors overlap");
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Safetensors>> Safetensors::readFile(MappedFile file) {
  std::unique_ptr<Safetensors> result(new Safetensors(file.getPath()));
  if (llvm::Error error = result->addFile(std::move(file)))
    return error;
  return result;
}

llvm::Expected<std::unique_ptr<Safetensors>> Safetensors::readIndex(const MappedFile &index) {
  if (index.getBytes().size() > maxHeaderBytes)
    return index.fail("has " + Twine(index.getBytes().size()) + " bytes; accepted: up to " +
                      Twine(maxHeaderBytes));
  llvm::Expected<std::vector<ShardedTensor>> tensors = parseShardIndex(index);
  if (!tensors)
    return tensors.takeError();
  std::set<std::string> shards;
  for (const ShardedTensor &tensor : *tensors)
    shards.insert(tensor.shard);

  std::unique_ptr<Safetensors> result(new Safetensors(index.getPath()));
  for (const std::string &shard : shards) {
    llvm::SmallString<128> path = llvm::sys::path::parent_path(index.getPath());
    llvm::sys::path::append(path, shard);
    llvm::Expected<MappedFile> file = MappedFile::open(path);
    if (!file)
      return file.takeError();
    if (llvm::Error error = result->addFile(std::move(*file)))
      return error;
  }
  for (const ShardedTensor &tensor : *tensors)
    if (!result->find(tensor.name) && result->explain(tensor.name).empty())
      return index.fail("places tensor " + quote(tensor.name) + " in " + quote(tensor.shard) +
                        ", which does not have it");
  return result;
}

} // namespace tenon
