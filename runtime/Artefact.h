// The sections behind the native code of an executable (layout: artefact.h), mapped from the file
// itself.
//
// Opening touches the trailer, the section table and `meta` alone: weights are mapped and their
// digest is compared with the one compiled into the program, but they are read for the first time
// by the kernels. `verify` (OUT info --verify) reads everything and compares checksums.
#ifndef TENON_RUNTIME_ARTEFACT_H
#define TENON_RUNTIME_ARTEFACT_H

#include "runtime/Mapping.h"
#include "runtime/Meta.h"
#include "runtime/artefact.h"
#include "runtime/kernel_abi.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::rt {

// One file that ends in a trailer, every bound checked.
class SectionFile {
public:
  SectionFile() = default;
  SectionFile(const std::string &path, const std::string &name);

  const tenon_section *find(std::string_view section) const;
  std::string_view bytes(const tenon_section &section) const;
  const std::vector<tenon_section> &sections() const { return table; }
  const std::string &name() const { return fileName; }
  // Throws when a section's bytes do not have their checksum.
  void verify() const;

private:
  std::string fileName;
  Mapping file;
  std::vector<tenon_section> table;
};

class Artefact {
public:
  // `path` is opened; `name` is what messages call it (they differ for /proc/self/exe).
  static Artefact open(const std::string &path, const std::string &name,
                       const tenon_compiled &compiled);

  const char *weights() const { return weightBytes.data(); }
  const Meta &meta() const { return metaData; }
  const std::string &name() const { return file.name(); }
  // Empty when the file has no such section.
  std::string_view section(std::string_view name) const;
  // Own sections, then the sidecar's.
  std::vector<tenon_section> sections() const;
  void verify() const;

private:
  SectionFile file;
  std::optional<SectionFile> sidecar;
  Meta metaData;
  std::string_view weightBytes;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_ARTEFACT_H
