// The parts of the plugin: a dialect with one operation, a pass, kernels.
#ifndef QK_H
#define QK_H

#include "codegen/cpu/KernelSet.h"
#include "codegen/cuda/DeviceKernelSet.h"
#include "ir/LLM.h"
#include "mlir/Pass/Pass.h"

#include "QkDialect.h.inc"
#define GET_OP_CLASSES
#include "QkOps.h.inc"

namespace qk {

// rope(rms_norm(input)), head by head.
struct NormRope {
  mlir::Value input, weight, angles;
  int64_t heads, headDim;
  tenon::llm::RopeStyle style;
  double eps;
  size_t operations; // 2, or 1 for qk.norm_rope

  // What `value` is, if it is that.
  static std::optional<NormRope> match(mlir::Value value);
};

std::unique_ptr<mlir::Pass> createFuseQkNormRope();
tenon::cpu::KernelSet getKernels();
tenon::cuda::DeviceKernelSet getDeviceKernels();

} // namespace qk

#endif // QK_H
