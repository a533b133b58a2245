// Where the operands of a program's stages lie: places of runtime/kernel_abi.h, which depend on how
// many rows a batch has and how many blocks a pool.
//
//   sched.buffer tokens at 2304          arena + T * 2304
//   sched.view %b from 64                the same + 256
//   sched.constant @w1                   weights + its offset
//   sched.cache layer 3                  pool + blocks * 3 * the bytes of a block of a layer
#ifndef TENON_CODEGEN_OPERANDS_H
#define TENON_CODEGEN_OPERANDS_H

#include "ir/Sched.h"
#include "runtime/kernel_abi.h"
#include "llvm/ADT/DenseMap.h"

namespace tenon {

llvm::DenseMap<mlir::Value, tenon_operand> locateOperands(sched::ProgramOp program);

} // namespace tenon

#endif // TENON_CODEGEN_OPERANDS_H
