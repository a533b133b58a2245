#include "runtime/Program.h"

#include "runtime/Error.h"
#include "runtime/Matmul.h"

#include <algorithm>

namespace tenon::rt {

Program::Program(const tenon_compiled &compiled, const std::string &path, const std::string &name)
    : compiledProgram(compiled), file(Artefact::open(path, name, compiled)) {
  // Where the compiler found it, beside the executable, the system's.
  std::vector<std::string> oneDnn;
  if (!meta().onednnPath.empty())
    oneDnn.push_back(meta().onednnPath);
  if (size_t slash = name.rfind('/'); slash != std::string::npos)
    oneDnn.push_back(name.substr(0, slash + 1) + "libdnnl.so.3");
  oneDnn.push_back("libdnnl.so.3");
  setOneDnnCandidates(std::move(oneDnn));
}

const Tokenizer &Program::tokenizer() {
  if (!opened) {
    std::string_view blob = file.section("tokenizer");
    if (blob.empty())
      refuse("{} was compiled without a tokenizer; give token ids with --ids", meta().model);
    try {
      opened.emplace(Tokenizer::open(blob.data(), blob.size()));
    } catch (const TokenizerError &error) {
      refuse("{}: its tokenizer cannot be used: {}", file.name(), error.what());
    }
  }
  return *opened;
}

int Program::drawableIds() {
  return hasTokenizer() ? std::min(compiledProgram.vocab, tokenizer().vocabSize())
                        : compiledProgram.vocab;
}

void Program::checkIds(const std::vector<int32_t> &ids) const {
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= compiledProgram.vocab)
      refuse("token id {} (number {}) is outside the vocabulary 0..{}", ids[i], i + 1,
             compiledProgram.vocab - 1);
}

} // namespace tenon::rt
