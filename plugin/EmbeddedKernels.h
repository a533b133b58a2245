// The bitcode of a plugin's own CPU kernels, which `tenon_add_plugin(... KERNELS ...)` puts into
// it.
#ifndef TENON_PLUGIN_EMBEDDEDKERNELS_H
#define TENON_PLUGIN_EMBEDDEDKERNELS_H

#include "llvm/ADT/StringRef.h"

namespace tenon {

// For a level of codegen/cpu/KernelSet.h. Every plugin has its own function of this name.
__attribute__((visibility("hidden"))) llvm::StringRef getEmbeddedKernels(llvm::StringRef level);

} // namespace tenon

#endif // TENON_PLUGIN_EMBEDDEDKERNELS_H
