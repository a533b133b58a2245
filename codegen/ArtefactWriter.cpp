// See ArtefactWriter.h.
#include "codegen/ArtefactWriter.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>
#include <cstring>

namespace tenon {

void ArtefactWriter::begin(llvm::StringRef name, uint64_t alignment) {
  align(alignment);
  tenon_section section = {};
  assert(name.size() < sizeof section.name);
  std::memcpy(section.name, name.data(), name.size());
  section.offset = out.tell();
  sections.push_back(section);
}

void ArtefactWriter::end(uint64_t checksum) {
  sections.back().bytes = out.tell() - sections.back().offset;
  sections.back().checksum = checksum;
}

void ArtefactWriter::add(llvm::StringRef name, llvm::StringRef bytes) {
  begin(name, 64);
  out << bytes;
  end(tenon_checksum(TENON_CHECKSUM_SEED, bytes.data(), bytes.size()));
}

void ArtefactWriter::finish() {
  align(64);
  tenon_trailer trailer = {};
  trailer.table_offset = out.tell();
  trailer.sections = sections.size();
  trailer.version = TENON_ARTEFACT_VERSION;
  trailer.file_bytes = out.tell() + sections.size() * sizeof(tenon_section) + sizeof trailer;
  std::memcpy(trailer.magic, TENON_ARTEFACT_MAGIC, sizeof trailer.magic);
  out.write(reinterpret_cast<const char *>(sections.data()),
            sections.size() * sizeof(tenon_section));
  out.write(reinterpret_cast<const char *>(&trailer), sizeof trailer);
}

void ArtefactWriter::align(uint64_t alignment) {
  out.write_zeros(llvm::alignTo(out.tell(), alignment) - out.tell());
}

} // namespace tenon
