// A stand-in for libcublasLt.so.13: the functions that Tenon's runtime calls, for products of 16-bit
// matrices with f32 results. TENON_CUBLASLT names it to an executable, together with the driver's.
//
// It takes what the library promises to take and nothing else: a product's description must be
// complete, its matrices allocated, and no less aligned than was said when an algorithm was chosen.
//
//   TENON_EMULATED_LOG     set: a line for each product, rows x columns x depth, on stderr
#include "test/emulator/Device.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace tenon::emulator;

namespace {

// Numbers of the library's interface.
enum Status { DONE = 0, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum Type { R_32F = 0, R_16F = 2, R_16BF = 14 };
constexpr int Compute32F = 68, TransA = 3, OpT = 1, MaxWorkspace = 1, AlignmentA = 5;

struct Description {
  int32_t transA = 0;
};
// Column-major.
struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t stride;

  // Of all elements.
  size_t bytes() const {
    return ((columns - 1) * uint64_t(stride) + rows) * (type == R_32F ? 4 : 2);
  }
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t alignments[4] = {256, 256, 256, 256};
};
// Of an algorithm, in the library's opaque words.
struct Algorithm {
  uint64_t workspace;
  uint32_t alignments[4];
  uint64_t unused[5];
};
static_assert(sizeof(Algorithm) == 64);
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

const char *why = "";
int refuse(Status status, const char *text) {
  why = text;
  return status;
}

float toFloat(int type, uint16_t bits) {
  if (type == R_16BF) {
    uint32_t word = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
  _Float16 value;
  std::memcpy(&value, &bits, sizeof value);
  return float(value);
}

// [columns][rows] as floats.
std::vector<float> read(const Layout &layout, const void *from) {
  std::vector<float> values;
  values.reserve(layout.columns * layout.rows);
  auto *bits = static_cast<const uint16_t *>(from);
  for (uint64_t c = 0; c < layout.columns; ++c)
    for (uint64_t r = 0; r < layout.rows; ++r)
      values.push_back(toFloat(layout.type, bits[c * uint64_t(layout.stride) + r]));
  return values;
}

// d = aᵀ · b + beta · c
void multiply(const Layout &aIs, const void *a, const Layout &bIs, const void *b, float beta,
              const Layout &cIs, const float *c, const Layout &dIs, float *d) {
  const uint64_t depth = aIs.rows, high = aIs.columns;
  const std::vector<float> rows = read(aIs, a), columns = read(bIs, b);
  std::vector<float> turned(depth * high), sums(high);
  for (uint64_t i = 0; i < high; ++i)
    for (uint64_t k = 0; k < depth; ++k)
      turned[k * high + i] = rows[i * depth + k];
  for (uint64_t j = 0; j < bIs.columns; ++j) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (uint64_t k = 0; k < depth; ++k)
      for (uint64_t i = 0; i < high; ++i)
        sums[i] += turned[k * high + i] * columns[j * depth + k];
    for (uint64_t i = 0; i < high; ++i)
      d[j * uint64_t(dIs.stride) + i] =
          sums[i] + (beta != 0 ? beta * c[j * uint64_t(cIs.stride) + i] : 0);
  }
}

} // namespace

EXPORT cublasLtCreate(void **handle) {
  static int there;
  *handle = &there;
  return DONE;
}
EXPORT cublasLtDestroy(void *) { return DONE; }
extern "C" __attribute__((visibility("default"))) const char *cublasLtGetStatusString(int) {
  return why;
}

