// See KernelBitcode.h.
#include "codegen/cpu/KernelBitcode.h"
#include "codegen/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Linker/Linker.h"

namespace tenon::cpu {

// Bodies are read when they are asked for.
static llvm::Expected<std::unique_ptr<llvm::Module>>
read(llvm::BitcodeModule module, llvm::LLVMContext &context, llvm::StringRef name) {
  auto read = module.getLazyModule(context, /*ShouldLazyLoadMetadata=*/true, /*IsImporting=*/false);
  if (!read)
    return refused("kernels of " + name + ": " + llvm::toString(read.takeError()));
  return read;
}

llvm::Expected<KernelBitcode> KernelBitcode::open(llvm::MemoryBufferRef buffer) {
  KernelBitcode result;
  result.name = buffer.getBufferIdentifier();
  auto modules = llvm::getBitcodeModuleList(buffer);
  if (!modules)
    return refused("kernels of " + result.name + ": " + llvm::toString(modules.takeError()));
  result.modules = std::move(*modules);
  for (auto [i, module] : llvm::enumerate(result.modules)) {
    llvm::LLVMContext context;
    auto functions = read(module, context, result.name);
    if (!functions)
      return functions.takeError();
    for (const llvm::Function &function : **functions)
      if (!function.isDeclaration() && !function.hasLocalLinkage())
        result.definedIn.try_emplace(function.getName(), i);
  }
  return result;
}

size_t KernelBitcode::getSize(llvm::StringRef function) const {
  auto entry = definedIn.find(function);
  return entry == definedIn.end() ? 0 : modules[entry->second].getBuffer().size();
}

llvm::Error KernelBitcode::linkInto(llvm::Module &code) const {
  llvm::SmallSetVector<size_t, 4> needed;
  for (size_t linked = 0;; ++linked) {
    for (const llvm::Function &function : code)
      if (function.isDeclaration())
        if (auto entry = definedIn.find(function.getName()); entry != definedIn.end())
          needed.insert(entry->second);
    if (linked == needed.size())
      return llvm::Error::success();
    auto module = read(modules[needed[linked]], code.getContext(), name);
    if (!module)
      return module.takeError();
    (*module)->setDataLayout(code.getDataLayout());
    (*module)->setTargetTriple(code.getTargetTriple());
    if (llvm::Linker::linkModules(code, std::move(*module), llvm::Linker::LinkOnlyNeeded))
      return refused("cannot link the kernels of " + name);
  }
}

} // namespace tenon::cpu
