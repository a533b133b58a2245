#include "runtime/Mapping.h"

#include "runtime/Error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tenon::rt {

static constexpr int64_t hugePage = 2 << 20;

Mapping &Mapping::operator=(Mapping &&other) noexcept {
  std::swap(start, other.start);
  std::swap(bytes, other.bytes);
  return *this;
}

Mapping::~Mapping() {
  if (start)
    munmap(start, static_cast<size_t>(bytes));
}

Mapping Mapping::ofFile(const std::string &path, const std::string &name) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    refuse("{}: {}", name, std::strerror(errno));
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    refuse("{}: not a regular file", name);
  }
  if (status.st_size == 0) {
    close(file);
    return {};
  }
  void *start = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  int error = errno;
  close(file);
  if (start == MAP_FAILED)
    refuse("{}: cannot be mapped: {}", name, std::strerror(error));
  return Mapping(static_cast<char *>(start), status.st_size);
}

Mapping Mapping::ofZeros(int64_t bytes, const char *what) {
  if (bytes <= 0)
    return {};
  auto reserve = [&](int64_t size) {
    void *start = mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
      refuse("cannot reserve {} MiB for {}: {}", (size >> 20) + 1, what, std::strerror(errno));
    return static_cast<char *>(start);
  };
  if (bytes < hugePage)
    return Mapping(reserve(bytes), bytes);
  // Streaming through small pages costs half of the bandwidth and more: ask for huge ones, on their
  // boundaries.
  const int64_t length = (bytes + hugePage - 1) / hugePage * hugePage;
  char *start = reserve(length + hugePage);
  const int64_t before = -reinterpret_cast<intptr_t>(start) & (hugePage - 1);
  if (before > 0)
    munmap(start, static_cast<size_t>(before));
  munmap(start + before + length, static_cast<size_t>(hugePage - before));
  madvise(start + before, static_cast<size_t>(length), MADV_HUGEPAGE); // a refusal costs speed only
  return Mapping(start + before, length);
}

} // namespace tenon::rt
