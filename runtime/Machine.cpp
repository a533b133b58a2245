#include "runtime/Machine.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tenon::rt {

#if defined(__x86_64__)

namespace {
// Registers whose use the operating system must have enabled (bits of XCR0).
enum State : uint32_t { Base = 0, Ymm = 0x6, Zmm = 0xe6, Tile = 0x60000 };
enum Register { Ebx, Ecx, Edx, Eax };

struct Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register reg;
  int bit;
  State state;
};
} // namespace

static constexpr Feature features[] = {
    {"pni", 1, 0, Ecx, 0, Base},
    {"sse3", 1, 0, Ecx, 0, Base},
    {"ssse3", 1, 0, Ecx, 9, Base},
    {"cx16", 1, 0, Ecx, 13, Base},
    {"sse4_1", 1, 0, Ecx, 19, Base},
    {"sse4_2", 1, 0, Ecx, 20, Base},
    {"movbe", 1, 0, Ecx, 22, Base},
    {"popcnt", 1, 0, Ecx, 23, Base},
    {"sse", 1, 0, Edx, 25, Base},
    {"sse2", 1, 0, Edx, 26, Base},
    {"lahf_lm", 0x80000001, 0, Ecx, 0, Base},
    {"abm", 0x80000001, 0, Ecx, 5, Base},
    {"lzcnt", 0x80000001, 0, Ecx, 5, Base},
    {"bmi1", 7, 0, Ebx, 3, Base},
    {"bmi2", 7, 0, Ebx, 8, Base},
    {"gfni", 7, 0, Ecx, 8, Base},
    {"avx", 1, 0, Ecx, 28, Ymm},
    {"f16c", 1, 0, Ecx, 29, Ymm},
    {"fma", 1, 0, Ecx, 12, Ymm},
    {"avx2", 7, 0, Ebx, 5, Ymm},
    {"vaes", 7, 0, Ecx, 9, Ymm},
    {"vpclmulqdq", 7, 0, Ecx, 10, Ymm},
    {"avx_vnni", 7, 1, Eax, 4, Ymm},
    {"avx_ifma", 7, 1, Eax, 23, Ymm},
    {"avx_vnni_int8", 7, 1, Edx, 4, Ymm},
    {"avx_ne_convert", 7, 1, Edx, 5, Ymm},
    {"avx512f", 7, 0, Ebx, 16, Zmm},
    {"avx512dq", 7, 0, Ebx, 17, Zmm},
    {"avx512ifma", 7, 0, Ebx, 21, Zmm},
    {"avx512cd", 7, 0, Ebx, 28, Zmm},
    {"avx512bw", 7, 0, Ebx, 30, Zmm},
    {"avx512vl", 7, 0, Ebx, 31, Zmm},
    {"avx512vbmi", 7, 0, Ecx, 1, Zmm},
    {"avx512_vbmi2", 7, 0, Ecx, 6, Zmm},
    {"avx512_vnni", 7, 0, Ecx, 11, Zmm},
    {"avx512_bitalg", 7, 0, Ecx, 12, Zmm},
    {"avx512_vpopcntdq", 7, 0, Ecx, 14, Zmm},
    {"avx512_fp16", 7, 0, Edx, 23, Zmm},
    {"avx512_bf16", 7, 1, Eax, 5, Zmm},
    {"amx_bf16", 7, 0, Edx, 22, Tile},
    {"amx_tile", 7, 0, Edx, 24, Tile},
    {"amx_int8", 7, 0, Edx, 25, Tile},
    {"amx_fp16", 7, 1, Eax, 21, Tile},
};

static uint64_t enabledState() {
  uint32_t eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & (1u << 27))) // OSXSAVE
    return 0;
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low | (uint64_t(high) << 32);
}

