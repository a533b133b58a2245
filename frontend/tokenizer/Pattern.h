// Regular expressions as tokenizer files write them (Oniguruma's syntax) -> as PCRE2 reads them.
//
// Nearly all is common to both. What differs is rewritten: \s, \w and their complements get
// Unicode's definitions, ^ and $ match at lines, a class inside a class is united with it, \uHHHH
// is \x{HHHH}. What would silently mean something else (intersections of classes, \h) is refused.
#ifndef TENON_FRONTEND_TOKENIZER_PATTERN_H
#define TENON_FRONTEND_TOKENIZER_PATTERN_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace tenon {

llvm::Expected<std::string> translatePattern(llvm::StringRef pattern);

/// A pattern that matches exactly this text.
std::string literalPattern(llvm::StringRef text);

} // namespace tenon

#endif // TENON_FRONTEND_TOKENIZER_PATTERN_H
