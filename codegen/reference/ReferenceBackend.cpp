// See ReferenceBackend.h.
#include "codegen/reference/ReferenceBackend.h"
#include "codegen/Decomposed.h"
#include "codegen/Descriptor.h"
#include "codegen/ObjectEmitter.h"

using namespace mlir;

namespace tenon {

void ReferenceBackend::configure(PipelineOptions &options) const {
  options.precision = "f32";
  options.cacheType = "f32";
  options.pack = false;
}

llvm::Expected<NativeCode> ReferenceBackend::compile(ModuleOp module, const TargetOptions &) {
  // Old enough to run anywhere, new enough for vectors.
  CpuTarget target{"x86-64-v3", ""};
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine = createTargetMachine(target);
  if (!machine)
    return machine.takeError();

  llvm::LLVMContext context;
  llvm::Module code("reference", context);
  code.setTargetTriple((*machine)->getTargetTriple());
  code.setDataLayout((*machine)->createDataLayout());
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

  NativeCode native;
  native.variants = {variant.name};
  optimise(code, **machine, target,
           [](const llvm::GlobalValue &value) { return value.getName().starts_with("tenon_"); });
  native.llvmText.push_back(printModule(code));
  llvm::Expected<std::string> object = emitObject(code, **machine);
  if (!object)
    return object.takeError();
  native.objects.push_back(std::move(*object));

  llvm::Module descriptor("descriptor", context);
  descriptor.setTargetTriple((*machine)->getTargetTriple());
  descriptor.setDataLayout((*machine)->createDataLayout());
  emitDescriptor(descriptor, module, getName(), /*maxThreads=*/1, variant);
  native.llvmText.push_back(printModule(descriptor));
  object = emitObject(descriptor, **machine);
  if (!object)
    return object.takeError();
  native.objects.push_back(std::move(*object));
  return native;
}

} // namespace tenon
