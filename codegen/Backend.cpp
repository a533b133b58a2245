// The backends by name.
#include "codegen/Backend.h"
#include "codegen/Error.h"
#include "codegen/cpu/CpuBackend.h"
#include "codegen/cuda/CudaBackend.h"
#include "codegen/reference/ReferenceBackend.h"
#include <map>

namespace tenon {

static std::map<std::string, BackendFactory> &backends() {
  static std::map<std::string, BackendFactory> all = {
      {"cpu", [] { return std::make_unique<cpu::CpuBackend>(); }},
      {"cuda", [] { return std::make_unique<cuda::CudaBackend>(); }},
      {"reference", [] { return std::make_unique<ReferenceBackend>(); }},
  };
  return all;
}

bool registerBackend(llvm::StringRef name, BackendFactory make) {
  return backends().try_emplace(name.str(), std::move(make)).second;
}

llvm::Expected<std::unique_ptr<Backend>> createBackend(llvm::StringRef name) {
  if (auto found = backends().find(name.str()); found != backends().end())
    return found->second();
  std::string accepted;
  for (const auto &[known, make] : backends())
    accepted += (accepted.empty() ? "" : ", ") + known;
  return refused("--target: unknown target '" + name + "'; accepted: " + accepted);
}

} // namespace tenon
