// The library's matrices are column-major, so that it is asked for outᵀ = w · xᵀ:
//
//   row-major                  to the library                 as an operand
//   w [columns][depth]         [depth x columns]              A, transposed
//   x [rows][depth]            [depth x rows]                 B
//   out [rows][columns]        [columns x rows]               D
#include "runtime/cuda/CublasLt.h"

#include "runtime/Error.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

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

// The first library that can be opened; `path` becomes its name.
void *open(const char *named, std::string &path, std::string &why) {
  for (const char *name : {named, "libcublasLt.so.13", "libcublasLt.so.12"}) {
    if (!name)
      continue;
    path = name;
    if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
      return library;
    why += (why.empty() ? "" : "; ") + std::string(dlerror());
    if (named)
      break;
  }
  return nullptr;
}

const char *setting() { return std::getenv("TENON_CUBLASLT"); }

} // namespace

bool CublasLt::isUnwanted() { return setting() && std::strcmp(setting(), "none") == 0; }

CublasLt::CublasLt(const Device &on) : device(on) {
  std::string path, why;
  void *library = open(setting(), path, why);
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
  check(createLayout(&plan.add, typeFloat, columns, rows, m.add ? m.addStride : m.outStride),
        "describe a matrix");
  check(createLayout(&plan.out, typeFloat, columns, rows, m.outStride), "describe a matrix");

  lt::Preference preference = nullptr;
  check(createPreference(&preference), "describe a product");
  const auto bytes = static_cast<uint64_t>(workspaceBytes);
  Result result = setPreference(preference, preferenceWorkspace, &bytes, sizeof bytes);
  for (int i = 0; i < 4 && result == 0; ++i)
    result = setPreference(preference, preferenceAlignment + i, &alignments[i], sizeof(uint32_t));
  lt::Heuristic found = {};
  int count = 0;
  if (result == 0)
    result = chooseAlgorithm(handle, operation, plan.w, plan.x, plan.add, plan.out, preference, 1,
                             &found, &count);
  destroyPreference(preference);
  check(result, "choose an algorithm");
  if (count == 0)
    throw Error(ExitMachine, fmt::format("cuBLASLt has no algorithm for {} x {} x {}", m.rows,
                                         m.columns, m.depth));
  plan.algorithm = found.algorithm;
  return plan;
}

void CublasLt::multiply(const Matrices &m) {
  const char *add = m.add ? m.add : m.out;
  const uint32_t alignments[4] = {alignmentOf(m.w), alignmentOf(m.x), alignmentOf(add),
                                  alignmentOf(m.out)};
  const Form form = {
      m.type,      m.rows,        m.columns,     m.depth,       m.add ? m.addStride : m.outStride,
      m.outStride, alignments[0], alignments[1], alignments[2], alignments[3]};
  auto found = plans.find(form);
  if (found == plans.end())
    found = plans.emplace(form, makePlan(m, alignments)).first;
  const Plan &plan = found->second;
  const float alpha = 1, beta = m.add ? 1 : 0;
  check(matmul(handle, operation, &alpha, m.w, plan.w, m.x, plan.x, &beta, add, plan.add, m.out,
               plan.out, &plan.algorithm, workspace.base(), workspaceBytes, device.stream()),
        "multiply");
}

} // namespace tenon::rt::cuda
