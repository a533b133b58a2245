// A plugin's own kernels, which `tenon_add_plugin(... KERNELS ... DEVICE_SOURCES ...)` puts into
// it.
#ifndef TENON_PLUGIN_EMBEDDEDKERNELS_H
#define TENON_PLUGIN_EMBEDDEDKERNELS_H

#include "llvm/ADT/StringRef.h"

namespace tenon {

// For a level of codegen/cpu/KernelSet.h. Every plugin has its own function of this name.
__attribute__((visibility("hidden"))) llvm::StringRef getEmbeddedKernels(llvm::StringRef level);

// The texts of `tenon_add_plugin(... DEVICE_SOURCES ...)`, one after another: for
// codegen/cuda/DeviceKernelSet.h.
__attribute__((visibility("hidden"))) llvm::StringRef getEmbeddedDeviceSource();

} // namespace tenon

#endif // TENON_PLUGIN_EMBEDDEDKERNELS_H
