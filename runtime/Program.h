// An opened executable: its sections and, when first asked for, its tokenizer. Every command and
// the C ABI begin here.
#ifndef TENON_RUNTIME_PROGRAM_H
#define TENON_RUNTIME_PROGRAM_H

#include "runtime/Artefact.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::rt {

class Program {
public:
  // `path` is opened; messages call it `name`.
  Program(const tenon_compiled &compiled, const std::string &path, const std::string &name);

  const tenon_compiled &compiled() const { return compiledProgram; }
  const Artefact &artefact() const { return file; }
  const Meta &meta() const { return file.meta(); }

  bool hasTokenizer() const { return !file.section("tokenizer").empty(); }
  // Refuses when there is none.
  const Tokenizer &tokenizer();

  // Ids that may be drawn: an LM head is often padded beyond the tokens that there are.
  int drawableIds();

  // Refuses ids that the vocabulary does not have.
  void checkIds(const std::vector<int32_t> &ids) const;

private:
  const tenon_compiled &compiledProgram;
  Artefact file;
  std::optional<Tokenizer> opened;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_PROGRAM_H
