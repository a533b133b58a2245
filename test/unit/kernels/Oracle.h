// Golden tensors: a safetensors file of F32, F64, I32, I64 or U8 tensors, read as doubles.
#ifndef TENON_TEST_KERNELS_ORACLE_H
#define TENON_TEST_KERNELS_ORACLE_H

#include <map>
#include <string>
#include <vector>

struct GoldenTensor {
  std::vector<int64_t> shape;
  std::vector<double> values;

  int64_t dim(int64_t i) const { return shape[i]; }
  std::vector<float> floats() const { return {values.begin(), values.end()}; }
};

// `name` is a path below test/oracle.
std::map<std::string, GoldenTensor> readOracle(const std::string &name);

#endif // TENON_TEST_KERNELS_ORACLE_H
