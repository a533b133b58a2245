#include "frontend/weights/OpenWeights.h"
#include "frontend/Value.h"
#include "frontend/weights/Gguf.h"
#include "frontend/weights/Safetensors.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

using llvm::StringRef;
namespace fs = llvm::sys::fs;

namespace tenon {

static constexpr StringRef accepted =
    "; accepted: a GGUF file, a safetensors file, or a directory with model.safetensors or "
    "model.safetensors.index.json";

static llvm::Expected<std::unique_ptr<StoredWeights>> openFile(StringRef path) {
  llvm::Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  StringRef start = llvm::toStringRef(file->getBytes()).take_front(64);
  if (start.starts_with("GGUF"))
    return GgufFile::read(std::move(*file));
  // A safetensors header starts at byte 8. Its size may start like JSON, but ends in a zero byte.
  bool hasHeader = start.size() > 8 && start[8] == '{';
  if (start.starts_with("{") && !(hasHeader && start[7] == 0))
    return Safetensors::readIndex(*file);
  if (hasHeader)
    return Safetensors::readFile(std::move(*file));
  if (start.starts_with("version https://git-lfs"))
    return file->fail("is a Git LFS pointer, not the file itself; fetch it with `git lfs pull`");
  if (start.starts_with("PK\x03\x04"))
    return file->fail("is an archive, perhaps a PyTorch pickle, which is not read" + accepted);
  return file->fail("is no checkpoint: it starts with " + quote(start.take_front(8)) + accepted);
}

llvm::Expected<std::unique_ptr<StoredWeights>> openWeights(StringRef path) {
  fs::file_status status;
  if (std::error_code error = fs::status(path, status))
    return failAt(Place::inFile(path), error.message() + accepted);
  if (status.type() != fs::file_type::directory_file)
    return openFile(path);
  for (StringRef name : {"model.safetensors", "model.safetensors.index.json"}) {
    llvm::SmallString<128> file = path;
    llvm::sys::path::append(file, name);
    if (fs::exists(file))
      return openFile(file);
  }
  return failAt(Place::inFile(path), "this directory has no weights" + accepted);
}

llvm::Error checkSha256(StringRef path, StringRef expectedHex) {
  Place place = Place::inFile(path);
  if (expectedHex.size() != 64 || !llvm::all_of(expectedHex, llvm::isHexDigit))
    return failAt(place,
                  "sha256 is to be " + quote(expectedHex) + "; accepted: 64 hexadecimal digits");
  llvm::Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  if (file->getBytes().size() > UINT32_MAX) // the digest below counts bytes in 32 bits
    return file->fail("has 4 GiB or more, too much to check a sha256 of");
  std::string found = llvm::toHex(llvm::SHA256::hash(file->getBytes()), /*LowerCase=*/true);
  if (expectedHex.equals_insensitive(found))
    return llvm::Error::success();
  return file->fail("sha256 is " + found + "; accepted: " + expectedHex.lower());
}

} // namespace tenon
