// The `tenon_compiled` struct of runtime/kernel_abi.h as data of an object.
#ifndef TENON_CODEGEN_DESCRIPTOR_H
#define TENON_CODEGEN_DESCRIPTOR_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"

namespace tenon {

struct VariantInfo {
  std::string name;     // for people
  std::string features; // as in /proc/cpuinfo, comma-separated
  std::string suffix;   // programs are called tenon_prefill_<suffix>, tenon_decode_<suffix>
  int64_t scratchBytes;
};

// Defines `tenon_compiled` in `object`. `maxThreads` 1 means that programs are not cut into slices.
// `device` is a tenon_device_code in the object, where programs run on a device.
void emitDescriptor(llvm::Module &object, mlir::ModuleOp module, llvm::StringRef target,
                    int32_t maxThreads, llvm::ArrayRef<VariantInfo> variants,
                    llvm::Constant *device = nullptr);

// Length of the weights section.
int64_t getWeightBytes(mlir::ModuleOp module);

// Stands where the digest of the weights goes, which is known once they are written; `stampDigest`
// replaces it in a linked file. Returns false when it is not there exactly once.
bool stampDigest(llvm::MutableArrayRef<char> image, int64_t weightBytes, uint64_t digest);

} // namespace tenon

#endif // TENON_CODEGEN_DESCRIPTOR_H
