// Finds the tensors that a graph names in a checkpoint, which may call them otherwise:
//
//   tensors:
//     model.layers.$i.self_attn.q_proj: {name: blk.$i.attn_q, deinterleave: $heads}
//     model.layers.$i.self_attn.v_proj: {name: blk.$i.attn_qkv, from_row: 128, of_rows: 192}
//   ignored_tensors: [model.layers.$i.self_attn.rotary_emb.inv_freq]
//
// A `$word` in a pattern stands for digits.
#ifndef TENON_FRONTEND_CHECKPOINT_H
#define TENON_FRONTEND_CHECKPOINT_H

#include "frontend/Graph.h"
#include "llvm/ADT/StringSet.h"

namespace tenon {

class Checkpoint {
public:
  // `section` is the architecture's `hf:` or `gguf:`; without a source every tensor is there, in
  // bf16.
  Checkpoint(WeightSource *source, const Value *section, const Value &parameters)
      : source(source), section(section), parameters(parameters) {}

  llvm::Expected<StoredTensor> resolve(const std::string &stem, const std::string &suffix,
                                       llvm::ArrayRef<int64_t> shape, const Place &place);
  // After the graph is built: refuses tensors that it does not read.
  llvm::Error checkSurplus(llvm::StringRef architecture) const;

private:
  llvm::Expected<StoredTensor> translate(const std::string &stem, const Place &place) const;
  llvm::Expected<bool> isIgnored(llvm::StringRef tensor, const Value &rule) const;
  std::string withoutBase(llvm::StringRef name) const;

  WeightSource *source;
  const Value *section;
  const Value &parameters;
  llvm::StringSet<> used;
};

// Whether a name fits a pattern; what `$word` stood for is appended to `found`.
bool matchPattern(llvm::StringRef pattern, llvm::StringRef name,
                  std::vector<std::pair<std::string, int64_t>> &found);

} // namespace tenon

#endif // TENON_FRONTEND_CHECKPOINT_H
