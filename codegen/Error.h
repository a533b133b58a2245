// Errors of the compiler that carry the exit code they end with.
#ifndef TENON_CODEGEN_ERROR_H
#define TENON_CODEGEN_ERROR_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <string>

namespace tenon {

// The user's input was refused (exit code 1).
inline llvm::Error refused(const llvm::Twine &message) {
  return llvm::createStringError(std::make_error_code(std::errc::invalid_argument), message.str());
}

// The machine lacks something (exit code 3).
inline llvm::Error lacking(const llvm::Twine &message) {
  return llvm::createStringError(std::make_error_code(std::errc::not_supported), message.str());
}

// Something that only a bug explains (exit code 70).
inline llvm::Error internal(const llvm::Twine &message) {
  return llvm::createStringError(std::make_error_code(std::errc::state_not_recoverable),
                                 "internal error: " + message.str());
}

} // namespace tenon

#endif // TENON_CODEGEN_ERROR_H
