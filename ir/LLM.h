// The llm dialect; see LLMDialect.td and LLMOps.td.
#ifndef TENON_IR_LLM_H
#define TENON_IR_LLM_H

#include "ir/Interfaces.h"
#include "ir/Storage.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/Enums.h.inc" // of both dialects
#include "ir/LLMDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/LLMAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/LLMTypes.h.inc"

#define GET_OP_CLASSES
#include "ir/LLMOps.h.inc"

namespace tenon::llm {

// Rows of `columns` f32 elements.
mlir::RankedTensorType getRowsType(mlir::MLIRContext *context, int64_t columns);
// Columns of a rows type.
int64_t getColumns(mlir::Value rows);
// Packed layout of a storage: 64 bytes of a tile hold 16 rows of 1, 2 or 4 columns; with
// `keepRows`, rows of 16-bit elements stay whole.
Layout getPackedLayout(tenon::Storage storage, bool keepRows = false);

} // namespace tenon::llm

#endif // TENON_IR_LLM_H
