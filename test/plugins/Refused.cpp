// Libraries that are no plugins of this Tenon; CMake defines in which way.
#include "codegen/Version.h"
#include "plugin/PluginNote.h"
#include "llvm/Config/llvm-config.h"

#ifdef OLD
extern "C" __attribute__((section(TENON_PLUGIN_SECTION), used))
const tenon::PluginNote note = {TENON_PLUGIN_MAGIC, 0, "0.0.9", "21.1.0", "old", "1"};
// Were it loaded, this would end the process.
__attribute__((constructor)) static void loaded() { __builtin_trap(); }
#elif !defined(NO_NOTE)
extern "C" __attribute__((section(TENON_PLUGIN_SECTION), used)) const tenon::PluginNote note = {
    TENON_PLUGIN_MAGIC, TENON_PLUGIN_ABI, TENON_VERSION, LLVM_VERSION_STRING, "refused", "1"};
#endif

#ifdef MISSING_SYMBOL
extern "C" void function_that_nothing_defines();
extern "C" void tenon_plugin_add() { function_that_nothing_defines(); }
#endif

#ifdef OWN_DIALECT
static char dialect;
extern "C" const void *tenon_plugin_dialect() { return &dialect; }
extern "C" void tenon_plugin_add() { __builtin_trap(); }
#endif
