// What the frontend can be taught to read. Registered once, before models are read.
#ifndef TENON_FRONTEND_EXTENSIONS_H
#define TENON_FRONTEND_EXTENSIONS_H

#include "ir/WeightSource.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tenon {

// Another kind of model description. It is read as the text of a model file (models/README.md), in
// which relative paths start from the description's folder.
struct ModelReader {
  std::string name;
  std::function<bool(llvm::StringRef path)> accepts;
  std::function<llvm::Expected<std::string>(llvm::StringRef path)> read;
};

// Another kind of checkpoint. Its tensors have the names of an architecture's graph.
struct WeightFormat {
  std::string name;
  // `start`: the first bytes of a file, up to 64.
  std::function<bool(llvm::StringRef start)> accepts;
  std::function<llvm::Expected<std::unique_ptr<WeightSource>>(llvm::StringRef path)> open;
};

void registerModelReader(ModelReader reader);
void registerWeightFormat(WeightFormat format);
// A folder whose .yaml files are architectures, after those of Tenon.
void registerArchitectures(llvm::StringRef folder);

llvm::ArrayRef<ModelReader> getModelReaders();
llvm::ArrayRef<WeightFormat> getWeightFormats();
llvm::ArrayRef<std::string> getArchitectureFolders();

} // namespace tenon

#endif // TENON_FRONTEND_EXTENSIONS_H
