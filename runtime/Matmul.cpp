#include "runtime/Matmul.h"

#include <fmt/core.h>

#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>

namespace tenon::rt {

namespace {

// The functions we use, by their declarations in the header; nothing of oneDNN is linked.
struct Api {
#define TENON_DNNL_FUNCTIONS(X)                                                                    \
  X(version)                                                                                       \
  X(engine_create)                                                                                 \
  X(stream_create)                                                                                 \
  X(stream_destroy)                                                                                \
  X(stream_wait)                                                                                   \
  X(memory_desc_create_with_strides)                                                               \
  X(memory_desc_destroy)                                                                           \
  X(memory_create)                                                                                 \
  X(memory_set_data_handle)                                                                        \
  X(memory_destroy)                                                                                \
  X(matmul_primitive_desc_create)                                                                  \
  X(primitive_desc_destroy)                                                                        \
  X(primitive_create)                                                                              \
  X(primitive_execute)                                                                             \
  X(primitive_destroy)
#define TENON_DECLARE(name) decltype(&dnnl_##name) name = nullptr;
  TENON_DNNL_FUNCTIONS(TENON_DECLARE)
#undef TENON_DECLARE
  void (*setThreads)(int) = nullptr; // omp_set_num_threads; null when oneDNN is sequential
  dnnl_engine_t engine = nullptr;
};

struct Library {
  std::once_flag once;
  std::vector<std::string> candidates;
  Api api;
  std::string description = "not looked for";
  std::atomic<int> state{0}; // 0 not tried, 1 loaded, -1 failed
};

} // namespace

static Library &library() {
  static Library instance;
  return instance;
}

// Empty on success, else why this library won't do.
static std::string loadFrom(const std::string &path, Api &api) {
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return dlerror();
  auto refuse = [&](std::string reason) {
    dlclose(handle);
    return reason;
  };
#define TENON_RESOLVE(name)                                                                        \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(handle, "dnnl_" #name));                   \
  if (!api.name)                                                                                   \
    return refuse(path + " lacks dnnl_" #name);
  TENON_DNNL_FUNCTIONS(TENON_RESOLVE)
#undef TENON_RESOLVE
  const dnnl_version_t *version = api.version();
  if (version->major != 3 || version->minor < 2)
    return refuse(fmt::format("{} is oneDNN {}.{}, not 3.2 or later in 3.x", path, version->major,
                              version->minor));
  if (version->cpu_runtime == DNNL_RUNTIME_OMP) {
    api.setThreads = reinterpret_cast<void (*)(int)>(dlsym(handle, "omp_set_num_threads"));
    if (!api.setThreads)
      return refuse(path + " brings no omp_set_num_threads");
  } else if (version->cpu_runtime != DNNL_RUNTIME_SEQ) {
    return refuse(path + " runs its own thread pool; an OpenMP or sequential build is needed");
  }
  if (api.engine_create(&api.engine, dnnl_cpu, 0) != dnnl_success)
    return refuse(path + " offers no CPU engine");
  return {};
}

static void loadOnce() {
  Library &lib = library();
  std::string reasons;
  for (const std::string &path : lib.candidates) {
    Api api;
    std::string reason = loadFrom(path, api);
    if (reason.empty()) {
      lib.api = api;
      const dnnl_version_t *version = api.version();
      lib.description = fmt::format("oneDNN {}.{}.{} from {}", version->major, version->minor,
                                    version->patch, path);
      lib.state = 1;
      return;
    }
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  lib.description = "none (" + (reasons.empty() ? "no place to look" : reasons) + ")";
  lib.state = -1;
}

namespace {

// (type, m, n, k, lda, ldb, ldc)
using Key = std::array<int64_t, 7>;

// One product shape on one thread: the primitive and the memory objects it is executed with.
struct Product {
  dnnl_primitive_t primitive = nullptr; // null: oneDNN cannot do it
  dnnl_memory_t a = nullptr, b = nullptr, c = nullptr;

  int execute(const Api &api, dnnl_stream_t stream, const void *aData, const void *bData,
              float *cData) const {
    if (!primitive)
      return 1;
    api.memory_set_data_handle(a, const_cast<void *>(aData));
    api.memory_set_data_handle(b, const_cast<void *>(bData));
    api.memory_set_data_handle(c, cData);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}};
    if (api.primitive_execute(primitive, stream, 3, args) != dnnl_success)
      return 1;
    return api.stream_wait(stream) != dnnl_success;
  }
};

// What a thread keeps. oneDNN's own scratchpads belong to the creating thread, so each thread
// creates what it executes.
struct Worker {
  const Api &api;
  dnnl_stream_t stream = nullptr;
  std::map<Key, Product> products;
  std::vector<char> paddedA;
  std::vector<float> paddedC;

  explicit Worker(const Api &api) : api(api) {
    if (api.setThreads)
      api.setThreads(1);
    if (api.stream_create(&stream, api.engine, dnnl_stream_in_order) != dnnl_success)
      stream = nullptr;
  }
  ~Worker() {
    for (auto &[key, product] : products)
      if (product.primitive) {
        api.primitive_destroy(product.primitive);
        api.memory_destroy(product.a);
        api.memory_destroy(product.b);
        api.memory_destroy(product.c);
      }
    if (stream)
      api.stream_destroy(stream);
  }

  const Product &find(const Key &key);
};

} // namespace

static dnnl_data_type_t dataType(int64_t dtype) {
  return dtype == TENON_F32 ? dnnl_f32 : dtype == TENON_BF16 ? dnnl_bf16 : dnnl_f16;
}

static Product create(const Api &api, const Key &key) {
  auto [dtype, m, n, k, lda, ldb, ldc] = key;
  auto describe = [&](dnnl_data_type_t type, int64_t rows, int64_t columns, int64_t stride) {
    dnnl_dims_t dims = {rows, columns}, strides = {stride, 1};
    dnnl_memory_desc_t desc = nullptr;
    api.memory_desc_create_with_strides(&desc, 2, dims, type, strides);
    return desc;
  };
  dnnl_memory_desc_t a = describe(dataType(dtype), m, k, lda);
  dnnl_memory_desc_t b = describe(dataType(dtype), k, n, ldb);
  dnnl_memory_desc_t c = describe(dnnl_f32, m, n, ldc);
  Product product;
  dnnl_primitive_desc_t desc = nullptr;
  if (a && b && c &&
      api.matmul_primitive_desc_create(&desc, api.engine, a, b, nullptr, c, nullptr) ==
          dnnl_success) {
    bool complete =
        api.primitive_create(&product.primitive, desc) == dnnl_success &&
        api.memory_create(&product.a, a, api.engine, DNNL_MEMORY_NONE) == dnnl_success &&
        api.memory_create(&product.b, b, api.engine, DNNL_MEMORY_NONE) == dnnl_success &&
        api.memory_create(&product.c, c, api.engine, DNNL_MEMORY_NONE) == dnnl_success;
    if (!complete)
      product = {};
    api.primitive_desc_destroy(desc);
  }
  for (dnnl_memory_desc_t memory : {a, b, c})
    if (memory)
      api.memory_desc_destroy(memory);
  return product;
}

const Product &Worker::find(const Key &key) {
  auto found = products.find(key);
  if (found == products.end())
    found = products.emplace(key, create(api, key)).first;
  return found->second;
}

void setOneDnnCandidates(std::vector<std::string> paths) {
  if (library().state == 0)
    library().candidates = std::move(paths);
}

bool loadOneDnn() {
  std::call_once(library().once, loadOnce);
  return library().state == 1;
}

bool oneDnnFailed() { return library().state < 0; }

std::string describeOneDnn() {
  loadOneDnn();
  return library().description;
}

int matmul(tenon_dtype dtype, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
           const void *b, int64_t ldb, float *c, int64_t ldc) {
  if (dtype == TENON_I8 || !loadOneDnn())
    return 1;
  if (m <= 0 || n <= 0)
    return 0;
  thread_local std::unique_ptr<Worker> worker;
  if (!worker)
    worker = std::make_unique<Worker>(library().api);
  const Api &api = worker->api;
  if (!worker->stream)
    return 1;

  const int64_t element = dtype == TENON_F32 ? 4 : 2;
  const char *aRows = static_cast<const char *>(a);
  constexpr int64_t most = 512;
  while (m >= 64) {
    int64_t rows = std::min(m / 64 * 64, most);
    const Product &product = worker->find({dtype, rows, n, k, lda, ldb, ldc});
    if (int status = product.execute(api, worker->stream, aRows, b, c))
      return status;
    aRows += rows * lda * element;
    c += rows * ldc;
    m -= rows;
  }
  if (m == 0)
    return 0;
  // The tail: copied to a bucket of 16, 32, 48 or 64 rows; the surplus rows are zeros, their
  // results are dropped.
  int64_t rows = (m + 15) / 16 * 16;
  worker->paddedA.assign(static_cast<size_t>(rows * k * element), 0);
  worker->paddedC.resize(static_cast<size_t>(rows * n));
  for (int64_t row = 0; row < m; ++row)
    std::memcpy(worker->paddedA.data() + row * k * element, aRows + row * lda * element,
                static_cast<size_t>(k * element));
  const Product &product = worker->find({dtype, rows, n, k, k, ldb, n});
  if (int status =
          product.execute(api, worker->stream, worker->paddedA.data(), b, worker->paddedC.data()))
    return status;
  for (int64_t row = 0; row < m; ++row)
    std::memcpy(c + row * ldc, worker->paddedC.data() + row * n,
                static_cast<size_t>(n) * sizeof(float));
  return 0;
}

} // namespace tenon::rt

#else // no header: this build of Tenon cannot use oneDNN

namespace tenon::rt {

void setOneDnnCandidates(std::vector<std::string>) {}
bool loadOneDnn() { return false; }
bool oneDnnFailed() { return true; }
std::string describeOneDnn() { return "none (Tenon was built without it)"; }
int matmul(tenon_dtype, int64_t, int64_t, int64_t, const void *, int64_t, const void *, int64_t,
           float *, int64_t) {
  return 1;
}

} // namespace tenon::rt

#endif