EXPORT cublasLtMatmulDescCreate(Description **description, int compute, int scale) {
  if (compute != Compute32F || scale != R_32F)
    return refuse(NOT_SUPPORTED, "products are computed in f32");
  *description = new Description;
  return DONE;
}
EXPORT cublasLtMatmulDescDestroy(Description *description) {
  delete description;
  return DONE;
}
EXPORT cublasLtMatmulDescSetAttribute(Description *description, int attribute, const void *value,
                                      size_t bytes) {
  if (attribute != TransA || bytes != sizeof description->transA)
    return refuse(INVALID_VALUE, "the stand-in does not know that attribute");
  std::memcpy(&description->transA, value, bytes);
  return DONE;
}
EXPORT cublasLtMatrixLayoutCreate(Layout **layout, int type, uint64_t rows, uint64_t columns,
                                  int64_t stride) {
  if (rows == 0 || columns == 0 || stride < int64_t(rows))
    return refuse(INVALID_VALUE, "a matrix whose columns overlap, or an empty one");
  *layout = new Layout{type, rows, columns, stride};
  return DONE;
}
EXPORT cublasLtMatrixLayoutDestroy(Layout *layout) {
  delete layout;
  return DONE;
}
EXPORT cublasLtMatmulPreferenceCreate(Preference **preference) {
  *preference = new Preference;
  return DONE;
}
EXPORT cublasLtMatmulPreferenceDestroy(Preference *preference) {
  delete preference;
  return DONE;
}
EXPORT cublasLtMatmulPreferenceSetAttribute(Preference *preference, int attribute,
                                            const void *value, size_t bytes) {
  if (attribute == MaxWorkspace && bytes == sizeof preference->workspace)
    std::memcpy(&preference->workspace, value, bytes);
  else if (attribute >= AlignmentA && attribute < AlignmentA + 4 && bytes == sizeof(uint32_t))
    std::memcpy(&preference->alignments[attribute - AlignmentA], value, bytes);
  else
    return refuse(INVALID_VALUE, "the stand-in does not know that preference");
  return DONE;
}

EXPORT cublasLtMatmulAlgoGetHeuristic(void *, const Description *description, const Layout *a,
                                      const Layout *b, const Layout *c, const Layout *d,
                                      const Preference *preference, int wanted, Heuristic *found,
                                      int *count) {
  *count = 0;
  if (wanted < 1)
    return refuse(INVALID_VALUE, "no algorithm is wanted");
  if (description->transA != OpT || (a->type != R_16BF && a->type != R_16F) || a->type != b->type ||
      c->type != R_32F || d->type != R_32F)
    return refuse(NOT_SUPPORTED, "the stand-in multiplies 16-bit matrices, the first transposed");
  if (a->rows != b->rows || c->rows != a->columns || c->columns != b->columns ||
      d->rows != c->rows || d->columns != c->columns)
    return refuse(INVALID_VALUE, "the matrices do not fit each other");
  *found = {};
  found->algorithm.workspace = preference->workspace;
  std::memcpy(found->algorithm.alignments, preference->alignments, sizeof preference->alignments);
  found->workspace = preference->workspace;
  *count = 1;
  return DONE;
}

EXPORT cublasLtMatmul(void *, const Description *description, const float *alpha, const void *a,
                      const Layout *aIs, const void *b, const Layout *bIs, const float *beta,
                      const void *c, const Layout *cIs, void *d, const Layout *dIs,
                      const Algorithm *algorithm, void *workspace, size_t workspaceBytes,
                      Stream *stream) {
  Device &there = device();
  std::lock_guard<std::recursive_mutex> lock(there.mutex);
  if (description->transA != OpT || *alpha != 1)
    return refuse(NOT_SUPPORTED, "the stand-in multiplies as they are");
  if (workspaceBytes < algorithm->workspace ||
      !isAllocated(static_cast<const char *>(workspace), workspaceBytes))
    return refuse(INVALID_VALUE, "the workspace is too small");
  const std::pair<const void *, const Layout *> matrices[] = {
      {a, aIs}, {b, bIs}, {c, cIs}, {d, dIs}};
  for (int i = 0; i < 4; ++i) {
    auto [address, layout] = matrices[i];
    if (!isAllocated(static_cast<const char *>(address), layout->bytes()))
      return refuse(INVALID_VALUE, "a matrix lies outside of what is allocated");
    if (reinterpret_cast<uintptr_t>(address) % algorithm->alignments[i] != 0)
      return refuse(INVALID_VALUE, "a matrix is less aligned than the algorithm was told");
  }
  if (c == d && cIs != dIs)
    return refuse(INVALID_VALUE, "a product in place has two descriptions of its result");
  if (std::getenv("TENON_EMULATED_LOG"))
    std::fprintf(stderr, "cublasLtMatmul: %llu x %llu x %llu\n", (unsigned long long)bIs->columns,
                 (unsigned long long)aIs->columns, (unsigned long long)aIs->rows);
  auto product = [=, aIs = *aIs, bIs = *bIs, cIs = *cIs, dIs = *dIs, beta = *beta] {
    multiply(aIs, a, bIs, b, beta, cIs, static_cast<const float *>(c), dIs,
             static_cast<float *>(d));
    return true;
  };
  if (there.enqueue(stream, product) != SUCCESS)
    return refuse(INVALID_VALUE, "the device is broken");
  return DONE;
}
