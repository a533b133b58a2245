// Programs as functions of the executable, which every thread of a team runs.
#ifndef TENON_RUNTIME_CPUEXECUTOR_H
#define TENON_RUNTIME_CPUEXECUTOR_H

#include "runtime/Executor.h"
#include "runtime/Machine.h"
#include "runtime/Mapping.h"
#include "runtime/ThreadTeam.h"

#include <atomic>

namespace tenon::rt {

class CpuExecutor : public Executor {
public:
  // `artefact` must live longer. Throws with ExitMachine when no variant runs on this CPU.
  CpuExecutor(const tenon_compiled &compiled, const Artefact &artefact,
              const ExecutorOptions &options);

  std::string name() const override { return chosen.name; }
  int threads() const override { return team.size(); }
  std::unique_ptr<KvMemory> reserve(int64_t bytes, const char *what) override;
  int waveTokens() const override { return 512; }
  void begin() override { fellBack = false; }
  Results run(Phase phase, const tenon_batch &batch, const tenon_draw *draws, const KvPool &cache,
              const KvPool &memory, Trace *trace) override;
  int prefixUnit() const override;
  double secondsToStreamWeights() override;

private:
  const tenon_compiled &compiled;
  const Artefact &artefact;
  const tenon_variant &chosen;
  ThreadTeam team;
  Mapping arena, scratch;
  int64_t scratchStride = 0;
  tenon_services services = {};
  bool offeredOneDnn = false, fellBack = false; // ever; in the last step
  std::atomic<bool> askedOneDnn{false};         // ever
};

// The first variant whose features the machine has.
const tenon_variant &chooseVariant(const tenon_compiled &compiled,
                                   const Machine &machine = Machine());

} // namespace tenon::rt

#endif // TENON_RUNTIME_CPUEXECUTOR_H
