// The backends by name.
#include "codegen/Backend.h"
#include "codegen/Error.h"
#include "codegen/cpu/CpuBackend.h"
#include "codegen/reference/ReferenceBackend.h"

namespace tenon {

llvm::Expected<std::unique_ptr<Backend>> createBackend(llvm::StringRef name) {
  if (name == "cpu")
    return std::make_unique<cpu::CpuBackend>();
  if (name == "reference")
    return std::make_unique<ReferenceBackend>();
  if (name == "cuda")
    return lacking("--target cuda: not built in; accepted: cpu, reference");
  return refused("--target: unknown target '" + name + "'; accepted: cpu, cuda, reference");
}

} // namespace tenon
