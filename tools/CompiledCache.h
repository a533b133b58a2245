// Where `tenon run` keeps what it compiled, so that a second run need not even read the model.
//
//   compiled/NAME-DIGEST      an executable; DIGEST: the model, its files, flags, this compiler
//   compiled/asked/DIGEST     a note on what was asked: the executable's name and the files then;
//                             DIGEST: the command's words and where it ran
//
// A file's state is its size, inode and time of change. While that of every file in a note is what
// it was, the note's executable is the answer.
#ifndef TENON_TOOLS_COMPILEDCACHE_H
#define TENON_TOOLS_COMPILEDCACHE_H

#include "tools/Command.h"

namespace tenon {

class CompiledCache {
public:
  explicit CompiledCache(const CompileArguments &arguments);

  // The executable that answered the same question, if nothing has changed since.
  std::optional<std::string> recall() const;
  // The path of a model's executable, which may not exist yet.
  std::string locate(const Model &model) const;
  // Writes a note: next time `recall` gives `executable`.
  void remember(const Model &model, llvm::StringRef executable) const;

private:
  std::string folder, flags, note;
};

} // namespace tenon

#endif // TENON_TOOLS_COMPILEDCACHE_H
