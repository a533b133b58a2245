// The values that stand for llm values in a reference decomposition.
//
//   tensor<?xCxf32> rows    the same tensor
//   !llm.weight<NxKx...>    tensor<NxKxf32> (f64 tables: tensor<Nxf64>), plain row-major
//   !llm.batch              ReferenceBatch
//   !llm.cache<...>         ReferenceCache: one layer
#ifndef TENON_IR_REFERENCE_H
#define TENON_IR_REFERENCE_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace tenon {

// i32 tensors; T tokens, S sequences, R scored rows. See runtime/kernel_abi.h for their meaning.
struct ReferenceBatch {
  mlir::Value ids;           // [T]
  mlir::Value positions;     // [T]
  mlir::Value sequenceOf;    // [T]
  mlir::Value starts;        // [S + 1]
  mlir::Value lengths;       // [S]
  mlir::Value blockTable;    // [S, max_blocks]
  mlir::Value scoredRows;    // [R]
  mlir::Value types;         // [T]
  mlir::Value memoryLengths; // [S]
  mlir::Value memoryTable;   // [S, memory_max_blocks]
};

// Cached keys or values.
struct ReferenceRows {
  mlir::Value elements; // tensor<blocks x heads x TENON_BLOCK_TOKENS x head_dim x element>
  mlir::Value scales; // tensor<blocks x heads x TENON_BLOCK_TOKENS x groups x bf16>; null unless i8
};

// `value` is `key` where the values are the first elements of the keys.
struct ReferenceCache {
  ReferenceRows key;
  ReferenceRows value;
};

class ReferenceMapping {
public:
  bool contains(mlir::Value value) const {
    return values.contains(value) || batches.contains(value) || caches.contains(value);
  }
  mlir::Value lookup(mlir::Value value) const { return values.lookup(value); }
  const ReferenceBatch &lookupBatch(mlir::Value value) const { return batches.find(value)->second; }
  const ReferenceCache &lookupCache(mlir::Value value) const { return caches.find(value)->second; }

  void map(mlir::Value from, mlir::Value to) { values[from] = to; }
  void map(mlir::Value from, const ReferenceBatch &to) { batches[from] = to; }
  void map(mlir::Value from, const ReferenceCache &to) { caches[from] = to; }

  // `to` is a value of the same kind that is mapped already.
  void mapAs(mlir::Value from, mlir::Value to) {
    if (auto value = values.lookup(to))
      values[from] = value;
    else if (auto batch = batches.find(to); batch != batches.end())
      batches[from] = ReferenceBatch(batch->second);
    else if (auto cache = caches.find(to); cache != caches.end())
      caches[from] = ReferenceCache(cache->second);
  }

private:
  llvm::DenseMap<mlir::Value, mlir::Value> values;
  llvm::DenseMap<mlir::Value, ReferenceBatch> batches;
  llvm::DenseMap<mlir::Value, ReferenceCache> caches;
};

// Decomposes the operations of a block in order, all but its terminator; `llm.fused` by its body.
// Operations whose results are mapped already (weights) are left out. Reports the first operation
// that has no decomposition.
mlir::LogicalResult decomposeBlock(mlir::Block &block, mlir::OpBuilder &builder,
                                   ReferenceMapping &mapping);

} // namespace tenon

#endif // TENON_IR_REFERENCE_H
