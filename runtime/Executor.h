// Where programs run: the threads of this machine (CpuExecutor), or a device (cuda/).
//
//   Engine ── batch ──▶ Executor ── program of a phase ──▶ logits and hidden states, on the host
//             pools ──▶    │
//                          └── reserves the memory that the pools hand out
#ifndef TENON_RUNTIME_EXECUTOR_H
#define TENON_RUNTIME_EXECUTOR_H

#include "runtime/Artefact.h"
#include "runtime/KvPool.h"
#include "runtime/Trace.h"
#include "runtime/kernel_abi.h"

#include <memory>
#include <string>
#include <vector>

namespace tenon::rt {

enum class Phase { Encode, Prefill, Decode };

struct ExecutorOptions {
  int threads = 0; // 0: as many as CPUs allowed
  bool pin = false;
  int device = 0;        // its number, where programs run on one
  int64_t poolBytes = 0; // that pools will reserve
};

// What a batch gave; valid until the next one.
struct Results {
  const float *logits;  // [R, vocab]; null where a memory is made, or tokens are drawn
  const int32_t *drawn; // [R], or null
  std::vector<const float *> hiddens; // [T, width] of each tenon_hidden
};

class Executor {
public:
  virtual ~Executor() = default;

  // "x86-64-v4+vnni", "NVIDIA H200"
  virtual std::string name() const = 0;
  virtual int threads() const = 0;

  // Memory for a pool; `what` is named when there is too little.
  virtual std::unique_ptr<KvMemory> reserve(int64_t bytes, const char *what) = 0;

  // Tokens of a batch of @prefill at most: as many as keep the machine busy.
  virtual int waveTokens() const = 0;

  // A step begins, which may take several batches.
  virtual void begin() {}
  // `draws`: [R], from one that draws tokens itself, how each scored row's is drawn; null: logits
  // are wanted.
  virtual Results run(Phase phase, const tenon_batch &batch, const tenon_draw *draws,
                      const KvPool &cache, const KvPool &memory, Trace *trace) = 0;
  virtual bool drawsTokens() const { return false; }

  // See Engine::prefixUnit.
  virtual int prefixUnit() const = 0;
  // How long it takes to read all weights once, and do nothing else.
  virtual double secondsToStreamWeights() = 0;
};

// What runs programs of devices of a kind; tenon_device_code::runtime points to one.
struct DeviceRuntime {
  std::unique_ptr<Executor> (*make)(const tenon_compiled &compiled, const Artefact &artefact,
                                    const ExecutorOptions &options);
  // A line for each device of the machine. Throws with ExitMachine when it has none.
  std::vector<std::string> (*list)();
};
// Null where programs run on the CPU.
inline const DeviceRuntime *deviceRuntime(const tenon_compiled &compiled) {
  return compiled.device ? static_cast<const DeviceRuntime *>(compiled.device->runtime) : nullptr;
}

// The one that the program was compiled for. Throws with ExitMachine when it does not run here.
std::unique_ptr<Executor> makeExecutor(const tenon_compiled &compiled, const Artefact &artefact,
                                       const ExecutorOptions &options);

// Whether the model continues texts; one that only encodes answers whole ones.
inline bool hasDecoder(const tenon_compiled &compiled) {
  return compiled.device ? compiled.device->decode.count > 0
                         : compiled.variants[0].decode != nullptr;
}

// Rows that a batch of @prefill scores at most, which bounds its logits.
constexpr int waveScored = 64;

// What the program gives in a phase beside logits.
struct Hiddens {
  const tenon_hidden *list;
  int64_t count;
};
inline Hiddens hiddensOf(const tenon_compiled &compiled, Phase phase) {
  const bool makesMemory = phase == Phase::Encode && compiled.memory.layers > 0;
  return makesMemory ? Hiddens{compiled.encoder_hiddens, compiled.encoder_hidden_count}
                     : Hiddens{compiled.hiddens, compiled.hidden_count};
}

inline const tenon_stages &stagesOf(const tenon_compiled &compiled, Phase phase) {
  return phase == Phase::Encode    ? compiled.encode_stages
         : phase == Phase::Prefill ? compiled.prefill_stages
                                   : compiled.decode_stages;
}

} // namespace tenon::rt

#endif // TENON_RUNTIME_EXECUTOR_H
