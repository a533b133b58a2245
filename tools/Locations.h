// Where Tenon's own files lie, relative to libTenon.so: the same in a build tree and an installed
// one.
//
//   lib/libTenon.so
//   lib/libtenon_runtime.a ...      runtime archives
//   lib/tenon/kernels/*.bc          CPU kernels
//   lib/tenon/cuda/                 sources of CUDA kernels
//   share/tenon/models/             architectures, tokenizers, model files
//   share/tenon/templates/          what `tenon new` writes
#ifndef TENON_TOOLS_LOCATIONS_H
#define TENON_TOOLS_LOCATIONS_H

#include <string>

namespace tenon {

std::string getLibraryFolder();
std::string getKernelFolder();
std::string getDeviceFolder();
std::string getModelsFolder();
std::string getLicencesFile();
std::string getTemplatesFolder();
// The prefix, with bin/, lib/ and share/.
std::string getInstallFolder();
// The oneDNN that was found when Tenon was built; empty when there was none.
std::string getOneDNNPath();
// The same of NVRTC.
std::string getNvrtcPath();

} // namespace tenon

#endif // TENON_TOOLS_LOCATIONS_H
