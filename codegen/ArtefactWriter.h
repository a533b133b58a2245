// Appends the sections of runtime/artefact.h to a linked file.
#ifndef TENON_CODEGEN_ARTEFACTWRITER_H
#define TENON_CODEGEN_ARTEFACTWRITER_H

#include "runtime/artefact.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <vector>

namespace tenon {

class ArtefactWriter {
public:
  explicit ArtefactWriter(llvm::raw_fd_ostream &out) : out(out) {}

  // Begins a section at the next multiple of `alignment`; its bytes are then written to the stream.
  void begin(llvm::StringRef name, uint64_t alignment);
  void end(uint64_t checksum);
  // A whole section.
  void add(llvm::StringRef name, llvm::StringRef bytes);
  // The table and the trailer: nothing may follow.
  void finish();

private:
  void align(uint64_t alignment);

  llvm::raw_fd_ostream &out;
  std::vector<tenon_section> sections;
};

} // namespace tenon

#endif // TENON_CODEGEN_ARTEFACTWRITER_H
