// See ReferenceBackend.h.
#include "codegen/reference/ReferenceBackend.h"
#include "codegen/Decomposed.h"
#include "codegen/ObjectEmitter.h"

using namespace mlir;

namespace tenon {

void ReferenceBackend::configure(PipelineOptions &options) const {
  options.precision = "f32";
  options.cacheType = "f32";
  options.pack = false;
}

llvm::Expected<NativeCode> ReferenceBackend::compile(ModuleOp module,
                                                     const TargetOptions &options) {
  // Old enough to run anywhere, new enough for vectors.
  CpuTarget target{"x86-64-v3", ""};
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine = createTargetMachine(target);
  if (!machine)
    return machine.takeError();

  llvm::LLVMContext context;
  llvm::Module code("reference", context);
  setTarget(code, **machine);
  DecomposedKernels kernels(code);
  auto getKernel = [&](sched::StageOp stage, bool) {
    return kernels.get(
        stage, SymbolTable::lookupNearestSymbolFrom<sched::KernelOp>(stage, stage.getKernelAttr()));
  };
  for (auto program : module.getOps<sched::ProgramOp>())
    if (llvm::Error error = emitProgram(
            program, ("tenon_" + program.getSymName() + "_reference").str(), code, getKernel))
      return error;
  VariantInfo variant{"x86-64-v3", "avx2,fma,f16c", "reference", 64};

  NativeCode native(options.form);
  optimise(code, **machine, target,
           [](const llvm::GlobalValue &value) { return value.getName().starts_with("tenon_"); });
  if (llvm::Error error = native.add(code, **machine))
    return error;
  if (llvm::Error error = native.addDescriptor(module, getName(), /*maxThreads=*/1, variant))
    return error;
  return native;
}

} // namespace tenon
