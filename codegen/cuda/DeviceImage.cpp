// See DeviceImage.h.
#include "codegen/cuda/DeviceImage.h"
#include "codegen/Error.h"
#include "codegen/Linker.h"
#include "codegen/Parallel.h"
#include "codegen/cuda/Nvrtc.h"
#include "llvm/ADT/StringExtras.h"
#include <cstdlib>

namespace tenon::cuda {

// PTX is for devices later than those that we make code for: they begin launches early.
constexpr int oldestCapability = 80, ptxCapability = 90;

static llvm::Expected<Architecture> parseArchitecture(llvm::StringRef name) {
  if (name == "emulator")
    return Architecture{"emulator", TENON_IMAGE_EMULATED, 0};
  llvm::StringRef number = name;
  int32_t capability = 0;
  bool isPtx = number.consume_front("compute_");
  if ((!isPtx && !number.consume_front("sm_")) || number.getAsInteger(10, capability))
    return refused(
        "--mcpu: target cuda knows native, sm_80, sm_90, sm_100 and others of that kind, "
        "compute_80 for PTX, and emulator; not '" +
        name + "'");
  if (capability < oldestCapability)
    return refused("--mcpu " + name + ": the kernels need sm_" + llvm::Twine(oldestCapability) +
                   " or later");
  return Architecture{name.str(), isPtx ? TENON_IMAGE_PTX : TENON_IMAGE_CUBIN, capability};
}

llvm::Expected<std::vector<Architecture>> selectArchitectures(llvm::ArrayRef<std::string> names) {
  std::vector<Architecture> result;
  for (const std::string &name : names) {
    if (name == "native") {
      for (int32_t capability : {100, 90, 80})
        result.push_back({"sm_" + std::to_string(capability), TENON_IMAGE_CUBIN, capability});
      result.push_back(
          {"compute_" + std::to_string(ptxCapability), TENON_IMAGE_PTX, ptxCapability});
      continue;
    }
    llvm::Expected<Architecture> architecture = parseArchitecture(name);
    if (!architecture)
      return architecture.takeError();
    result.push_back(std::move(*architecture));
  }
  // Code for the device itself goes before PTX, newer code before older.
  llvm::sort(result, [](const Architecture &a, const Architecture &b) {
    return std::tuple(a.kind, -a.capability) < std::tuple(b.kind, -b.capability);
  });
  return result;
}

// Tests add instrumentation by TENON_EMULATOR_FLAGS.
static std::vector<std::string> getEmulatorFlags(const TargetOptions &options) {
  std::vector<std::string> flags = {"-std=c++17", "-O1", "-w", "-I" + options.deviceFolder,
                                    "-I" + options.deviceFolder + "/codegen/cuda/kernels"};
  llvm::SmallVector<llvm::StringRef> more;
  if (const char *given = std::getenv("TENON_EMULATOR_FLAGS"))
    llvm::SplitString(given, more);
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

static llvm::Expected<std::string> compileFor(const Architecture &architecture,
                                              const std::string &source,
                                              const TargetOptions &options) {
  if (architecture.kind == TENON_IMAGE_EMULATED)
    return compileHostLibrary(source, getEmulatorFlags(options));
  return compileWithNvrtc(source, architecture.name, options);
}

llvm::Expected<std::vector<DeviceImage>> compileImages(const std::string &source,
                                                       llvm::ArrayRef<Architecture> architectures,
                                                       const TargetOptions &options) {
  llvm::Expected<std::vector<std::string>> compiled = makeAll(architectures.size(), [&](size_t i) {
    return compileFor(architectures[i], source, options);
  });
  if (!compiled)
    return compiled.takeError();
  std::vector<DeviceImage> images;
  for (auto [architecture, bytes] : llvm::zip_equal(architectures, *compiled))
    images.push_back({architecture, std::move(bytes)});
  return images;
}

} // namespace tenon::cuda
