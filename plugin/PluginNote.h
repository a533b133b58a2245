// What stands in a plugin's file about itself, readable without loading it.
#ifndef TENON_PLUGIN_PLUGINNOTE_H
#define TENON_PLUGIN_PLUGINNOTE_H

#include <cstdint>

// Raised when PluginRegistry or a type that it mentions changes.
#define TENON_PLUGIN_ABI 1
#define TENON_PLUGIN_MAGIC "tenon plugin"
#define TENON_PLUGIN_SECTION ".tenon.plugin"

namespace tenon {

struct PluginNote {
  char magic[16];
  uint32_t abi;
  char tenon[20]; // version of Tenon that it was built with
  char llvm[24];  // and of LLVM
  char name[64];
  char version[32];
};

} // namespace tenon

#endif // TENON_PLUGIN_PLUGINNOTE_H
