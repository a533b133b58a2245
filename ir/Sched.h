// The sched dialect; see SchedOps.td.
#ifndef TENON_IR_SCHED_H
#define TENON_IR_SCHED_H

#include "ir/LLM.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"

#include "ir/SchedDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/SchedAttributes.h.inc"

#define GET_OP_CLASSES
#include "ir/SchedOps.h.inc"

namespace tenon {

// The dialects that a Tenon module is made of.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace tenon

namespace tenon::sched {

// memref<?xCxf32, strided<[stride, 1]>>; dense when the stride is the width.
mlir::MemRefType getBufferType(mlir::MLIRContext *context, int64_t columns, int64_t stride);
int64_t getColumns(mlir::MemRefType type);
int64_t getRowStride(mlir::MemRefType type);
// Which rows an operand of a stage has, a buffer or a view of one; `tokens` for weights and caches.
Space getSpace(mlir::Value operand);
// Whether any operand of a stage has the rows that are scored.
bool isScored(StageOp stage);
// What a stage runs.
KernelOp getKernel(StageOp stage);

} // namespace tenon::sched

#endif // TENON_IR_SCHED_H
