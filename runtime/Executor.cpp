#include "runtime/Executor.h"

#include "runtime/CpuExecutor.h"

namespace tenon::rt {

std::unique_ptr<Executor> makeExecutor(const tenon_compiled &compiled, const Artefact &artefact,
                                       const ExecutorOptions &options) {
  if (const DeviceRuntime *runtime = deviceRuntime(compiled))
    return runtime->make(compiled, artefact, options);
  return std::make_unique<CpuExecutor>(compiled, artefact, options);
}

} // namespace tenon::rt
