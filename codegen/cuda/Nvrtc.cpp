// See Nvrtc.h. NVRTC's C interface is declared here, so that CUDA is not needed to build Tenon.
#include "codegen/cuda/Nvrtc.h"
#include "codegen/Error.h"
#include "llvm/ADT/ScopeExit.h"
#include <dlfcn.h>

namespace tenon::cuda {

namespace {

using Result = int; // 0: done
using Program = struct ProgramTag *;

struct Nvrtc {
  Result (*create)(Program *, const char *source, const char *name, int headers,
                   const char *const *texts, const char *const *names);
  Result (*compile)(Program, int options, const char *const *list);
  Result (*destroy)(Program *);
  Result (*cubinSize)(Program, size_t *);
  Result (*cubin)(Program, char *);
  Result (*ptxSize)(Program, size_t *);
  Result (*ptx)(Program, char *);
  Result (*logSize)(Program, size_t *);
  Result (*log)(Program, char *);
  const char *(*errorText)(Result);
};

template <typename Function> bool find(void *library, const char *symbol, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

bool load(const std::string &path, Nvrtc &nvrtc) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library && find(library, "nvrtcCreateProgram", nvrtc.create) &&
         find(library, "nvrtcCompileProgram", nvrtc.compile) &&
         find(library, "nvrtcDestroyProgram", nvrtc.destroy) &&
         find(library, "nvrtcGetCUBINSize", nvrtc.cubinSize) &&
         find(library, "nvrtcGetCUBIN", nvrtc.cubin) &&
         find(library, "nvrtcGetPTXSize", nvrtc.ptxSize) &&
         find(library, "nvrtcGetPTX", nvrtc.ptx) &&
         find(library, "nvrtcGetProgramLogSize", nvrtc.logSize) &&
         find(library, "nvrtcGetProgramLog", nvrtc.log) &&
         find(library, "nvrtcGetErrorString", nvrtc.errorText);
}

// The one that was there when Tenon was built, or any that the system knows.
const Nvrtc *getNvrtc(const std::string &path) {
  static const std::optional<Nvrtc> loaded = [&]() -> std::optional<Nvrtc> {
    Nvrtc nvrtc;
    for (const std::string &name : {path, std::string("libnvrtc.so.13"),
                                    std::string("libnvrtc.so.12"), std::string("libnvrtc.so")})
      if (!name.empty() && load(name, nvrtc))
        return nvrtc;
    return std::nullopt;
  }();
  return loaded ? &*loaded : nullptr;
}

} // namespace

llvm::Expected<std::string> compileWithNvrtc(const std::string &source,
                                             llvm::StringRef architecture,
                                             const TargetOptions &options) {
  const Nvrtc *nvrtc = getNvrtc(options.nvrtcPath);
  if (!nvrtc)
    return lacking("--target cuda: no NVRTC (libnvrtc.so.13) was found; it comes with the CUDA "
                   "toolkit");
  auto failed = [&](Result result, llvm::StringRef log = "") {
    return lacking("--target cuda: NVRTC for " + architecture + ": " + nvrtc->errorText(result) +
                   (log.empty() ? "" : ": ") + log);
  };
  Program program = nullptr;
  if (Result result = nvrtc->create(&program, source.c_str(), "tenon.cu", 0, nullptr, nullptr))
    return failed(result);
  auto cleanup = llvm::scope_exit([&] { nvrtc->destroy(&program); });

  bool isPtx = architecture.starts_with("compute_");
  std::string flags[] = {("--gpu-architecture=" + architecture).str(),
                         "--std=c++17",
                         "--device-as-default-execution-space",
                         "-I" + options.deviceFolder,
                         "-I" + options.deviceFolder + "/codegen/cuda/kernels",
                         "-I" + options.deviceFolder + "/codegen/cuda/kernels/nvrtc"};
  std::vector<const char *> list;
  for (const std::string &flag : flags)
    list.push_back(flag.c_str());
  if (Result result = nvrtc->compile(program, static_cast<int>(list.size()), list.data())) {
    size_t size = 0;
    nvrtc->logSize(program, &size);
    std::string log(size, '\0');
    nvrtc->log(program, log.data());
    return failed(result, llvm::StringRef(log).split('\n').first);
  }
  size_t size = 0;
  if (Result result = isPtx ? nvrtc->ptxSize(program, &size) : nvrtc->cubinSize(program, &size))
    return failed(result);
  std::string bytes(size, '\0');
  if (Result result =
          isPtx ? nvrtc->ptx(program, bytes.data()) : nvrtc->cubin(program, bytes.data()))
    return failed(result);
  if (isPtx && !bytes.empty() && bytes.back() == '\0')
    bytes.pop_back(); // a C string; tables of images end with one of their own
  return bytes;
}

} // namespace tenon::cuda
