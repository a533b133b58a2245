// See KernelSet.h.
#include "codegen/cpu/KernelSet.h"

namespace tenon::cpu {

static std::vector<KernelSet> &sets() {
  static std::vector<KernelSet> all;
  return all;
}

void registerKernels(KernelSet set) { sets().insert(sets().begin(), std::move(set)); }
llvm::ArrayRef<KernelSet> getKernelSets() { return sets(); }

} // namespace tenon::cpu
