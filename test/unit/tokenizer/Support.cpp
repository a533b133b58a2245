#include "Support.h"

#include "runtime/tokenizer/ByteAlphabet.h"

#include <cstdio>
#include <fstream>
#include <unistd.h>

namespace tenon::test {

std::string oracle(const std::string &path) { return TENON_ORACLE_DIR "/" + path; }
std::string tokenizersYaml() { return TENON_MODELS_DIR "/tokenizers.yaml"; }

Json readJson(const std::string &path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return Json::parse(file);
}

Built::Built(llvm::Expected<std::vector<uint8_t>> result) {
  if (!result) {
    error = llvm::toString(result.takeError());
    return;
  }
  blob = std::move(*result);
  tokenizer = rt::Tokenizer::open(blob.data(), blob.size());
}

Built buildFromText(const std::string &text) {
  std::string path = testing::TempDir() + "tokenizer-" + std::to_string(getpid()) + ".json";
  std::ofstream(path, std::ios::binary) << text;
  Built built(buildTokenizerFromJson(path));
  std::remove(path.c_str());
  // Messages begin with the path, which changes.
  if (built.error.rfind(path, 0) == 0)
    built.error.replace(0, path.size(), "FILE");
  return built;
}

static const char *const kPairs[][2] = {{"h", "e"},    {"l", "l"}, {"he", "ll"},
                                        {"hell", "o"}, {" ", "h"}, {"a", "a"}};

Json smallTokenizer() {
  Json vocab = Json::object(), merges = Json::array();
  for (int byte = 0; byte < 256; ++byte)
    vocab[rt::toByteAlphabet(std::string(1, char(byte)))] = byte;
  for (auto &[left, right] : kPairs) {
    std::string a = rt::toByteAlphabet(left), b = rt::toByteAlphabet(right);
    int id = int(vocab.size());
    vocab[a + b] = id;
    merges.push_back({a, b});
  }
  int end = int(vocab.size());
  Json added = {{"id", end},       {"content", "<|end|>"}, {"single_word", false},
                {"lstrip", false}, {"rstrip", false},      {"normalized", false},
                {"special", true}};
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", {added}},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}};
}

template <typename Out, typename In>
static std::optional<Out> get(const std::map<std::string, In> &map, llvm::StringRef key) {
  auto found = map.find(key.str());
  if (found == map.end())
    return std::nullopt;
  if constexpr (std::is_same_v<Out, std::vector<llvm::StringRef>>)
    return Out(found->second.begin(), found->second.end());
  else
    return Out(found->second);
}

std::optional<llvm::StringRef> Metadata::getString(llvm::StringRef key) const {
  auto found = strings.find(key.str());
  return found == strings.end() ? std::nullopt : std::optional<llvm::StringRef>(found->second);
}
std::optional<bool> Metadata::getBool(llvm::StringRef key) const { return get<bool>(bools, key); }
std::optional<int64_t> Metadata::getInteger(llvm::StringRef key) const {
  return get<int64_t>(integers, key);
}
std::optional<std::vector<llvm::StringRef>> Metadata::getStrings(llvm::StringRef key) const {
  return get<std::vector<llvm::StringRef>>(stringLists, key);
}
std::optional<std::vector<int64_t>> Metadata::getIntegers(llvm::StringRef key) const {
  return get<std::vector<int64_t>>(integerLists, key);
}

Metadata smallMetadata() {
  Metadata metadata;
  metadata.strings["tokenizer.ggml.model"] = "gpt2";
  metadata.strings["tokenizer.ggml.pre"] = "gpt-2";
  std::vector<std::string> &tokens = metadata.stringLists["tokenizer.ggml.tokens"];
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back(rt::toByteAlphabet(std::string(1, char(byte))));
  for (auto &[left, right] : kPairs) {
    std::string a = rt::toByteAlphabet(left), b = rt::toByteAlphabet(right);
    tokens.push_back(a + b);
    metadata.stringLists["tokenizer.ggml.merges"].push_back(a + " " + b);
  }
  tokens.push_back("<|end|>");
  metadata.integerLists["tokenizer.ggml.token_type"].assign(tokens.size(), 1);
  metadata.integerLists["tokenizer.ggml.token_type"].back() = 3;
  return metadata;
}

} // namespace tenon::test
