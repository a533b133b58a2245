// A folder of files for one test, and what the frontend makes of them.
#ifndef TENON_TEST_UNIT_FRONTEND_SUPPORT_H
#define TENON_TEST_UNIT_FRONTEND_SUPPORT_H

#include "frontend/Frontend.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <string>

namespace tenon::test {

class Folder {
public:
  Folder() { llvm::sys::fs::createUniqueDirectory("tenon-frontend", root); }
  ~Folder() { llvm::sys::fs::remove_directories(root); }

  std::string path(llvm::StringRef name) const {
    llvm::SmallString<128> result(root);
    llvm::sys::path::append(result, name);
    return result.str().str();
  }
  std::string write(llvm::StringRef name, llvm::StringRef text) const {
    std::error_code error;
    llvm::raw_fd_ostream(path(name), error) << text;
    EXPECT_FALSE(error) << error.message();
    return path(name);
  }
  // A message without this folder's name.
  std::string relative(std::string message) const {
    std::string prefix = root.str().str() + "/";
    for (size_t at; (at = message.find(prefix)) != std::string::npos;)
      message.erase(at, prefix.size());
    return message;
  }

private:
  llvm::SmallString<128> root;
};

// A text in which '@' marks the place that a message must name.
struct Marked {
  std::string text, place; // "line:column"

  Marked(std::string marked) : text(std::move(marked)) {
    size_t at = text.find('@');
    if (at == std::string::npos)
      return;
    text.erase(at, 1);
    size_t begin = text.rfind('\n', at - 1) + 1; // npos + 1 == 0
    if (at == 0)
      begin = 0;
    place = std::to_string(std::count(text.begin(), text.begin() + at, '\n') + 1) + ":" +
            std::to_string(at - begin + 1);
  }
};

inline ModelOptions planOptions() {
  ModelOptions options;
  options.modelsDirectory = TENON_MODELS_DIR;
  options.needWeights = false;
  return options;
}

// The error, or "" when there is none. An error is one line.
template <typename T> std::string errorOf(llvm::Expected<T> result) {
  if (result)
    return "";
  std::string message = llvm::toString(result.takeError());
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

inline std::string loadError(llvm::StringRef path, const ModelOptions &options = planOptions()) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  return errorOf(loadModel(context, path, options));
}

inline std::string print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

} // namespace tenon::test

#endif // TENON_TEST_UNIT_FRONTEND_SUPPORT_H
