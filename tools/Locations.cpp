// See Locations.h.
#include "tools/Locations.h"
#include "codegen/Backend.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <dlfcn.h>

namespace tenon {

std::string getLibraryFolder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&createBackend), &info))
    return ".";
  std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/'));
}

std::string getInstallFolder() {
  llvm::SmallString<128> folder(getLibraryFolder() + "/..");
  llvm::sys::path::remove_dots(folder, /*remove_dot_dot=*/true);
  return folder.str().str();
}

std::string getKernelFolder() { return getLibraryFolder() + "/tenon/kernels"; }
std::string getDeviceFolder() { return getLibraryFolder() + "/tenon/cuda"; }
std::string getModelsFolder() { return getInstallFolder() + "/share/tenon/models"; }
std::string getLicencesFile() { return getInstallFolder() + "/share/tenon/licenses.txt"; }

std::string getTemplatesFolder() { return getInstallFolder() + "/share/tenon/templates"; }

std::string getOneDNNPath() {
  for (const std::string &path : {getLibraryFolder() + "/libdnnl.so.3", std::string(TENON_ONEDNN)})
    if (!path.empty() && llvm::sys::fs::exists(path))
      return path;
  return "";
}

std::string getNvrtcPath() { return TENON_NVRTC; }

} // namespace tenon
