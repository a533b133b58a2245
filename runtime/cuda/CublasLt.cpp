// The library's matrices are column-major, so that it is asked for outᵀ = w · xᵀ:
//
//   row-major                  to the library                 as an operand
//   w [columns][depth]         [depth x columns]              A, transposed
//   x [rows][depth]            [depth x rows]                 B
//   out [rows][columns]        [columns x rows]               D
#include "runtime/cuda/CublasLt.h"

#include "runtime/Error.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <vector>

namespace tenon::rt::cuda {

namespace {

// Numbers of the library's interface.
constexpr int computeFloat = 68;
constexpr int typeFloat = 0, typeHalf = 2, typeBfloat = 14;
constexpr int operationTransposesA = 3;
constexpr int32_t transposed = 1;
constexpr int preferenceWorkspace = 1;
constexpr int preferenceAlignment = 5; // of A; then of B, C and D

// The largest power of two, 256 at most, that divides an address.
uint32_t alignmentOf(const char *address) {
  const auto bits = reinterpret_cast<uintptr_t>(address) | 256;
  return static_cast<uint32_t>(bits & -bits);
}

// The user's word; null where there is none.
const char *setting() {
  const char *value = std::getenv("TENON_CUBLASLT");
  return value && *value ? value : nullptr;
}

// The library that is named, else the newest one that the driver can serve. `path` becomes its name.
void *open(const Driver &driver, std::string &path, std::string &why) {
  std::vector<const char *> names = {"libcublasLt.so.13", "libcublasLt.so.12"};
  if (driver.version() < 13000)
    names.erase(names.begin());
  if (setting())
    names = {setting()};
  for (const char *name : names) {
    path = name;
    if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
      return library;
    why += (why.empty() ? "" : "; ") + std::string(dlerror());
  }
  return nullptr;
}

} // namespace

bool CublasLt::isUnwanted() { return setting() && std::strcmp(setting(), "none") == 0; }

CublasLt::CublasLt(const Device &on) : device(on) {
  std::string path, why;
  void *library = open(device.driver(), path, why);
  if (!library)
    throw Error(ExitMachine,
                fmt::format("this executable multiplies its large matrices with cuBLASLt: {}; "
                            "TENON_CUBLASLT names the library, TENON_CUBLASLT=none does without, "
                            "at less speed",
                            why));
#define TENON_CUBLASLT_FIND(name, symbol, parameters)                                              \
  name = reinterpret_cast<decltype(name)>(dlsym(library, symbol));                                 \
  if (!name)                                                                                       \
    throw Error(ExitMachine,                                                                       \
                fmt::format("cuBLASLt ({}) lacks {}; version 12 or 13 is needed", path, symbol));
  TENON_CUBLASLT_FUNCTIONS(TENON_CUBLASLT_FIND)
#undef TENON_CUBLASLT_FIND
  statusText = reinterpret_cast<decltype(statusText)>(dlsym(library, "cublasLtGetStatusString"));
  check(create(&handle), "start");
  check(createOperation(&operation, computeFloat, typeFloat), "describe a product");
  check(setOperation(operation, operationTransposesA, &transposed, sizeof transposed),
        "describe a product");
  workspace = DeviceMemory(device, workspaceBytes, "cuBLASLt");
}

CublasLt::~CublasLt() {
  for (const auto &[form, plan] : plans)
    for (lt::Layout layout : {plan.x, plan.w, plan.add, plan.out})
      if (layout)
        destroyLayout(layout);
  destroyOperation(operation);
  destroy(handle);
}

void CublasLt::check(Result result, const char *what) const {
  if (result == 0)
    return;
  throw Error(ExitMachine, fmt::format("cuBLASLt: cannot {}: {}", what,
                                       statusText ? statusText(result) : std::to_string(result)));
}

CublasLt::Plan CublasLt::makePlan(const Matrices &m, const uint32_t (&alignments)[4]) {
  const int type = m.type == TENON_BF16 ? typeBfloat : typeHalf;
  const auto rows = static_cast<uint64_t>(m.rows), columns = static_cast<uint64_t>(m.columns);
  const auto depth = static_cast<uint64_t>(m.depth);
  Plan plan = {};
  check(createLayout(&plan.w, type, depth, columns, m.depth), "describe a matrix");
  check(createLayout(&plan.x, type, depth, rows, m.depth), "describe a matrix");
  check(createLayout(&plan.out, typeFloat, columns, rows, m.outStride), "describe a matrix");
  if (m.add != m.out)
    check(createLayout(&plan.add, typeFloat, columns, rows, m.addStride), "describe a matrix");

  lt::Preference preference = nullptr;
  check(createPreference(&preference), "describe a product");
  const auto bytes = static_cast<uint64_t>(workspaceBytes);
  Result result = setPreference(preference, preferenceWorkspace, &bytes, sizeof bytes);
  for (int i = 0; i < 4 && result == 0; ++i)
    result = setPreference(preference, preferenceAlignment + i, &alignments[i], sizeof(uint32_t));
  lt::Heuristic found = {};
  int count = 0;
  if (result == 0)
    result = chooseAlgorithm(handle, operation, plan.w, plan.x, plan.add ? plan.add : plan.out,
                             plan.out, preference, 1, &found, &count);
  destroyPreference(preference);
  check(result, "choose an algorithm");
  if (count == 0 || found.state != 0)
    throw Error(ExitMachine, fmt::format("cuBLASLt has no algorithm for {} x {} x {}", m.rows,
                                         m.columns, m.depth));
  plan.algorithm = found.algorithm;
  return plan;
}

void CublasLt::multiply(const Matrices &asked) {
  Matrices m = asked;
  const float alpha = 1, beta = m.add ? 1 : 0;
  if (!m.add) { // it is not read
    m.add = m.out;
    m.addStride = m.outStride;
  }
  const uint32_t alignments[4] = {alignmentOf(m.w), alignmentOf(m.x), alignmentOf(m.add),
                                  alignmentOf(m.out)};
  const Form form = {m.type,        m.rows,        m.columns,      m.depth,
                     m.addStride,   m.outStride,   m.add == m.out, alignments[0],
                     alignments[1], alignments[2], alignments[3]};
  auto found = plans.find(form);
  if (found == plans.end())
    found = plans.emplace(form, makePlan(m, alignments)).first;
  const Plan &plan = found->second;
  check(matmul(handle, operation, &alpha, m.w, plan.w, m.x, plan.x, &beta, m.add,
               plan.add ? plan.add : plan.out, m.out, plan.out, &plan.algorithm, workspace.base(),
               workspaceBytes, device.stream()),
        "multiply");
}

} // namespace tenon::rt::cuda
