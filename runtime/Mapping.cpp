#include "runtime/Mapping.h"

#include "runtime/Error.h"
#include "runtime/artefact.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tenon::rt {

static constexpr int64_t smallPage = 4096, hugePage = TENON_HUGE_PAGE;

// Anonymous memory that begins at a huge page; null if there are no addresses for it.
static char *reserveAligned(int64_t length, int protection) {
  void *start = mmap(nullptr, static_cast<size_t>(length + hugePage), protection,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED)
    return nullptr;
  char *first = static_cast<char *>(start);
  const int64_t before = -reinterpret_cast<intptr_t>(first) & (hugePage - 1);
  if (before > 0)
    munmap(first, static_cast<size_t>(before));
  if (before < hugePage)
    munmap(first + before + length, static_cast<size_t>(hugePage - before));
  return first + before;
}

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
  // Where the file's pages are huge ones they are mapped as such if offset and address agree.
  const int64_t pages = (status.st_size + smallPage - 1) / smallPage * smallPage;
  char *place = status.st_size < hugePage ? nullptr : reserveAligned(pages, PROT_NONE);
  void *start = mmap(place, static_cast<size_t>(status.st_size), PROT_READ,
                     MAP_PRIVATE | (place ? MAP_FIXED : 0), file, 0);
  int error = errno;
  close(file);
  if (start == MAP_FAILED)
    refuse("{}: cannot be mapped: {}", name, std::strerror(error));
  if (place) // reads ahead in huge pages; a refusal costs speed only
    madvise(start, static_cast<size_t>(status.st_size), MADV_HUGEPAGE);
  return Mapping(static_cast<char *>(start), status.st_size);
}

Mapping Mapping::ofZeros(int64_t bytes, const char *what) {
  if (bytes <= 0)
    return {};
  auto check = [&](void *start) {
    if (!start || start == MAP_FAILED)
      refuse("cannot reserve {} MiB for {}: {}", (bytes >> 20) + 1, what, std::strerror(errno));
    return static_cast<char *>(start);
  };
  if (bytes < hugePage)
    return Mapping(check(mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)),
                   bytes);
  // Streaming through small pages costs half of the bandwidth and more: ask for huge ones, on their
  // boundaries.
  const int64_t length = (bytes + hugePage - 1) / hugePage * hugePage;
  char *start = check(reserveAligned(length, PROT_READ | PROT_WRITE));
  madvise(start, static_cast<size_t>(length), MADV_HUGEPAGE); // a refusal costs speed only
  return Mapping(start, length);
}

} // namespace tenon::rt
