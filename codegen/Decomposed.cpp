// See Decomposed.h.
#include "codegen/Decomposed.h"
#include "codegen/Error.h"
#include "llvm/Linker/Linker.h"

using namespace mlir;

namespace tenon {

KernelCall DecomposedKernels::get(sched::StageOp stage, sched::KernelOp kernel) {
  KernelToLower request{kernel, {}};
  KernelCall call;
  call.function = "decomposed." + kernel.getSymName().str();
  std::vector<int64_t> strides;
  for (Value operand : stage.getOperands()) {
    request.spaces.push_back(sched::getSpace(operand));
    call.function += request.spaces.back() == sched::Space::scored ? ".s" : ".t";
    if (auto type = dyn_cast<MemRefType>(operand.getType()))
      strides.push_back(sched::getRowStride(type));
  }
  requests.try_emplace(call.function, std::move(request));

  const auto *bytes = reinterpret_cast<const uint8_t *>(strides.data());
  call.shape.assign(bytes, bytes + strides.size() * sizeof(int64_t));
  for (unsigned i = 0; i < stage.getNumOperands(); ++i)
    call.io.push_back(i);
  return call;
}

llvm::Error DecomposedKernels::lower(llvm::StringRef function, llvm::Module &module) const {
  const KernelToLower &request = requests.find(function)->second;
  sched::KernelOp kernel = request.op;
  llvm::Expected<std::unique_ptr<llvm::Module>> lowered =
      lowerKernels(request, module.getContext());
  if (!lowered)
    return lowered.takeError();
  (*lowered)->getFunction(kernel.getSymName())->setName(function);
  (*lowered)->setDataLayout(module.getDataLayout());
  (*lowered)->setTargetTriple(module.getTargetTriple());
  if (llvm::Linker::linkModules(module, std::move(*lowered)))
    return internal("cannot link the lowering of " + kernel.getSymName());
  return llvm::Error::success();
}

} // namespace tenon
