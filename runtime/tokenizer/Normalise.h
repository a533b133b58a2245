// Unicode normal forms that keep track of where each character came from.
#ifndef TENON_RUNTIME_TOKENIZER_NORMALISE_H
#define TENON_RUNTIME_TOKENIZER_NORMALISE_H

#include "runtime/tokenizer/Blob.h"
#include "runtime/tokenizer/Piece.h"

namespace tenon::rt {

/// Writes the normal form `kind` of `piece` to `out`; false, and nothing written, if a glance shows
/// that the text is already in that form. A character made of several is said to come from the
/// first of them.
bool normalForm(blob::StepKind kind, const Piece &piece, Rewritten &out);

} // namespace tenon::rt

#endif // TENON_RUNTIME_TOKENIZER_NORMALISE_H