static bool has(const Feature &feature) {
  uint32_t regs[4] = {}; // in the order of Register
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &regs[Eax], &regs[Ebx], &regs[Ecx],
                         &regs[Edx]))
    return false;
  if (feature.leaf == 7 && feature.subleaf == 1) {
    uint32_t highestSubleaf = 0, ebx, ecx, edx;
    __get_cpuid_count(7, 0, &highestSubleaf, &ebx, &ecx, &edx);
    if (highestSubleaf < 1)
      return false;
  }
  return (regs[feature.reg] & (1u << feature.bit)) &&
         (enabledState() & feature.state) == feature.state;
}

bool Machine::has(std::string_view name) const {
  for (const Feature &feature : features)
    if (feature.name == name)
      return tenon::rt::has(feature);
  return false;
}

bool Machine::grantsTiles() const {
  // arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)
  return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}

#else

bool Machine::has(std::string_view) const { return false; }
bool Machine::grantsTiles() const { return false; }

#endif

std::string missingFeature(std::string_view list, const Machine &machine) {
  bool needsTiles = false;
  while (!list.empty()) {
    size_t comma = list.find(',');
    std::string_view name = list.substr(0, comma);
    if (!name.empty() && !machine.has(name))
      return std::string(name);
    needsTiles |= name == "amx_tile";
    list = comma == std::string_view::npos ? "" : list.substr(comma + 1);
  }
  if (needsTiles && !machine.grantsTiles())
    return "amx_tile, which the operating system refuses";
  return {};
}

std::vector<int> affinityCpus() {
  std::vector<int> cpus;
  for (int limit = 1024; limit <= (1 << 20); limit *= 2) {
    cpu_set_t *set = CPU_ALLOC(limit);
    size_t bytes = CPU_ALLOC_SIZE(limit);
    bool fits = sched_getaffinity(0, bytes, set) == 0;
    for (int cpu = 0; fits && cpu < limit; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set))
        cpus.push_back(cpu);
    CPU_FREE(set);
    if (fits)
      break;
  }
  if (cpus.empty())
    cpus.push_back(0);
  return cpus;
}

static std::string readLine(const std::string &path) {
  char line[512] = "";
  if (FILE *file = std::fopen(path.c_str(), "re")) {
    if (!std::fgets(line, sizeof line, file))
      line[0] = 0;
    std::fclose(file);
  }
  line[std::strcspn(line, "\n")] = 0;
  return line;
}

// CPUs that one control group grants, as a fraction; infinity without a limit.
static double groupQuota(const std::string &folder, bool unified) {
  double quota = -1, period = 0;
  if (unified) { // "max 100000" or "150000 100000"
    if (std::sscanf(readLine(folder + "/cpu.max").c_str(), "%lf %lf", &quota, &period) != 2)
      return INFINITY;
  } else {
    quota = std::atof(readLine(folder + "/cpu.cfs_quota_us").c_str());
    period = std::atof(readLine(folder + "/cpu.cfs_period_us").c_str());
  }
  return quota > 0 && period > 0 ? quota / period : INFINITY;
}

// The tightest limit from this process's control group up to the root.
static double cgroupQuota() {
  double quota = INFINITY;
  FILE *file = std::fopen("/proc/self/cgroup", "re");
  if (!file)
    return quota;
  char line[4096];
  while (std::fgets(line, sizeof line, file)) { // hierarchy:controllers:/path
    line[std::strcspn(line, "\n")] = 0;
    char *controllers = std::strchr(line, ':');
    char *path = controllers ? std::strchr(controllers + 1, ':') : nullptr;
    if (!path)
      continue;
    std::string names(controllers + 1, path);
    bool unified = names.empty();
    if (!unified && ("," + names + ",").find(",cpu,") == std::string::npos)
      continue;
    std::string root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    for (std::string group = path + 1;; group.erase(std::min(group.size(), group.rfind('/')))) {
      while (!group.empty() && group.back() == '/')
        group.pop_back();
      quota = std::min(quota, groupQuota(root + group, unified));
      if (group.empty())
        break;
    }
  }
  std::fclose(file);
  return quota;
}

int allowedCpus() {
  double cpus = static_cast<double>(affinityCpus().size());
  return std::max(1, static_cast<int>(std::min(cpus, cgroupQuota())));
}

} // namespace tenon::rt
