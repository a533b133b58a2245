// Products by cuBLASLt, over the stand-ins of test/emulator: strides, sums in place, alignments, and
// what is said where there is no library.
#include "runtime/cuda/CublasLt.h"
#include "runtime/Error.h"
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gmock/gmock.h>
#include <optional>
#include <vector>

using namespace tenon::rt;
using namespace tenon::rt::cuda;
using ::testing::HasSubstr;

namespace {

class CublasLtTest : public ::testing::Test {
protected:
  void SetUp() override {
    setenv("TENON_CUDA_DRIVER", TENON_EMULATED_DRIVER, 1);
    setenv("TENON_CUBLASLT", TENON_EMULATED_DRIVER, 1);
    device.emplace(0);
  }
  void TearDown() override { unsetenv("TENON_CUBLASLT"); }

  template <typename T> DeviceMemory upload(const std::vector<T> &values) {
    DeviceMemory memory(*device, int64_t(values.size() * sizeof(T)), "a test");
    device->driver().copyIn(memory.base(), values.data(), values.size() * sizeof(T),
                            device->stream());
    device->wait();
    return memory;
  }
  std::vector<float> download(const DeviceMemory &memory) {
    std::vector<float> values(size_t(memory.size()) / sizeof(float));
    device->driver().copyOut(values.data(), memory.base(), size_t(memory.size()), device->stream());
    device->wait();
    return values;
  }

  std::optional<Device> device;
};

// Small whole numbers: exact in both types.
uint16_t bitsOf(tenon_dtype type, int value) {
  if (type == TENON_BF16) {
    float exact = float(value);
    uint32_t word;
    std::memcpy(&word, &exact, sizeof word);
    return uint16_t(word >> 16);
  }
  const auto half = _Float16(value);
  uint16_t bits;
  std::memcpy(&bits, &half, sizeof bits);
  return bits;
}

enum class Sum { None, Apart, InPlace };

TEST_F(CublasLtTest, Multiplies) {
  constexpr int64_t rows = 5, columns = 7, depth = 16, stride = 9, addStride = 11;
  CublasLt library(*device);
  for (tenon_dtype type : {TENON_BF16, TENON_F16})
    for (Sum sum : {Sum::None, Sum::Apart, Sum::InPlace}) {
      auto x = [](int64_t r, int64_t k) { return int(r * 3 + k) % 7 - 3; };
      auto w = [](int64_t c, int64_t k) { return int(c * 5 + k * 2) % 11 - 5; };
      std::vector<uint16_t> xs, ws;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t k = 0; k < depth; ++k)
          xs.push_back(bitsOf(type, x(r, k)));
      for (int64_t c = 0; c < columns; ++c)
        for (int64_t k = 0; k < depth; ++k)
          ws.push_back(bitsOf(type, w(c, k)));
      std::vector<float> adds(size_t(rows * addStride)), before(size_t(rows * stride));
      for (size_t i = 0; i < adds.size(); ++i)
        adds[i] = float(i % 13);
      for (size_t i = 0; i < before.size(); ++i)
        before[i] = float(i % 17) - 100;
      DeviceMemory dx = upload(xs), dw = upload(ws), dadd = upload(adds), dout = upload(before);
      CublasLt::Matrices matrices = {type,      rows,    columns, depth,       dx.base(),
                                     dw.base(), nullptr, 0,       dout.base(), stride};
      if (sum == Sum::Apart) {
        matrices.add = dadd.base();
        matrices.addStride = addStride;
      } else if (sum == Sum::InPlace) {
        matrices.add = dout.base();
        matrices.addStride = stride;
      }
      library.multiply(matrices);
      std::vector<float> out = download(dout);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < stride; ++c) {
          const size_t at = size_t(r * stride + c);
          float want = c >= columns          ? before[at]
                       : sum == Sum::Apart   ? adds[size_t(r * addStride + c)]
                       : sum == Sum::InPlace ? before[at]
                                             : 0;
          for (int64_t k = 0; k < depth && c < columns; ++k)
            want += float(x(r, k) * w(c, k));
          ASSERT_EQ(out[at], want) << r << ", " << c;
        }
    }
}

// An algorithm is chosen for what is known of addresses, so that others must not get it.
TEST_F(CublasLtTest, LooksAtAlignment) {
  CublasLt library(*device);
  DeviceMemory x = upload(std::vector<uint16_t>(64)), w = upload(std::vector<uint16_t>(64));
  DeviceMemory out = upload(std::vector<float>(64, 1));
  for (int64_t offset : {0, 4, 16, 0})
    library.multiply({TENON_BF16, 2, 4, 8, x.base(), w.base(), nullptr, 0, out.base() + offset, 4});
  EXPECT_EQ(download(out)[0], 0);
}

TEST_F(CublasLtTest, WithoutALibrary) {
  setenv("TENON_CUBLASLT", "/none/libcublasLt.so", 1);
  try {
    CublasLt library(*device);
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitMachine);
    EXPECT_THAT(error.what(), HasSubstr("/none/libcublasLt.so: cannot open shared object file"));
  }
  EXPECT_FALSE(CublasLt::isUnwanted());
  setenv("TENON_CUBLASLT", "none", 1);
  EXPECT_TRUE(CublasLt::isUnwanted());
  setenv("TENON_CUBLASLT", "", 1);
  EXPECT_FALSE(CublasLt::isUnwanted());
}

} // namespace
