// All that a plugin includes to add itself to the compiler.
//
//   static void add(tenon::PluginRegistry &registry) {
//     registry.addPass([] { return std::make_unique<MyPass>(); }, "after-fuse");
//   }
//   TENON_PLUGIN("my-fusion", "1.0", add)
//
// A plugin is a module that links `Tenon::Tenon` (CMake: `tenon_add_plugin`), so that it shares the
// dialects of the compiler. docs/plugins.md is the tutorial; `tenon new` writes a project.
#ifndef TENON_PLUGIN_TENONPLUGIN_H
#define TENON_PLUGIN_TENONPLUGIN_H

#include "plugin/PluginRegistry.h"

// Exports the plugin. The note is read before any code of the plugin runs: a plugin for another
// Tenon or another LLVM is refused with both versions named.
#define TENON_PLUGIN(NAME, VERSION, ADD)                                                           \
  extern "C" __attribute__((section(TENON_PLUGIN_SECTION), used, visibility("default")))           \
  const ::tenon::PluginNote tenon_plugin_note = {                                                  \
      TENON_PLUGIN_MAGIC, TENON_PLUGIN_ABI, TENON_VERSION, LLVM_VERSION_STRING, NAME, VERSION};    \
  extern "C" __attribute__((visibility("default"))) const void *tenon_plugin_dialect() {           \
    return ::mlir::TypeID::get<::tenon::llm::LLMDialect>().getAsOpaquePointer();                   \
  }                                                                                                \
  extern "C" __attribute__((visibility("default"))) void tenon_plugin_add(                         \
      ::tenon::PluginRegistry &registry) {                                                         \
    ADD(registry);                                                                                 \
  }

#endif // TENON_PLUGIN_TENONPLUGIN_H
