// A region of mapped memory: a whole file, read-only, or fresh zero pages that cost nothing until
// touched.
#ifndef TENON_RUNTIME_MAPPING_H
#define TENON_RUNTIME_MAPPING_H

#include <cstdint>
#include <string>

namespace tenon::rt {

class Mapping {
public:
  Mapping() = default;
  Mapping(Mapping &&other) noexcept { *this = static_cast<Mapping &&>(other); }
  Mapping &operator=(Mapping &&other) noexcept;
  ~Mapping();

  // `name` is what messages call the file.
  static Mapping ofFile(const std::string &path, const std::string &name);
  static Mapping ofFile(const std::string &path) { return ofFile(path, path); }
  // At least `bytes`, in huge pages where that many are worth it. `what` is named when the machine
  // refuses: "the KV cache".
  static Mapping ofZeros(int64_t bytes, const char *what);

  char *data() const { return start; }
  int64_t size() const { return bytes; }

private:
  Mapping(char *start, int64_t bytes) : start(start), bytes(bytes) {}

  char *start = nullptr;
  int64_t bytes = 0;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_MAPPING_H
