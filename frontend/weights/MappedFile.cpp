#include "frontend/weights/MappedFile.h"
#include "frontend/Value.h"
#include "llvm/Support/FileSystem.h"

using llvm::StringRef;
using llvm::Twine;
namespace fs = llvm::sys::fs;

namespace tenon {

llvm::Expected<MappedFile> MappedFile::open(StringRef path) {
  auto cannotOpen = [&](const Twine &why) {
    return failAt(Place::inFile(path), "cannot read: " + why);
  };
  fs::file_status status; // of what a link leads to
  if (std::error_code error = fs::status(path, status))
    return cannotOpen(error.message());
  // A pipe or a device would be read until memory ends.
  if (status.type() != fs::file_type::regular_file)
    return cannotOpen("not a regular file");
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return cannotOpen(buffer.getError().message());
  return MappedFile(path, std::move(*buffer));
}

llvm::Error MappedFile::fail(const Twine &message) const {
  return failAt(Place::inFile(path), message);
}

llvm::Error MappedFile::failAtByte(uint64_t offset, const Twine &message) const {
  return fail("at byte " + Twine(offset) + ": " + message);
}

std::string quote(StringRef text) {
  constexpr size_t longest = 80;
  std::string result = "'";
  for (char c : text.take_front(longest)) {
    uint8_t byte = static_cast<uint8_t>(c);
    if (byte < ' ' || byte == 0x7f)
      result += std::string("\\x") + llvm::hexdigit(byte >> 4) + llvm::hexdigit(byte & 15);
    else
      result += c;
  }
  return result + (text.size() > longest ? "...'" : "'");
}

} // namespace tenon
