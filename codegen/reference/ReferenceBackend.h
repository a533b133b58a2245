// The reference backend: every kernel is the decomposition of its body, in f32, on one thread.
#ifndef TENON_CODEGEN_REFERENCE_REFERENCEBACKEND_H
#define TENON_CODEGEN_REFERENCE_REFERENCEBACKEND_H

#include "codegen/Backend.h"

namespace tenon {

class ReferenceBackend : public Backend {
public:
  llvm::StringRef getName() const override { return "reference"; }
  void configure(PipelineOptions &options) const override;
  llvm::Expected<NativeCode> compile(mlir::ModuleOp module, const TargetOptions &options) override;
};

} // namespace tenon

#endif // TENON_CODEGEN_REFERENCE_REFERENCEBACKEND_H
