#include "frontend/Extensions.h"

namespace tenon {

// All are filled while the compiler starts, by one thread.
template <typename T> static std::vector<T> &list() {
  static std::vector<T> all;
  return all;
}

void registerModelReader(ModelReader reader) { list<ModelReader>().push_back(std::move(reader)); }
void registerWeightFormat(WeightFormat format) {
  list<WeightFormat>().push_back(std::move(format));
}
void registerArchitectures(llvm::StringRef folder) { list<std::string>().push_back(folder.str()); }

llvm::ArrayRef<ModelReader> getModelReaders() { return list<ModelReader>(); }
llvm::ArrayRef<WeightFormat> getWeightFormats() { return list<WeightFormat>(); }
llvm::ArrayRef<std::string> getArchitectureFolders() { return list<std::string>(); }

} // namespace tenon
