// What the tokenizer's tests share: tokenizers made from files and from texts.
#ifndef TENON_TEST_TOKENIZER_SUPPORT_H
#define TENON_TEST_TOKENIZER_SUPPORT_H

#include "frontend/tokenizer/BuildTokenizer.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

namespace tenon::test {

using Json = nlohmann::json;

/// A path below test/oracle.
std::string oracle(const std::string &path);
Json readJson(const std::string &path);

/// models/tokenizers.yaml
std::string tokenizersYaml();

/// A tokenizer and the blob it lies in. The tests' failure says why there is none.
struct Built {
  std::vector<uint8_t> blob;
  std::optional<rt::Tokenizer> tokenizer;
  std::string error;

  explicit Built(llvm::Expected<std::vector<uint8_t>> result);
  const rt::Tokenizer *operator->() const { return &*tokenizer; }
  explicit operator bool() const { return tokenizer.has_value(); }
};

/// From the text of a tokenizer.json.
Built buildFromText(const std::string &text);
inline Built buildFromJson(const Json &json) { return buildFromText(json.dump()); }

/// A tokenizer.json with a small byte-level vocabulary: all bytes (ids are the bytes), then "he",
/// "ll", "hell", "hello", " h" … (ids 256 and up), then "<|end|>" (special).
Json smallTokenizer();

/// Metadata made by hand.
class Metadata : public GgufMetadata {
public:
  std::map<std::string, std::string> strings;
  std::map<std::string, bool> bools;
  std::map<std::string, int64_t> integers;
  std::map<std::string, std::vector<std::string>> stringLists;
  std::map<std::string, std::vector<int64_t>> integerLists;

  llvm::StringRef fileName() const override { return "hand-made.gguf"; }
  std::optional<llvm::StringRef> getString(llvm::StringRef key) const override;
  std::optional<bool> getBool(llvm::StringRef key) const override;
  std::optional<int64_t> getInteger(llvm::StringRef key) const override;
  std::optional<std::vector<llvm::StringRef>> getStrings(llvm::StringRef key) const override;
  std::optional<std::vector<int64_t>> getIntegers(llvm::StringRef key) const override;
};

/// The same vocabulary as smallTokenizer().
Metadata smallMetadata();

} // namespace tenon::test

#endif // TENON_TEST_TOKENIZER_SUPPORT_H
