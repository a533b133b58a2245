// Which weights a model gets, and the tokenizer that comes with them.
#ifndef TENON_FRONTEND_WEIGHTSFILE_H
#define TENON_FRONTEND_WEIGHTSFILE_H

#include "frontend/Description.h"

namespace tenon {

struct WeightsFile {
  std::string path; // a .gguf or .safetensors file or a directory; empty without any
  std::unique_ptr<WeightSource>
      source; // null without weights, and for random ones until the graph is known
  std::optional<uint64_t> randomSeed;

  // Whether tensors have the names of the `gguf:` section and the tokenizer is in the metadata.
  bool isGguf() const;
  // The file, or the files of the directory that matter.
  std::vector<std::string> list() const;
};

// `--weights`, or else `weights.file`: beside the model file, then in `~/.cache/tenon/models`
// ($TENON_CACHE and $XDG_CACHE_HOME move it). `weights.sha256` is checked for files up to 1 GiB,
// unless the stamp `FILE.verified` says that this has been done ("DIGEST SIZE MTIME").
llvm::Expected<WeightsFile> openWeightsOf(Description &description, const ModelOptions &options);

// The blob of `tokenizer.from`: what lies in or beside the weights (random ones have none), or a
// file. Empty without one.
llvm::Expected<std::vector<uint8_t>>
buildTokenizerOf(Description &description, const WeightsFile &weights, const ModelOptions &options);

} // namespace tenon

#endif // TENON_FRONTEND_WEIGHTSFILE_H
