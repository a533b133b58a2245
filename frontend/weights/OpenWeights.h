// Opens a checkpoint by what lies at the path, not by its name.
#ifndef TENON_FRONTEND_WEIGHTS_OPENWEIGHTS_H
#define TENON_FRONTEND_WEIGHTS_OPENWEIGHTS_H

#include "frontend/weights/StoredWeights.h"

namespace tenon {

// A GGUF file (then the result is a GgufFile, which has metadata too), a safetensors file or index,
// or a directory that has `model.safetensors` or `model.safetensors.index.json`.
llvm::Expected<std::unique_ptr<StoredWeights>> openWeights(llvm::StringRef path);

// Whether the SHA-256 of a file is the given one, 64 hexadecimal digits.
llvm::Error checkSha256(llvm::StringRef path, llvm::StringRef expectedHex);

} // namespace tenon

#endif // TENON_FRONTEND_WEIGHTS_OPENWEIGHTS_H
