// A file of kernels as bitcode: a module for each source, one after another. Of all the sources a
// kernel needs one or two, so that is what is read for it.
#ifndef TENON_CODEGEN_CPU_KERNELBITCODE_H
#define TENON_CODEGEN_CPU_KERNELBITCODE_H

#include "llvm/ADT/StringMap.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"
#include <vector>

namespace tenon::cpu {

class KernelBitcode {
public:
  // `buffer` outlives the result. Its identifier names the kernels in errors.
  static llvm::Expected<KernelBitcode> open(llvm::MemoryBufferRef buffer);

  // Adds the definitions of what `code` declares, and of what those need. Functions that are not
  // here stay declared.
  llvm::Error linkInto(llvm::Module &code) const;

  // Bytes of the module with a function: how much there is to specialise. 0 without one.
  size_t getSize(llvm::StringRef function) const;

private:
  llvm::StringRef name;
  std::vector<llvm::BitcodeModule> modules;
  llvm::StringMap<size_t> definedIn; // function → module
};

} // namespace tenon::cpu

#endif // TENON_CODEGEN_CPU_KERNELBITCODE_H
