// What a backend gives: code objects, or text when that is what was asked for or all it makes.
#ifndef TENON_CODEGEN_NATIVECODE_H
#define TENON_CODEGEN_NATIVECODE_H

#include "codegen/CodeUnit.h"
#include "codegen/Descriptor.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace tenon {

class NativeCode {
public:
  explicit NativeCode(CodeForm form) : form(form) {}

  llvm::Error add(std::vector<CodeUnit> units);
  // A finished part: an object, or text.
  void add(std::string part) { parts.push_back(std::move(part)); }
  // The part with `tenon_compiled`, for any x86-64.
  llvm::Error addDescriptor(mlir::ModuleOp module, llvm::StringRef target, int32_t maxThreads,
                            llvm::ArrayRef<VariantInfo> variants);
  // The same for a device: `makeDevice` makes the tenon_device_code.
  llvm::Error addDeviceDescriptor(mlir::ModuleOp module, llvm::StringRef target,
                                  llvm::ArrayRef<std::string> images,
                                  llvm::function_ref<llvm::Constant *(llvm::Module &)> makeDevice);

  CodeForm getForm() const { return form; }
  // ELF, LLVM IR, or what else a backend writes.
  const std::vector<std::string> &getParts() const { return parts; }
  // Names of the variants, best first.
  const std::vector<std::string> &getVariants() const { return variantNames; }

private:
  CodeForm form;
  std::vector<std::string> parts;
  std::vector<std::string> variantNames;
};

} // namespace tenon

#endif // TENON_CODEGEN_NATIVECODE_H
