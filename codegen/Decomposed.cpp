// See Decomposed.h.
#include "codegen/Decomposed.h"
#include "codegen/Error.h"
#include "codegen/KernelLowering.h"
#include "llvm/Linker/Linker.h"

using namespace mlir;

namespace tenon {

llvm::Expected<KernelCall> DecomposedKernels::get(sched::StageOp stage, sched::KernelOp kernel) {
  KernelToLower request{kernel, {}};
  std::string key = kernel.getSymName().str();
  std::vector<int64_t> strides;
  for (Value operand : stage.getOperands()) {
    request.spaces.push_back(sched::getSpace(operand));
    key += request.spaces.back() == sched::Space::scored ? ".s" : ".t";
    if (auto type = dyn_cast<MemRefType>(operand.getType()))
      strides.push_back(sched::getRowStride(type));
  }

  auto [entry, isNew] = names.try_emplace(key);
  if (isNew) {
    llvm::Expected<std::unique_ptr<llvm::Module>> lowered =
        lowerKernels(request, module.getContext());
    if (!lowered)
      return lowered.takeError();
    entry->second = "decomposed." + key;
    (*lowered)->getFunction(kernel.getSymName())->setName(entry->second);
    // Whatever else it brings stays its own.
    for (llvm::Function &function : **lowered)
      if (!function.isDeclaration() && function.getName() != entry->second)
        function.setLinkage(llvm::GlobalValue::InternalLinkage);
    (*lowered)->setDataLayout(module.getDataLayout());
    (*lowered)->setTargetTriple(module.getTargetTriple());
    if (llvm::Linker::linkModules(module, std::move(*lowered)))
      return internal("cannot link the lowering of " + kernel.getSymName());
  }

  KernelCall call;
  call.function = module.getFunction(entry->second);
  const auto *bytes = reinterpret_cast<const uint8_t *>(strides.data());
  call.shape.assign(bytes, bytes + strides.size() * sizeof(int64_t));
  for (unsigned i = 0; i < stage.getNumOperands(); ++i)
    call.io.push_back(i);
  return call;
}

} // namespace tenon
