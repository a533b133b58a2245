#include "Oracle.h"
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace {

template <class T> void append(const std::string &bytes, std::vector<double> &values) {
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + i, sizeof value);
    values.push_back(double(value));
  }
}

} // namespace

std::map<std::string, GoldenTensor> readOracle(const std::string &name) {
  std::ifstream file(std::string(TENON_ORACLE_DIR "/") + name, std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (content.size() < 8)
    throw std::runtime_error("cannot read " + name);
  uint64_t headerSize;
  std::memcpy(&headerSize, content.data(), 8);
  auto header = nlohmann::json::parse(content.substr(8, headerSize));
  std::map<std::string, GoldenTensor> result;
  for (auto &[key, entry] : header.items()) {
    if (key == "__metadata__")
      continue;
    GoldenTensor tensor;
    tensor.shape = entry["shape"].get<std::vector<int64_t>>();
    auto range = entry["data_offsets"].get<std::vector<size_t>>();
    std::string bytes = content.substr(8 + headerSize + range[0], range[1] - range[0]);
    std::string type = entry["dtype"];
    if (type == "F32")
      append<float>(bytes, tensor.values);
    else if (type == "F64")
      append<double>(bytes, tensor.values);
    else if (type == "I32")
      append<int32_t>(bytes, tensor.values);
    else if (type == "I64")
      append<int64_t>(bytes, tensor.values);
    else
      append<uint8_t>(bytes, tensor.values);
    result[key] = std::move(tensor);
  }
  return result;
}
