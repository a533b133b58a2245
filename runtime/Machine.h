// What this machine offers: CPU features by the names of /proc/cpuinfo, and how many CPUs we may
// use.
#ifndef TENON_RUNTIME_MACHINE_H
#define TENON_RUNTIME_MACHINE_H

#include <string>
#include <string_view>
#include <vector>

namespace tenon::rt {

// The first of the comma-separated features that this CPU (or its operating system) lacks; empty
// when it has them all. A name this runtime does not know counts as lacking.
std::string missingFeature(std::string_view features);

// CPUs in the affinity mask.
std::vector<int> affinityCpus();
// Threads worth starting: the affinity mask, cut by the cgroup's CPU quota; at least 1.
int allowedCpus();

} // namespace tenon::rt

#endif // TENON_RUNTIME_MACHINE_H
