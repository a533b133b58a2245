// A team of threads that run one function together (SPMD). The caller is thread 0.
//
//   run(fn):  thread 0 ─ fn(0) ─ barrier ─ fn(0)… ─┐
//             thread 1 ─ fn(1) ─ barrier ─ fn(1)… ─┴─ all done, run returns
//
// Waiting threads spin for a moment and then sleep in the kernel (futex): stages of a decode step
// are microseconds apart, but a thread that spins while another needs its CPU makes everything
// slower. With more threads than CPUs nobody spins.
#ifndef TENON_RUNTIME_THREADTEAM_H
#define TENON_RUNTIME_THREADTEAM_H

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace tenon::rt {

class ThreadTeam {
public:
  explicit ThreadTeam(int threads, bool pin = false);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam &) = delete;
  ThreadTeam &operator=(const ThreadTeam &) = delete;

  int size() const { return threads; }

  // Calls fn(thread) on every thread of the team and returns when all are done. `fn` must not
  // throw.
  template <typename Fn> void run(Fn &&fn) {
    runErased([](void *context, int thread) { (*static_cast<Fn *>(context))(thread); }, &fn);
  }

  // Waits until every thread of the team has called it. Only inside `run`.
  void barrier();

private:
  using Task = void (*)(void *context, int thread);

  // A number that only grows, on which threads wait until it leaves a given value.
  struct alignas(64) Turnstile {
    std::atomic<uint32_t> turn{0};
    std::atomic<uint32_t> sleepers{0};

    void waitWhile(uint32_t value, int spinMicroseconds);
    void advance();
  };

  void runErased(Task task, void *context);
  void work(int thread);

  const int threads;
  int barrierSpin = 0, idleSpin = 0; // microseconds
  Turnstile start;                   // advances once for each `run`
  Turnstile stage;                   // advances once for each barrier
  alignas(64) std::atomic<int> arrived{0};
  Task task = nullptr; // null asks the workers to end
  void *context = nullptr;
  std::vector<std::thread> workers;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_THREADTEAM_H
