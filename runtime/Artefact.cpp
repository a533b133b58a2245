#include "runtime/Artefact.h"

#include "runtime/Error.h"

#include <cstring>

namespace tenon::rt {

static std::string_view nameOf(const tenon_section &section) {
  return {section.name, strnlen(section.name, sizeof section.name)};
}

SectionFile::SectionFile(const std::string &path, const std::string &name)
    : fileName(name), file(Mapping::ofFile(path, name)) {
  const uint64_t size = static_cast<uint64_t>(file.size());
  tenon_trailer trailer = {};
  if (size >= sizeof trailer)
    std::memcpy(&trailer, file.data() + size - sizeof trailer, sizeof trailer);
  if (std::memcmp(trailer.magic, TENON_ARTEFACT_MAGIC, sizeof trailer.magic) != 0)
    refuse("{} has no weights: it was stripped or truncated; compile it again", name);
  if (trailer.version != TENON_ARTEFACT_VERSION)
    refuse("{}: artefact version {}, this program reads {}; compile it again", name,
           trailer.version, TENON_ARTEFACT_VERSION);
  if (trailer.file_bytes != size)
    refuse("{} is {} bytes long but was written with {}; compile it again", name, size,
           trailer.file_bytes);

  const uint64_t tableBytes = uint64_t(trailer.sections) * sizeof(tenon_section);
  const uint64_t tableEnd = size - sizeof trailer;
  if (tableBytes > tableEnd || trailer.table_offset > tableEnd - tableBytes)
    refuse("{}: its section table lies outside the file; compile it again", name);
  table.resize(trailer.sections);
  if (tableBytes)
    std::memcpy(table.data(), file.data() + trailer.table_offset, tableBytes);
  for (const tenon_section &section : table) {
    if (section.offset > tableEnd || section.bytes > tableEnd - section.offset)
      refuse("{}: section '{}' lies outside the file; compile it again", name, nameOf(section));
    if (find(nameOf(section)) != &section)
      refuse("{}: section '{}' occurs twice; compile it again", name, nameOf(section));
  }
}

const tenon_section *SectionFile::find(std::string_view section) const {
  for (const tenon_section &candidate : table)
    if (nameOf(candidate) == section)
      return &candidate;
  return nullptr;
}

std::string_view SectionFile::bytes(const tenon_section &section) const {
  return {file.data() + section.offset, section.bytes};
}

void SectionFile::verify() const {
  for (const tenon_section &section : table)
    if (tenon_checksum(TENON_CHECKSUM_SEED, bytes(section).data(), section.bytes) !=
        section.checksum)
      refuse("{}: section '{}' is damaged (its checksum differs); compile it again", fileName,
             nameOf(section));
}

// The sidecar lies where meta says, or beside the executable under the same base name.
static std::string locateSidecar(const std::string &recorded, const std::string &executable) {
  std::string base = recorded.substr(recorded.rfind('/') + 1);
  std::string folder = executable.substr(0, executable.rfind('/') + 1);
  std::string beside = folder + base;
  if (FILE *file = std::fopen(beside.c_str(), "rb")) {
    std::fclose(file);
    return beside;
  }
  return recorded[0] == '/' ? recorded : folder + recorded;
}

Artefact Artefact::open(const std::string &path, const std::string &name,
                        const tenon_compiled &compiled) {
  if (compiled.abi != TENON_KERNEL_ABI)
    throw Error(ExitBug, fmt::format("{}: compiled for kernel ABI {}, its runtime has {}", name,
                                     compiled.abi, TENON_KERNEL_ABI));
  Artefact artefact;
  artefact.file = SectionFile(path, name);
  const tenon_section *meta = artefact.file.find("meta");
  if (!meta)
    refuse("{} has no meta section; compile it again", name);
  artefact.metaData = Meta::parse(artefact.file.bytes(*meta), name);

  const SectionFile *holder = &artefact.file;
  const tenon_section *weights = holder->find("weights");
  if (!weights && !artefact.metaData.weightsFile.empty()) {
    std::string sidecarPath = locateSidecar(artefact.metaData.weightsFile, name);
    artefact.sidecar.emplace(sidecarPath, sidecarPath);
    holder = &*artefact.sidecar;
    weights = holder->find("weights");
  }
  if (!weights)
    refuse("{} has no weights section; compile the model again", holder->name());
  if (weights->offset % 4096 != 0)
    refuse("{}: its weights do not begin at a page; compile it again", holder->name());
  if (static_cast<int64_t>(weights->bytes) != compiled.weight_bytes ||
      std::memcmp(&weights->checksum, compiled.weight_digest, sizeof compiled.weight_digest) != 0)
    refuse("{}: these weights belong to another compilation than {}; compile the model again",
           holder->name(), name);
  artefact.weightBytes = holder->bytes(*weights);
  return artefact;
}

std::string_view Artefact::section(std::string_view name) const {
  const tenon_section *section = file.find(name);
  return section ? file.bytes(*section) : std::string_view();
}

std::vector<tenon_section> Artefact::sections() const {
  std::vector<tenon_section> all = file.sections();
  if (sidecar)
    all.insert(all.end(), sidecar->sections().begin(), sidecar->sections().end());
  return all;
}

void Artefact::verify() const {
  file.verify();
  if (sidecar)
    sidecar->verify();
}

} // namespace tenon::rt
