// See Level.h.
#include "codegen/cpu/Level.h"
#include "codegen/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"

namespace tenon::cpu {

llvm::ArrayRef<Level> getLevels() {
  static constexpr Level levels[] = {
      {"avx512-amx", "amx", "x86-64-v4", "+avx512vnni,+avx512bf16,+amx-tile,+amx-int8,+amx-bf16",
       "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512_vnni,avx512_bf16,amx_tile,amx_int8,"
       "amx_bf16"},
      {"avx512-bf16", "avx512bf16", "x86-64-v4", "+avx512vnni,+avx512bf16",
       "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512_vnni,avx512_bf16"},
      {"avx512-vnni", "avx512", "x86-64-v4", "+avx512vnni",
       "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512_vnni"},
      {"x86-64-v3", "avx2", "x86-64-v3", "", "avx2,fma,f16c,bmi1,bmi2"},
      {"x86-64-v2", "generic", "x86-64-v2", "", "sse4_2,popcnt,ssse3"},
  };
  return levels;
}

// Whether this machine has what a level requires; LLVM writes avx512_vnni as avx512vnni, amx_tile
// as amx-tile.
static bool runsHere(const Level &level) {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  llvm::SmallVector<llvm::StringRef> required;
  level.required.split(required, ',');
  return llvm::all_of(required, [&](llvm::StringRef name) {
    std::string llvmName = name.str();
    if (name.starts_with("avx512_"))
      llvm::erase(llvmName, '_');
    if (name.starts_with("amx_"))
      llvm::replace(llvmName, '_', '-');
    if (name == "bmi1")
      llvmName = "bmi";
    if (name == "sse4_2")
      llvmName = "sse4.2";
    return features.lookup(llvmName);
  });
}

llvm::Expected<llvm::SmallVector<const Level *>> selectLevels(llvm::ArrayRef<std::string> names) {
  llvm::SmallVector<const Level *> selected;
  auto add = [&](const Level &level) {
    if (!llvm::is_contained(selected, &level))
      selected.push_back(&level);
  };
  for (llvm::StringRef name : names) {
    if (name == "native") {
      const Level *best = llvm::find_if(getLevels(), runsHere);
      if (best == getLevels().end())
        return lacking("this CPU is older than x86-64-v2, for which Tenon has no kernels");
      add(*best);
      // Where the executable will run, tiles may be refused (runtime/Machine.h).
      if (best->name == "avx512-amx")
        add(best[1]);
      const Level *fallback =
          llvm::find_if(getLevels(), [](const Level &level) { return level.name == "x86-64-v3"; });
      if (best < fallback)
        add(*fallback);
      continue;
    }
    const Level *level =
        llvm::find_if(getLevels(), [&](const Level &candidate) { return candidate.name == name; });
    if (level == getLevels().end()) {
      std::string accepted = "native";
      for (const Level &candidate : getLevels())
        accepted += ", " + candidate.name.str();
      return refused("--mcpu: unknown CPU '" + name + "'; accepted: " + accepted);
    }
    add(*level);
  }
  // The runtime takes the first that runs.
  llvm::sort(selected);
  return selected;
}

} // namespace tenon::cpu
