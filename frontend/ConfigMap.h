// Turns the configuration of a checkpoint into an architecture's parameters, as the `hf:` or
// `gguf:` section of the architecture file says:
//
//   config:
//     hidden_size: hidden                                     key: parameter
//     hidden_act: {to: activation, values: {swish: silu}}     with other words for the same
//     sliding_window: {only: [null]}                          no parameter; other values are
//     refused
//   ignored: [initializer_range, general.*]
//
// A key that is in neither list is an error: what is read past is the most frequent silent wrong
// answer.
#ifndef TENON_FRONTEND_CONFIGMAP_H
#define TENON_FRONTEND_CONFIGMAP_H

#include "frontend/Value.h"

namespace tenon {

// Keys of nested maps are joined by dots: rope_scaling.factor.
std::vector<Entry> flatten(const Value &map);

struct ConfigMapping {
  const Value &section;            // hf: or gguf:
  const Value *defaults = nullptr; // what keys mean that the file leaves out
  bool allowUnused = false;        // ignore unknown keys
};

// The `config:` of a model. `file` is where keys would be that are missing.
llvm::Expected<Value> mapConfig(const ConfigMapping &mapping, llvm::ArrayRef<Entry> keys,
                                const Place &file);

} // namespace tenon

#endif // TENON_FRONTEND_CONFIGMAP_H
