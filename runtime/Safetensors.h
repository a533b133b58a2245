// safetensors files, as `logits` reads and writes them.
//
//   u64 length of the header | header (JSON): {"name": {"dtype", "shape", "data_offsets"}} | data
#ifndef TENON_RUNTIME_SAFETENSORS_H
#define TENON_RUNTIME_SAFETENSORS_H

#include "runtime/Mapping.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::rt {

struct Tensor {
  std::string name, dtype; // "F32", "I64", …
  std::vector<int64_t> shape;
  const char *data; // may be unaligned
  int64_t elements;
};

// A file read. Every size is checked against the file before it is used.
class SafetensorsFile {
public:
  explicit SafetensorsFile(const std::string &path);

  const std::vector<Tensor> &tensors() const { return all; }
  const Tensor *find(std::string_view name) const;
  const std::string &path() const { return fileName; }

private:
  std::string fileName;
  Mapping file;
  std::vector<Tensor> all;
};

// A file of F32 tensors, written in any order. It appears under its name when `finish` is called;
// what was never written is zeros.
class SafetensorsWriter {
public:
  struct Declaration {
    std::string name;
    std::vector<int64_t> shape;
  };
  SafetensorsWriter(const std::string &path, const std::vector<Declaration> &tensors);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter &) = delete;
  SafetensorsWriter &operator=(const SafetensorsWriter &) = delete;

  // Values of tensor number `tensor`, from its element `first` on.
  void write(size_t tensor, int64_t first, const float *values, int64_t count);
  void finish();

private:
  std::string path, partial;
  int file = -1;
  std::vector<int64_t> offsets; // of each tensor, in the file
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_SAFETENSORS_H
