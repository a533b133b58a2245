// Matrix products through oneDNN (>= 3.2), loaded when the first product is asked for.
//
// Each thread of the team multiplies its own slice, so oneDNN runs single-threaded inside: its
// OpenMP is told so once per thread. Primitives are cost milliseconds to create; they are cached
// for each thread by type, strides and a bucket of M:
//
//   m = 300:   256 rows (a multiple of 64, one primitive) + 44 rows padded to 48 (16, 32, 48 or 64)
#ifndef TENON_RUNTIME_MATMUL_H
#define TENON_RUNTIME_MATMUL_H

#include "runtime/kernel_abi.h"

#include <string>
#include <vector>

namespace tenon::rt {

// Where to look, in this order; call before the first product.
void setOneDnnCandidates(std::vector<std::string> paths);

// Loads oneDNN if that has not been tried. Afterwards `oneDnnFailed` never changes.
bool loadOneDnn();
// True when loading was tried in vain. Does not load.
bool oneDnnFailed();
// "oneDNN 3.2.0 from /path" or why there is none. Loads.
std::string describeOneDnn();

// tenon_services::matmul. Nonzero when oneDNN is absent or cannot do this type on this CPU.
int matmul(tenon_dtype dtype, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
           const void *b, int64_t ldb, float *c, int64_t ldc);

} // namespace tenon::rt

#endif // TENON_RUNTIME_MATMUL_H
