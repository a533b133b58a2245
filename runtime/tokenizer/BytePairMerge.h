// The heart of byte pair encoding: merge neighbours, lowest rank first and leftmost among equals,
// until no neighbours can be merged.
#ifndef TENON_RUNTIME_TOKENIZER_BYTEPAIRMERGE_H
#define TENON_RUNTIME_TOKENIZER_BYTEPAIRMERGE_H

#include "runtime/tokenizer/Model.h"

namespace tenon::rt {

/// Merges `symbols[0 .. count)` in place and returns how many are left. O(n²) with a tiny constant
/// for words, O(n log n) for whatever else someone may feed us.
size_t mergePairs(const BlobView &view, WordToken *symbols, size_t count);

} // namespace tenon::rt

#endif // TENON_RUNTIME_TOKENIZER_BYTEPAIRMERGE_H
