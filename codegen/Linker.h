// Objects to one object, or with the runtime to an executable or a shared library, by the system's
// C++ compiler.
#ifndef TENON_CODEGEN_LINKER_H
#define TENON_CODEGEN_LINKER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace tenon {

enum class LinkForm { executable, library, object };

// `libraryFolder` holds libtenon_runtime.a and its companions.
llvm::Error linkObjects(llvm::ArrayRef<std::string> objects, LinkForm form,
                        llvm::StringRef libraryFolder, llvm::StringRef output);

// The bytes of a shared library made of one C++ source.
llvm::Expected<std::string> compileHostLibrary(llvm::StringRef source,
                                               llvm::ArrayRef<std::string> flags);

} // namespace tenon

#endif // TENON_CODEGEN_LINKER_H
