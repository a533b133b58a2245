// What the rest of the compiler sees of the frontend: a model file becomes a module of the `llm`
// dialect.
//
//   models/X.yaml ─┐
//   HF directory   ├─▶ Description ─▶ parameters ─▶ graph ─▶ Model {module, weights, tokenizer, ...}
//   X.gguf        ─┘   (Description.h) (Parameters.h) (Graph.h)
//
// Every error is one line, `file:line:column: error: what is wrong; accepted: what would be right`.
#ifndef TENON_FRONTEND_FRONTEND_H
#define TENON_FRONTEND_FRONTEND_H

#include "ir/WeightSource.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

struct ModelOptions {
  // `--set rope.theta=500000`: replaces parameters of the model.
  std::vector<std::pair<std::string, std::string>> sets;
  // A path, `random:SEED`, or empty for what the model file names.
  std::string weights;
  // Replaces the parameter `context`.
  std::optional<int64_t> context;
  // Ignore keys of a config.json or GGUF file that the architecture does not know.
  bool allowUnusedConfig = false;
  // Nodes that the architecture marks become results of @main: "hidden.0", ..., "hidden_final".
  bool emitHidden = false;
  // Without weights the module has the same shapes, all in bf16, and nothing is opened but the
  // model file.
  bool needWeights = true;
  // Loads what an entry of `plugins:` names, a path from `folder` or a name, unless it is loaded.
  std::function<llvm::Error(llvm::StringRef plugin, llvm::StringRef folder)> loadPlugin;
  // Where `architectures/` and `tokenizers.yaml` lie.
  std::string modelsDirectory;
};

struct Model {
  // module attributes {llm.model = "name", llm.context = 8192 : i64, llm.vocab = 49152 : i64} {
  //   func.func @main(%batch: !llm.batch) -> (tensor<?x49152xf32> {llm.result = "logits"}, ...)
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<WeightSource> weights; // null without weights
  std::string name, architecture;
  int64_t vocab = 0, context = 0;
  int64_t parameters = 0; // elements of all weights, a tied one counted once
  std::vector<int64_t> eos;
  std::vector<std::string> stop;
  std::optional<int64_t> decoderStart; // what an encoder-decoder's answers begin with
  std::vector<uint8_t> tokenizer;      // blob; empty without one
  // SHA-256 over the architecture, the parameters, the tokenizer and which tensors there are.
  std::string digest;
  // What was read or looked for, for a cache that wants to know whether anything has changed.
  std::vector<std::string> files;
};

// `path` is a model YAML, a Hugging Face directory or a .gguf file.
llvm::Expected<Model> loadModel(mlir::MLIRContext &context, llvm::StringRef path,
                                const ModelOptions &options);

// The model YAML that stands for a Hugging Face directory or a .gguf file.
llvm::Expected<std::string> importModel(llvm::StringRef path, const ModelOptions &options);

// The folder of compiled models and downloaded checkpoints (models/, as scripts/install-deps.sh has
// it): $TENON_CACHE, else $XDG_CACHE_HOME/tenon, else ~/.cache/tenon.
std::string getCacheFolder();

// The tokenizer blob (runtime/tokenizer/Blob.h) of a tokenizer.json or a .gguf file.
llvm::Expected<std::vector<uint8_t>> buildTokenizer(llvm::StringRef path,
                                                    llvm::StringRef modelsDirectory);

} // namespace tenon

#endif // TENON_FRONTEND_FRONTEND_H
