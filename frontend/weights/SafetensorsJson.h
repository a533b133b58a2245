// The JSON of safetensors files: the header in each, and the index of a model in several.
#ifndef TENON_FRONTEND_WEIGHTS_SAFETENSORSJSON_H
#define TENON_FRONTEND_WEIGHTS_SAFETENSORSJSON_H

#include "frontend/weights/MappedFile.h"
#include "llvm/ADT/SmallVector.h"
#include <vector>

namespace tenon {

// "NAME": {"dtype": "F16", "shape": [2, 3], "data_offsets": [BEGIN, END]}
struct SafetensorsEntry {
  std::string name, dtype;
  llvm::SmallVector<int64_t, 4> shape; // sizes from 0
  uint64_t begin, end;                 // not compared with anything yet
};

// The header, which is `size` bytes from `offset` of the file. Entries in its order; names may
// repeat.
llvm::Expected<std::vector<SafetensorsEntry>>
parseSafetensorsHeader(const MappedFile &file, uint64_t offset, uint64_t size);

struct ShardedTensor {
  std::string name, shard; // a file beside the index; no path
};

// "weight_map": {"NAME": "model-00001-of-00002.safetensors"}
llvm::Expected<std::vector<ShardedTensor>> parseShardIndex(const MappedFile &file);

} // namespace tenon

#endif // TENON_FRONTEND_WEIGHTS_SAFETENSORSJSON_H
