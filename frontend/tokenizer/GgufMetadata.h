// What the tokenizer needs to know of a GGUF file's metadata; the GGUF reader provides it.
#ifndef TENON_FRONTEND_TOKENIZER_GGUFMETADATA_H
#define TENON_FRONTEND_TOKENIZER_GGUFMETADATA_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tenon {

class GgufMetadata {
public:
  virtual ~GgufMetadata() = default;

  virtual llvm::StringRef fileName() const = 0; // for messages

  // Nothing if there is no such key, or if its value is of another kind. Strings are views into the
  // file.
  virtual std::optional<llvm::StringRef> getString(llvm::StringRef key) const = 0;
  virtual std::optional<bool> getBool(llvm::StringRef key) const = 0;
  virtual std::optional<int64_t> getInteger(llvm::StringRef key) const = 0; // of any width
  virtual std::optional<std::vector<llvm::StringRef>> getStrings(llvm::StringRef key) const = 0;
  virtual std::optional<std::vector<int64_t>> getIntegers(llvm::StringRef key) const = 0;
};

} // namespace tenon

#endif // TENON_FRONTEND_TOKENIZER_GGUFMETADATA_H
