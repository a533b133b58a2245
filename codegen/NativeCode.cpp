// See NativeCode.h.
#include "codegen/NativeCode.h"
#include "codegen/ObjectEmitter.h"

namespace tenon {

llvm::Error NativeCode::add(llvm::Module &module, llvm::TargetMachine &machine) {
  if (form == CodeForm::text) {
    parts.push_back(printModule(module));
    return llvm::Error::success();
  }
  llvm::Expected<std::string> object = emitObject(module, machine);
  if (!object)
    return object.takeError();
  parts.push_back(std::move(*object));
  return llvm::Error::success();
}

llvm::Error NativeCode::addDescriptor(mlir::ModuleOp module, llvm::StringRef target,
                                      int32_t maxThreads, llvm::ArrayRef<VariantInfo> variants) {
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine =
      createTargetMachine({"x86-64", ""});
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  llvm::Module descriptor("descriptor", context);
  setTarget(descriptor, **machine);
  emitDescriptor(descriptor, module, target, maxThreads, variants);
  for (const VariantInfo &variant : variants)
    variantNames.push_back(variant.name);
  return add(descriptor, **machine);
}

} // namespace tenon
