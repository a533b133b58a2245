// See ReferenceBackend.h.
#include "codegen/reference/ReferenceBackend.h"
#include "codegen/Decomposed.h"

using namespace mlir;

namespace tenon {

void ReferenceBackend::configure(PipelineOptions &options) const {
  options.precision = "f32";
  if (options.cacheType.empty())
    options.cacheType = "f32";
  options.pack = false;
}

llvm::Expected<NativeCode> ReferenceBackend::compile(ModuleOp module,
                                                     const TargetOptions &options) {
  // Old enough to run anywhere, new enough for vectors.
  CpuTarget target{"x86-64-v3", ""};
  std::vector<CodeUnit> units;
  units.emplace_back("programs", target, Effort::glue);
  DecomposedKernels decomposed;
  SpecialisationSet kernels("tenon_reference");
  auto getKernel = [&](sched::StageOp stage, bool) {
    return decomposed.get(stage, sched::getKernel(stage));
  };
  for (auto program : module.getOps<sched::ProgramOp>())
    if (llvm::Error error =
            emitProgram(program, ("tenon_" + program.getSymName() + "_reference").str(),
                        units.front().getModule(), getKernel, kernels))
      return error;
  for (const Specialisation &kernel : kernels.getAll()) {
    CodeUnit &unit = units.emplace_back(kernel.symbol, target);
    emitSpecialisation(kernel, unit.getModule());
    if (llvm::Error error = decomposed.lower(kernel.function, unit.getModule()))
      return error;
  }
  VariantInfo variant{"x86-64-v3", "avx2,fma,f16c", "reference", 64};

  NativeCode native(options.form);
  if (llvm::Error error = native.add(std::move(units)))
    return error;
  if (llvm::Error error = native.addDescriptor(module, getName(), /*maxThreads=*/1, variant))
    return error;
  return native;
}

} // namespace tenon
