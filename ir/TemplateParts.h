// What builders of nodes share: reading arguments, and linears whose tensor holds more than theirs.
#ifndef TENON_IR_TEMPLATEPARTS_H
#define TENON_IR_TEMPLATEPARTS_H

#include "ir/LLM.h"

// Node arguments are read in order; the first failure ends the node.
#define TENON_READ(name, expression)                                                               \
  auto name##OrFailure = (expression);                                                             \
  if (failed(name##OrFailure))                                                                     \
    return failure();                                                                              \
  const auto &name = *name##OrFailure

namespace tenon::llm {

// The tensor may be that of several projections: rows `first` and on of each group of `every`; and
// it may be stored as [in, out], and a linear's as a stack of matrices, one for each head. The
// arguments {transposed, rows, first, every}.
struct TensorPart {
  int64_t rows, first, count, every; // `count` of each `every`
  bool transposed;
  int64_t stack; // matrices of as many rows

  static mlir::FailureOr<TensorPart> read(TemplateArgs &args, int64_t out, int64_t stack = 1);

  // Of the tensor, for a linear of `in` inputs.
  llvm::SmallVector<int64_t> getShape(int64_t in) const;
  // The linear's own part of a matrix (or of each of a stack), and of a vector.
  mlir::Value takeMatrix(TemplateArgs &args, mlir::Value tensor) const;
  mlir::Value take(TemplateArgs &args, mlir::Value tensor) const;
};

} // namespace tenon::llm

#endif // TENON_IR_TEMPLATEPARTS_H
