// What this machine offers: CPU features by the names of /proc/cpuinfo, and how many CPUs we may
// use.
#ifndef TENON_RUNTIME_MACHINE_H
#define TENON_RUNTIME_MACHINE_H

#include <string>
#include <string_view>
#include <vector>

namespace tenon::rt {

// This machine. Tests ask others.
class Machine {
public:
  virtual ~Machine() = default;

  // A feature of the CPU whose registers the operating system saves. A name this runtime does not
  // know counts as lacking.
  virtual bool has(std::string_view feature) const;

  // Linux lets a process use tile registers (AMX) once it has asked for them; a context switch of
  // such a process may then move 8 KiB more. Asks, and says whether we may.
  virtual bool grantsTiles() const;
};

// The first of the comma-separated features that a machine lacks; empty when it has them all. Tiles
// are asked for when they are all that is left to know.
std::string missingFeature(std::string_view features, const Machine &machine = Machine());

// CPUs in the affinity mask.
std::vector<int> affinityCpus();
// Threads worth starting: the affinity mask, cut by the cgroup's CPU quota; at least 1.
int allowedCpus();

} // namespace tenon::rt

#endif // TENON_RUNTIME_MACHINE_H
