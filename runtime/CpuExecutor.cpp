#include "runtime/CpuExecutor.h"

#include "runtime/Error.h"
#include "runtime/Machine.h"
#include "runtime/Matmul.h"

#include <algorithm>
#include <chrono>

namespace tenon::rt {

// Shorter batches are not worth loading oneDNN for.
static constexpr int oneDnnTokens = 32;

const tenon_variant &chooseVariant(const tenon_compiled &compiled, const Machine &machine) {
  std::string lacking;
  for (int i = 0; i < compiled.variant_count; ++i) {
    const tenon_variant &variant = compiled.variants[i];
    std::string missing = missingFeature(variant.features, machine);
    if (missing.empty())
      return variant;
    lacking += fmt::format("{}{} needs {}", lacking.empty() ? "" : ", ", variant.name, missing);
  }
  throw Error(ExitMachine, fmt::format("this CPU runs none of the compiled variants: {}; compile "
                                       "with --mcpu for this machine",
                                       lacking.empty() ? "there are none" : lacking));
}

static void plainBarrier(const tenon_env *env) { static_cast<ThreadTeam *>(env->team)->barrier(); }

static int teamSize(const tenon_compiled &compiled, int requested) {
  int threads = requested > 0 ? requested : allowedCpus();
  return compiled.max_threads > 0 ? std::min(threads, compiled.max_threads) : threads;
}

CpuExecutor::CpuExecutor(const tenon_compiled &compiled, const Artefact &artefact,
                         const ExecutorOptions &options)
    : compiled(compiled), artefact(artefact), chosen(chooseVariant(compiled)),
      team(teamSize(compiled, options.threads), options.pin) {
  scratchStride = (chosen.scratch_bytes + 4095) / 4096 * 4096;
  scratch = Mapping::ofZeros(scratchStride * team.size(), "kernel scratch");
}

std::unique_ptr<KvMemory> CpuExecutor::reserve(int64_t bytes, const char *what) {
  return reserveHost(bytes, what);
}

// tenon_services::matmul, noting that this thread's program called it.
static thread_local bool asked;
static int notedMatmul(tenon_dtype dtype, int64_t m, int64_t n, int64_t k, const void *a,
                       int64_t lda, const void *b, int64_t ldb, float *c, int64_t ldc) {
  asked = true;
  return matmul(dtype, m, n, k, a, lda, b, ldb, c, ldc);
}

int CpuExecutor::prefixUnit() const {
  if (fellBack)
    return 0;
  return offeredOneDnn && (oneDnnFailed() || !askedOneDnn) ? TENON_BLOCK_TOKENS : waveTokens();
}

static tenon_program *programOf(const tenon_variant &variant, Phase phase) {
  return phase == Phase::Encode    ? variant.encode
         : phase == Phase::Prefill ? variant.prefill
                                   : variant.decode;
}

Results CpuExecutor::run(Phase phase, const tenon_batch &batch, const tenon_draw *,
                         const KvPool &cache, const KvPool &memory, Trace *trace) {
  const int64_t T = batch.tokens, R = batch.scored;
  int64_t arenaBytes = T * compiled.arena_token_bytes + R * compiled.arena_scored_bytes;
  if (arenaBytes > arena.size()) {
    arena = Mapping(); // the old one goes first
    arena = Mapping::ofZeros(arenaBytes, "activations");
  }
  // A row must not depend on its neighbours when decoding, so decode never uses oneDNN.
  const bool worthOneDnn = phase != Phase::Decode && T >= oneDnnTokens;
  services.matmul = worthOneDnn && !oneDnnFailed() ? notedMatmul : nullptr;
  offeredOneDnn |= worthOneDnn;
  services.barrier = trace ? Trace::barrier : plainBarrier;
  services.mark = trace ? Trace::mark : nullptr;
  if (trace)
    trace->beginStep(stagesOf(compiled, phase), batch, team.size());
  tenon_program *program = programOf(chosen, phase);
  team.run([&](int thread) {
    tenon_env env = {&batch,       &services,     scratch.data() + thread * scratchStride,
                     thread,       team.size(),   cache.blocks(),
                     &team,        memory.base(), memory.blocks(),
                     scratchStride};
    asked = false;
    if (trace)
      trace->enter(thread);
    program(&env, arena.data(), artefact.weights(), cache.base());
    if (asked)
      askedOneDnn = true;
  });
  fellBack |= services.matmul && oneDnnFailed();

  Results results = {};
  if (phase != Phase::Encode || compiled.memory.layers == 0)
    results.logits = reinterpret_cast<const float *>(arena.data() + T * compiled.arena_token_bytes +
                                                     R * compiled.logits_offset);
  const Hiddens hiddens = hiddensOf(compiled, phase);
  for (int64_t h = 0; h < hiddens.count; ++h)
    results.hiddens.push_back(
        reinterpret_cast<const float *>(arena.data() + T * hiddens.list[h].offset));
  return results;
}

double CpuExecutor::secondsToStreamWeights() {
  constexpr int64_t unit = 16; // words, whose sums fit the registers
  const int64_t units = compiled.weight_bytes / 8 / unit;
  const uint64_t *weights = reinterpret_cast<const uint64_t *>(artefact.weights());
  std::atomic<uint64_t> sum{0};
  const auto start = std::chrono::steady_clock::now();
  team.run([&](int thread) {
    uint64_t sums[unit] = {};
    for (int64_t i = units * thread / team.size(); i < units * (thread + 1) / team.size(); ++i)
      for (int64_t j = 0; j < unit; ++j)
        sums[j] += weights[i * unit + j];
    for (uint64_t part : sums)
      sum += part;
  });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace tenon::rt
