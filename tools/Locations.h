// Where Tenon's own files lie, relative to libTenon.so: the same in a build tree and an installed
// one.
//
//   lib/libTenon.so
//   lib/libtenon_runtime.a ...      runtime archives
//   lib/tenon/kernels/*.bc          CPU kernels
//   share/tenon/models/             architectures, tokenizers, model files
#ifndef TENON_TOOLS_LOCATIONS_H
#define TENON_TOOLS_LOCATIONS_H

#include <string>

namespace tenon {

std::string getLibraryFolder();
std::string getKernelFolder();
std::string getModelsFolder();
std::string getLicencesFile();
// The oneDNN that was found when Tenon was built; empty when there was none.
std::string getOneDNNPath();

} // namespace tenon

#endif // TENON_TOOLS_LOCATIONS_H
