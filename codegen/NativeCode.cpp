// See NativeCode.h.
#include "codegen/NativeCode.h"

namespace tenon {

llvm::Error NativeCode::add(std::vector<CodeUnit> units) {
  llvm::Expected<std::vector<std::string>> compiled = compileUnits(std::move(units), form);
  if (!compiled)
    return compiled.takeError();
  for (std::string &part : *compiled)
    parts.push_back(std::move(part));
  return llvm::Error::success();
}

llvm::Error NativeCode::addDescriptor(mlir::ModuleOp module, llvm::StringRef target,
                                      int32_t maxThreads, llvm::ArrayRef<VariantInfo> variants) {
  std::vector<CodeUnit> units;
  units.emplace_back("descriptor", CpuTarget{"x86-64", ""});
  emitDescriptor(units.back().getModule(), module, target, maxThreads, variants);
  for (const VariantInfo &variant : variants)
    variantNames.push_back(variant.name);
  return add(std::move(units));
}

llvm::Error
NativeCode::addDeviceDescriptor(mlir::ModuleOp module, llvm::StringRef target,
                                llvm::ArrayRef<std::string> images,
                                llvm::function_ref<llvm::Constant *(llvm::Module &)> makeDevice) {
  std::vector<CodeUnit> units;
  llvm::Module &object = units.emplace_back("descriptor", CpuTarget{"x86-64", ""}).getModule();
  emitDescriptor(object, module, target, /*maxThreads=*/1, {}, makeDevice(object));
  variantNames.assign(images.begin(), images.end());
  return add(std::move(units));
}

} // namespace tenon
