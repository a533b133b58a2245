// Where the time of steps goes: when each thread began and ended each stage of the programs, and
// how long it waited for the others.
//
//   thread 0   norm_qkv ▇▇▇▇▇ wait ░ rope_attention ▇▇▇▇▇▇▇ wait ░░ ...
//   thread 1   norm_qkv ▇▇▇▇▇▇       rope_attention ▇▇▇▇▇▇▇▇▇      ...
//
// Programs call the hooks between stages only when asked to (tenon_services::mark).
#ifndef TENON_RUNTIME_TRACE_H
#define TENON_RUNTIME_TRACE_H

#include "runtime/kernel_abi.h"

#include <chrono>
#include <string>
#include <vector>

namespace tenon::rt {

class Trace {
public:
  using Clock = std::chrono::steady_clock;

  static constexpr int32_t waiting = -1;
  struct Event {
    int32_t stage; // of the program, or `waiting`
    Clock::time_point begin, end;
  };
  struct Step {
    const tenon_stages *stages;
    int64_t tokens, scored;
    int64_t context; // cached positions of all sequences
    int64_t pairs;   // of a query and a key it sees, without a window
    std::vector<std::vector<Event>> threads;
  };

  Trace();
  ~Trace();
  const std::vector<Step> &steps() const { return all; }
  // In the format of Chrome's tracing and of Perfetto: microseconds since the first event.
  std::string toJson() const;

  // The engine's side: around a program, and on each of its threads.
  void beginStep(const tenon_stages &stages, const tenon_batch &batch, int threads);
  void enter(int thread);
  static void mark(const tenon_env *env, int32_t stage);
  static void barrier(const tenon_env *env); // the team's, timed
  // What is known only once the step is over, as a device's: in place of the hooks.
  void add(int thread, std::vector<Event> events) {
    all.back().threads[static_cast<size_t>(thread)] = std::move(events);
  }

  struct Lane;

private:
  std::vector<Step> all;
  std::vector<Lane> lanes;
};

// What one kernel takes in all stages of a step.
struct KernelTime {
  std::string kernel; // "wait" for waiting
  int64_t calls = 0;
  double seconds = 0; // of work, averaged over the threads
  double bytes = 0;   // of weights and cache
  double flops = 0;
};
// Of an average step but the first `known`, the slowest first.
std::vector<KernelTime> sumByKernel(const Trace &trace, size_t known = 0);

} // namespace tenon::rt

#endif // TENON_RUNTIME_TRACE_H
