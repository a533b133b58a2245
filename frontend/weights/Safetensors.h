// Reads safetensors (https://huggingface.co/docs/safetensors): one file, or the shards of an index.
//
//   header size u64 | JSON {"NAME": {"dtype", "shape", "data_offsets"}, ...} | data
//
// The files stay mapped. Nothing that they say is believed before it is compared with their size.
#ifndef TENON_FRONTEND_WEIGHTS_SAFETENSORS_H
#define TENON_FRONTEND_WEIGHTS_SAFETENSORS_H

#include "frontend/weights/StoredWeights.h"

namespace tenon {

class Safetensors final : public StoredWeights {
public:
  // A .safetensors file.
  static llvm::Expected<std::unique_ptr<Safetensors>> readFile(MappedFile file);
  // A model.safetensors.index.json; its shards lie beside it.
  static llvm::Expected<std::unique_ptr<Safetensors>> readIndex(const MappedFile &index);

  llvm::StringRef getName() const override { return name; }

private:
  explicit Safetensors(llvm::StringRef name) : name(name) {}
  llvm::Error addFile(MappedFile file);

  std::string name;
  std::vector<MappedFile> files;
};

} // namespace tenon

#endif // TENON_FRONTEND_WEIGHTS_SAFETENSORS_H
