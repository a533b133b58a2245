// Makes the tokenizer blob that an executable carries (runtime/tokenizer/Blob.h).
#ifndef TENON_FRONTEND_TOKENIZER_BUILDTOKENIZER_H
#define TENON_FRONTEND_TOKENIZER_BUILDTOKENIZER_H

#include "frontend/tokenizer/GgufMetadata.h"
#include "llvm/Support/Error.h"

namespace tenon {

/// From a Hugging Face tokenizer.json.
llvm::Expected<std::vector<uint8_t>> buildTokenizerFromJson(llvm::StringRef path);

/// From the `tokenizer.ggml.*` metadata of a GGUF file. models/tokenizers.yaml says what their
/// names mean.
llvm::Expected<std::vector<uint8_t>> buildTokenizerFromGguf(const GgufMetadata &metadata,
                                                            llvm::StringRef tokenizersYaml);

} // namespace tenon

#endif // TENON_FRONTEND_TOKENIZER_BUILDTOKENIZER_H
