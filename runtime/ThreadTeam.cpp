#include "runtime/ThreadTeam.h"

#include "runtime/Machine.h"

#include <chrono>
#include <climits>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tenon::rt {

static void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// The sleeper announces itself before the kernel compares the value again, and the advancer changes
// the value before it looks for sleepers (both sequentially consistent): no wake-up is lost.
void ThreadTeam::Turnstile::waitWhile(uint32_t value, int spinMicroseconds) {
  using Clock = std::chrono::steady_clock;
  if (spinMicroseconds > 0) {
    Clock::time_point deadline;
    for (int round = 0;; ++round) {
      for (int i = 0; i < 64; ++i) {
        if (turn.load(std::memory_order_acquire) != value)
          return;
        pause();
      }
      if (round == 0)
        deadline = Clock::now() + std::chrono::microseconds(spinMicroseconds);
      else if (Clock::now() >= deadline)
        break;
    }
  }
  sleepers.fetch_add(1);
  while (turn.load() == value)
    syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
  sleepers.fetch_sub(1);
}

void ThreadTeam::Turnstile::advance() {
  turn.fetch_add(1);
  if (sleepers.load())
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

static void pinTo(pthread_t thread, int cpu) {
  cpu_set_t *set = CPU_ALLOC(cpu + 1);
  size_t bytes = CPU_ALLOC_SIZE(cpu + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(cpu, bytes, set);
  pthread_setaffinity_np(thread, bytes, set); // a refusal costs speed only
  CPU_FREE(set);
}

ThreadTeam::ThreadTeam(int threads, bool pin) : threads(threads) {
  std::vector<int> cpus = affinityCpus();
  if (threads > 1 && threads <= allowedCpus()) {
    barrierSpin = 50;
    idleSpin = 100; // sampling one token fits
  }
  for (int thread = 1; thread < threads; ++thread)
    workers.emplace_back([this, thread] { work(thread); });
  if (pin) {
    pinTo(pthread_self(), cpus[0]);
    for (int thread = 1; thread < threads; ++thread)
      pinTo(workers[thread - 1].native_handle(), cpus[thread % cpus.size()]);
  }
}

ThreadTeam::~ThreadTeam() {
  task = nullptr;
  start.advance();
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadTeam::barrier() {
  if (threads == 1)
    return;
  uint32_t turn = stage.turn.load(std::memory_order_relaxed); // can't change before we arrive
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
    arrived.store(0, std::memory_order_relaxed);
    stage.advance();
  } else {
    stage.waitWhile(turn, barrierSpin);
  }
}

void ThreadTeam::runErased(Task newTask, void *newContext) {
  task = newTask;
  context = newContext;
  if (threads > 1)
    start.advance();
  newTask(newContext, 0);
  barrier();
}

void ThreadTeam::work(int thread) {
  for (uint32_t turn = 0;; ++turn) {
    start.waitWhile(turn, idleSpin);
    if (!task)
      return;
    task(context, thread);
    barrier();
  }
}

} // namespace tenon::rt
