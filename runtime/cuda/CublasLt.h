// cuBLASLt, NVIDIA's library of matrix products, for those executables that leave their large ones
// to it. Found when such an executable starts; declared here by its ABI (versions 12 and 13), so that
// nothing of CUDA is needed to build.
#ifndef TENON_RUNTIME_CUDA_CUBLASLT_H
#define TENON_RUNTIME_CUDA_CUBLASLT_H

#include "runtime/cuda/Device.h"

#include <map>
#include <memory>
#include <string>
#include <tuple>

namespace tenon::rt::cuda {

namespace lt {

using Handle = struct HandleTag *;
using Operation = struct OperationTag *;
using Layout = struct LayoutTag *;
using Preference = struct PreferenceTag *;

struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspaceBytes;
  Result state;
  float waves;
  int reserved[4];
};

} // namespace lt

// name in this program, its symbol, parameters
#define TENON_CUBLASLT_FUNCTIONS(X)                                                                \
  X(create, "cublasLtCreate", (lt::Handle * handle))                                               \
  X(destroy, "cublasLtDestroy", (lt::Handle handle))                                               \
  X(createOperation, "cublasLtMatmulDescCreate",                                                   \
    (lt::Operation * operation, int computeType, int scaleType))                                   \
  X(destroyOperation, "cublasLtMatmulDescDestroy", (lt::Operation operation))                      \
  X(setOperation, "cublasLtMatmulDescSetAttribute",                                                \
    (lt::Operation operation, int attribute, const void *value, size_t bytes))                     \
  X(createLayout, "cublasLtMatrixLayoutCreate",                                                    \
    (lt::Layout * layout, int type, uint64_t rows, uint64_t columns, int64_t stride))              \
  X(destroyLayout, "cublasLtMatrixLayoutDestroy", (lt::Layout layout))                             \
  X(createPreference, "cublasLtMatmulPreferenceCreate", (lt::Preference * preference))             \
  X(destroyPreference, "cublasLtMatmulPreferenceDestroy", (lt::Preference preference))             \
  X(setPreference, "cublasLtMatmulPreferenceSetAttribute",                                         \
    (lt::Preference preference, int attribute, const void *value, size_t bytes))                   \
  X(chooseAlgorithm, "cublasLtMatmulAlgoGetHeuristic",                                             \
    (lt::Handle handle, lt::Operation operation, lt::Layout a, lt::Layout b, lt::Layout c,         \
     lt::Layout d, lt::Preference preference, int wanted, lt::Heuristic *found, int *count))       \
  X(matmul, "cublasLtMatmul",                                                                      \
    (lt::Handle handle, lt::Operation operation, const void *alpha, const void *a, lt::Layout aIs, \
     const void *b, lt::Layout bIs, const void *beta, const void *c, lt::Layout cIs, void *d,      \
     lt::Layout dIs, const lt::Algorithm *algorithm, void *workspace, size_t workspaceBytes,       \
     Stream stream))

// Every function throws with ExitMachine where the library fails.
class CublasLt {
public:
  // Of device memory that products may use meanwhile, as NVIDIA advises for Hopper.
  static constexpr int64_t workspaceBytes = 32 << 20;

  // Whether TENON_CUBLASLT is "none": kernels of the executable take all products.
  static bool isUnwanted();

  // libcublasLt.so.13 or .12, or the library that TENON_CUBLASLT names.
  explicit CublasLt(const Device &device);
  ~CublasLt();
  CublasLt(const CublasLt &) = delete;
  CublasLt &operator=(const CublasLt &) = delete;

  // All matrices are row-major in the device's memory; a row begins `Stride` elements behind the one
  // before. out = x · wᵀ, + add unless that is null; add may be out, of the same stride.
  struct Matrices {
    tenon_dtype type; // of x and w
    int64_t rows, columns, depth;
    const char *x, *w; // strides: depth
    const char *add;
    int64_t addStride;
    char *out;
    int64_t outStride;
  };
  void multiply(const Matrices &matrices);

private:
  // What the library prepares for matrices of one form.
  struct Plan {
    lt::Layout x, w, add, out; // no add: it is out
    lt::Algorithm algorithm;
  };
  // Type, sizes, strides, whether out is in the place of add, alignments.
  using Form = std::tuple<tenon_dtype, int64_t, int64_t, int64_t, int64_t, int64_t, bool, uint32_t,
                          uint32_t, uint32_t, uint32_t>;

  void check(Result result, const char *what) const;
  Plan makePlan(const Matrices &matrices, const uint32_t (&alignments)[4]);

#define TENON_CUBLASLT_DECLARE(name, symbol, parameters) Result(*name) parameters = nullptr;
  TENON_CUBLASLT_FUNCTIONS(TENON_CUBLASLT_DECLARE)
#undef TENON_CUBLASLT_DECLARE
  const char *(*statusText)(Result) = nullptr;

  const Device &device;
  lt::Handle handle = nullptr;
  lt::Operation operation = nullptr;
  DeviceMemory workspace;
  std::map<Form, Plan> plans;
};

} // namespace tenon::rt::cuda

#endif // TENON_RUNTIME_CUDA_CUBLASLT_H
