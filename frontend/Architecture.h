// An architecture file: a graph of operations as data. models/README.md documents the format.
#ifndef TENON_FRONTEND_ARCHITECTURE_H
#define TENON_FRONTEND_ARCHITECTURE_H

#include "frontend/Parameters.h"

namespace tenon {

struct Architecture {
  std::string name; // the file's, without folder and extension
  std::string path;
  Parameters parameters;
  Value file; // the whole of it

  const Value &getGraph() const { return *file.find("graph"); }
  // Null when the architecture cannot be imported from that kind of checkpoint.
  const Value *getSection(llvm::StringRef name) const { return file.find(name); }

  // Evaluates the `checks:` for one model; the first that does not hold is the error.
  llvm::Error check(const Value &parameters) const;
};

llvm::Expected<Architecture> readArchitecture(llvm::StringRef path);
// By its name in `<models>/architectures`, or by a path (with a '/' or ending in .yaml), taken from
// `directory` when it is relative.
llvm::Expected<Architecture> findArchitecture(const Value &nameOrPath, llvm::StringRef models,
                                              llvm::StringRef directory);
// The paths of all files in `<models>/architectures` and in registered folders.
llvm::Expected<std::vector<std::string>> listArchitectures(llvm::StringRef models);

} // namespace tenon

#endif // TENON_FRONTEND_ARCHITECTURE_H
