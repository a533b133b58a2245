// A model before it is built: what a model YAML says, or what a checkpoint says of itself.
#ifndef TENON_FRONTEND_DESCRIPTION_H
#define TENON_FRONTEND_DESCRIPTION_H

#include "frontend/Architecture.h"
#include "frontend/Frontend.h"

namespace tenon {

struct Description {
  std::string name;
  Architecture architecture;
  Value config;
  Place place;           // of the whole
  std::string directory; // what relative paths start from

  Value weightsFile;                    // a string, or null
  std::unique_ptr<WeightSource> opened; // these weights, if they had to be opened already
  std::string weightsSha256, weightsFrom;
  Value tokenizer; // "weights", a path, or null
  std::vector<int64_t> eos;
  std::vector<std::string> stop;
  std::optional<int64_t> decoderStart;
  std::vector<std::string> files; // what was read or looked for
};

// Decides by what lies at the path.
llvm::Expected<Description> describeModel(llvm::StringRef path, const ModelOptions &options);

llvm::Expected<Description> describeYaml(llvm::StringRef path, const ModelOptions &options);
// `path` is what the text stands for.
llvm::Expected<Description> describeYamlText(llvm::StringRef text, llvm::StringRef path,
                                             const ModelOptions &options);
llvm::Expected<Description> describeHuggingFace(llvm::StringRef directory,
                                                const ModelOptions &options);
llvm::Expected<Description> describeGguf(llvm::StringRef path, const ModelOptions &options);

// The `plugins:` of a model or an architecture file.
llvm::Error loadPlugins(const Value &list, llvm::StringRef file, const ModelOptions &options);

// An integer or a list of integers that are token ids; null is none.
llvm::Expected<std::vector<int64_t>> readTokenIds(const Value &value, llvm::StringRef what);

// All parameters: what the description gives, with `--set` and `--context` put in, and defaults.
llvm::Expected<Value> bindParameters(Description &description, const ModelOptions &options);

// Letters, digits, '.', '_' and '-': a model's name names files.
bool isModelName(llvm::StringRef name);
// A path's last part, as a model's name.
std::string nameFromPath(llvm::StringRef path);

} // namespace tenon

#endif // TENON_FRONTEND_DESCRIPTION_H
