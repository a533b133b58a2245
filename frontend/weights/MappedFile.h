// A file's bytes, mapped: nothing is read until it is looked at.
#ifndef TENON_FRONTEND_WEIGHTS_MAPPEDFILE_H
#define TENON_FRONTEND_WEIGHTS_MAPPEDFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>

namespace tenon {

class MappedFile {
public:
  // Refuses what is not a regular file.
  static llvm::Expected<MappedFile> open(llvm::StringRef path);
  // Bytes from elsewhere, under a name for messages.
  MappedFile(llvm::StringRef path, std::unique_ptr<llvm::MemoryBuffer> buffer)
      : path(path), buffer(std::move(buffer)) {}

  llvm::StringRef getPath() const { return path; }
  // Valid as long as this object or the one it is moved to.
  llvm::ArrayRef<uint8_t> getBytes() const {
    return llvm::arrayRefFromStringRef(buffer->getBuffer());
  }

  // "PATH: error: MESSAGE", or "PATH: error: at byte OFFSET: MESSAGE".
  llvm::Error fail(const llvm::Twine &message) const;
  llvm::Error failAtByte(uint64_t offset, const llvm::Twine &message) const;

private:
  std::string path;
  std::unique_ptr<llvm::MemoryBuffer> buffer;
};

// A name out of a file, for a message: in quotes, unprintable bytes escaped, cut when long.
std::string quote(llvm::StringRef text);

} // namespace tenon

#endif // TENON_FRONTEND_WEIGHTS_MAPPEDFILE_H
