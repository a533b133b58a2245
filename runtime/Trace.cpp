#include "runtime/Trace.h"

#include "runtime/ThreadTeam.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace tenon::rt {

static constexpr int32_t unknown = -2; // of a stage that has not ended yet

// What a thread needs to know while it runs a program.
struct alignas(64) Trace::Lane {
  const tenon_stages *stages;
  std::vector<Event> *events;
  Clock::time_point last;
  bool betweenStages; // the next barrier is the program's, not one inside a stage

  void add(int32_t stage) {
    Clock::time_point now = Clock::now();
    events->push_back({stage, last, now});
    last = now;
  }
};
static thread_local Trace::Lane *lane = nullptr;

Trace::Trace() = default;
Trace::~Trace() = default;

void Trace::beginStep(const tenon_stages &stages, const tenon_batch &batch, int threads) {
  Step step = {&stages, batch.tokens, batch.scored, 0, 0, {}};
  for (int32_t t = 0; t < batch.tokens; ++t)
    step.pairs += batch.positions[t] + 1;
  for (int32_t s = 0; s < batch.sequences; ++s)
    step.context += batch.positions[batch.starts[s + 1] - 1] + 1;
  step.threads.resize(static_cast<size_t>(threads));
  for (std::vector<Event> &events : step.threads)
    events.reserve(static_cast<size_t>(3 * stages.count));
  all.push_back(std::move(step));
  lanes.resize(static_cast<size_t>(threads));
}

void Trace::enter(int thread) {
  lane = &lanes[thread];
  *lane = {all.back().stages, &all.back().threads[thread], Clock::now(), false};
}

void Trace::mark(const tenon_env *, int32_t stage) {
  lane->add(stage);
  lane->betweenStages =
      stage + 1 < lane->stages->count && lane->stages->list[stage + 1].barrier != 0;
  // What the stage did before barriers of its own.
  for (auto event = lane->events->rbegin(); event != lane->events->rend(); ++event) {
    if (event->stage == unknown)
      event->stage = stage;
    else if (event->stage >= 0 && event != lane->events->rbegin())
      break;
  }
}

void Trace::barrier(const tenon_env *env) {
  if (!lane->betweenStages)
    lane->add(unknown);
  lane->betweenStages = false;
  static_cast<ThreadTeam *>(env->team)->barrier();
  lane->add(waiting);
}

static const char *nameOf(const Trace::Event &event, const Trace::Step &step) {
  return event.stage == Trace::waiting ? "wait" : step.stages->list[event.stage].kernel;
}

std::vector<KernelTime> sumByKernel(const Trace &trace, size_t known) {
  std::map<std::string, KernelTime> kernels;
  for (size_t s = known; s < trace.steps().size(); ++s) {
    const Trace::Step &step = trace.steps()[s];
    for (int64_t i = 0; i < step.stages->count; ++i) {
      const tenon_stage &stage = step.stages->list[i];
      KernelTime &time = kernels[stage.kernel];
      ++time.calls;
      time.bytes += double(stage.weight_bytes) + double(stage.context_bytes) * double(step.context);
      time.flops += double(stage.row_flops) * double(stage.scored ? step.scored : step.tokens) +
                    double(stage.pair_flops) * double(step.pairs);
    }
    for (const std::vector<Trace::Event> &events : step.threads)
      for (const Trace::Event &event : events)
        kernels[nameOf(event, step)].seconds +=
            std::chrono::duration<double>(event.end - event.begin).count() /
            double(step.threads.size());
  }
  const int64_t steps = static_cast<int64_t>(trace.steps().size() - known);
  std::vector<KernelTime> list;
  for (auto &[name, time] : kernels)
    list.push_back({name, time.calls / steps, time.seconds / double(steps),
                    time.bytes / double(steps), time.flops / double(steps)});
  std::sort(list.begin(), list.end(),
            [](const KernelTime &a, const KernelTime &b) { return a.seconds > b.seconds; });
  return list;
}

std::string Trace::toJson() const {
  std::string text = "{\"traceEvents\":[";
  const char *comma = "\n";
  Clock::time_point start;
  bool isFirst = true;
  for (const Step &step : all)
    for (size_t thread = 0; thread < step.threads.size(); ++thread)
      for (const Event &event : step.threads[thread]) {
        if (isFirst)
          start = event.begin;
        isFirst = false;
        auto microseconds = [](Clock::duration d) {
          return std::chrono::duration<double, std::micro>(d).count();
        };
        // Names of kernels are symbols of the IR: nothing in them needs an escape.
        text += fmt::format(
            "{}{{\"name\":\"{}\",\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}}}",
            comma, nameOf(event, step), thread, microseconds(event.begin - start),
            microseconds(event.end - event.begin));
        comma = ",\n";
      }
  return text + "\n]}\n";
}

} // namespace tenon::rt
