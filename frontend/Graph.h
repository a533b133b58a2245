// Builds the textbook module of a model from the nodes of its architecture file.
#ifndef TENON_FRONTEND_GRAPH_H
#define TENON_FRONTEND_GRAPH_H

#include "frontend/Architecture.h"
#include "ir/Storage.h"
#include "ir/WeightSource.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tenon {

// What a checkpoint calls a tensor, how it is stored there, and what must be done to it.
struct StoredTensor {
  std::string name;
  Storage storage = Storage::BF16;
  int64_t firstRow = 0, ofRows = 0; // it is a part of one of `ofRows` rows; 0: it is all
  int64_t deinterleaveHeads = 0;    // undo interleaved rotary order; 0: nothing to do
};

// Finds the tensor behind a canonical name, of which the part from `suffix` on is ".weight" or
// ".bias", and checks its shape. `place` is where the architecture file names it.
using TensorResolver = llvm::function_ref<llvm::Expected<StoredTensor>(
    const std::string &stem, const std::string &suffix, llvm::ArrayRef<int64_t> shape,
    const Place &place)>;

struct Graph {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<TensorInfo> tensors; // every tensor it reads, once, under its canonical name
  int64_t parameters;              // elements of all of them
};

struct GraphOptions {
  llvm::StringRef model;
  bool emitMarks = false; // whether nodes that a `mark:` names become results
};

llvm::Expected<Graph> buildGraph(mlir::MLIRContext &context, const Architecture &architecture,
                                 const Value &parameters, const GraphOptions &options,
                                 TensorResolver resolve);

} // namespace tenon

#endif // TENON_FRONTEND_GRAPH_H
