#include "Toy.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

namespace toy {

const int32_t *weights() {
  static const auto table = [] {
    std::vector<int32_t> values(vocab);
    for (int i = 0; i < vocab; ++i)
      values[i] = (i * 29 + 11) % vocab;
    return values;
  }();
  return table.data();
}

int32_t next(const std::vector<int32_t> &ids) {
  int64_t h = 0;
  for (size_t p = 0; p < ids.size(); ++p)
    h += (ids[p] + int64_t(p + 1)) * int64_t(p + 1);
  return weights()[h % vocab];
}

std::vector<int32_t> greedy(std::vector<int32_t> prompt, int count) {
  std::vector<int32_t> out;
  for (int i = 0; i < count; ++i) {
    out.push_back(next(prompt));
    prompt.push_back(out.back());
  }
  return out;
}

Sections sections(const std::string &extraMeta) {
  return {{"weights", std::string(reinterpret_cast<const char *>(weights()), weightBytes)},
          {"meta", R"({"model": "toy", "architecture": "toy", "context": 128, "parameters": 64)" +
                       (extraMeta.empty() ? "" : ", " + extraMeta) + "}"}};
}

std::string append(std::string image, const Sections &sections) {
  std::vector<tenon_section> table;
  for (const auto &[name, bytes] : sections) {
    size_t alignment = name == "weights" ? 4096 : 64;
    image.resize((image.size() + alignment - 1) / alignment * alignment);
    tenon_section section = {};
    std::memcpy(section.name, name.data(), std::min(name.size(), sizeof section.name));
    section.offset = image.size();
    section.bytes = bytes.size();
    section.checksum = tenon_checksum(TENON_CHECKSUM_SEED, bytes.data(), bytes.size());
    table.push_back(section);
    image += bytes;
  }
  image.resize((image.size() + 63) / 64 * 64);
  tenon_trailer trailer = {
      image.size(), static_cast<uint32_t>(table.size()), TENON_ARTEFACT_VERSION, 0, {}};
  std::memcpy(trailer.magic, TENON_ARTEFACT_MAGIC, sizeof trailer.magic);
  image.append(reinterpret_cast<const char *>(table.data()), table.size() * sizeof(tenon_section));
  trailer.file_bytes = image.size() + sizeof trailer;
  image.append(reinterpret_cast<const char *>(&trailer), sizeof trailer);
  return image;
}

void writeFile(const std::string &path, const std::string &bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush())
    throw std::runtime_error("cannot write " + path);
}

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

const std::string &scratchFolder() {
  static const struct Folder {
    std::string path = (std::filesystem::temp_directory_path() / "tenon-runtime-XXXXXX").string();
    Folder() {
      if (!mkdtemp(path.data()))
        throw std::runtime_error("cannot make a folder for the test");
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  } folder;
  return folder.path;
}

} // namespace toy
