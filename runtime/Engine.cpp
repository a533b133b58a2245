#include "runtime/Engine.h"

#include "runtime/Error.h"
#include "runtime/Matmul.h"

#include <algorithm>
#include <chrono>

namespace tenon::rt {

static constexpr int waveTokens = 512;
static constexpr int waveScored = 64;
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

Engine::Engine(const tenon_compiled &compiled, const Artefact &artefact,
               const EngineOptions &options)
    : compiled(compiled), artefact(artefact), chosen(chooseVariant(compiled)),
      team(teamSize(compiled, options.threads), options.pin),
      kvPool(compiled.cache,
             options.cacheBlocks > 0 ? options.cacheBlocks : KvPool::blocksFor(compiled.context)),
      memory(compiled.memory, compiled.memory.layers == 0 ? 0
                              : options.memoryBlocks > 0  ? options.memoryBlocks
                                                          : KvPool::blocksFor(compiled.context)) {
  scratchStride = (chosen.scratch_bytes + 4095) / 4096 * 4096;
  scratch = Mapping::ofZeros(scratchStride * team.size(), "kernel scratch");
}

void Engine::check(const std::vector<Work> &works, bool encodes) const {
  const int32_t vocabulary = encodes ? encoderVocab() : vocab();
  for (const Work &work : works) {
    for (int i = 0; i < work.count; ++i) {
      if (work.ids[i] < 0 || work.ids[i] >= vocabulary)
        refuse("token id {} (at index {}) is outside the vocabulary 0..{}", work.ids[i], i,
               vocabulary - 1);
      if (work.types && (work.types[i] < 0 || work.types[i] >= compiled.token_types))
        refuse("token type {} (at index {}) is none of the model's {}", work.types[i], i,
               compiled.token_types);
    }
    if (int64_t length = int64_t(work.sequence->length()) + work.count; length > compiled.context)
      refuse("{} tokens are longer than the context of {}", length, compiled.context);
  }
}

void Engine::encode(const std::vector<Work> &works, const RowSink &sink) {
  check(works, /*encodes=*/true);
  for (int work = 0; work < static_cast<int>(works.size());) {
    int tokens = 0;
    for (pieces.clear(); work < static_cast<int>(works.size()); ++work) {
      const Work &next = works[work];
      if (!pieces.empty() && tokens + next.count > waveTokens)
        break;
      if (next.count > 0)
        pieces.push_back(
            {work, 0, next.count, next.score == Score::Last, next.score == Score::All});
      tokens += next.count;
    }
    if (!pieces.empty())
      runBatch(works, chosen.encode, sink);
  }
}

bool Engine::outgrowsCache(const Work &work) const {
  const int64_t cached = work.sequence->length(), limit = compiled.recompute_beyond;
  return limit > 0 && cached > 0 && cached <= limit && cached + work.count > limit;
}

// tenon_services::matmul, noting that this thread's program called it.
static thread_local bool asked;
static int notedMatmul(tenon_dtype dtype, int64_t m, int64_t n, int64_t k, const void *a,
                       int64_t lda, const void *b, int64_t ldb, float *c, int64_t ldc) {
  asked = true;
  return matmul(dtype, m, n, k, a, lda, b, ldb, c, ldc);
}

int Engine::prefixUnit() const {
  if (fellBack || compiled.keys_by_length)
    return 0;
  return offeredOneDnn && (oneDnnFailed() || !askedOneDnn) ? TENON_BLOCK_TOKENS : waveTokens;
}

void Engine::step(const std::vector<Work> &works, const RowSink &sink) {
  if (!decodes())
    return encode(works, sink);
  check(works, /*encodes=*/false);
  fellBack = false;
  if (compiled.recompute_beyond == 0)
    return run(works, sink);
  // What is computed anew runs by itself, so that the others' rows are what they are without it.
  std::vector<Work> others;
  std::vector<int> indices; // of `others` in `works`
  for (int i = 0; i < static_cast<int>(works.size()); ++i) {
    if (outgrowsCache(works[i])) {
      runAnew(works[i], [&](Row row) {
        row.work = i;
        sink(row);
      });
    } else {
      others.push_back(works[i]);
      indices.push_back(i);
    }
  }
  if (others.size() == works.size())
    return run(works, sink);
  run(others, [&](Row row) {
    row.work = indices[row.work];
    sink(row);
  });
}

void Engine::runAnew(const Work &work, const RowSink &sink) {
  KvSequence &sequence = *work.sequence;
  const int cached = sequence.length();
  std::vector<int32_t> ids = sequence.ids();
  ids.insert(ids.end(), work.ids, work.ids + work.count);
  sequence.truncate(0);
  run({{&sequence, ids.data(), static_cast<int>(ids.size()), work.score, cached + work.unscored}},
      [&](Row row) {
        row.token -= cached;
        sink(row);
      });
}

void Engine::run(const std::vector<Work> &works, const RowSink &sink) {
  bool decode = !works.empty() && std::all_of(works.begin(), works.end(), [](const Work &work) {
    return work.count == 1 && work.score != Score::None;
  });
  if (decode) {
    pieces.clear();
    for (int i = 0; i < static_cast<int>(works.size()); ++i)
      pieces.push_back({i, 0, 1, true, false});
    runBatch(works, chosen.decode, sink);
    return;
  }
  int work = 0, taken = 0; // taken: tokens of works[work] that earlier waves have run
  while (work < static_cast<int>(works.size())) {
    int tokens = 0, scored = 0;
    for (pieces.clear(); work < static_cast<int>(works.size());) {
      const Work &next = works[work];
      int rest = next.count - taken;
      int count = std::min(rest, waveTokens - tokens);
      if (next.score == Score::All)
        count = std::min(count, waveScored - scored);
      else if (next.score == Score::Last && scored == waveScored)
        count = std::min(count, rest - 1);
      if (count <= 0 && rest > 0)
        break; // the wave is full
      bool finishes = count == rest;
      bool scoresLast = next.score == Score::Last && finishes && count > 0;
      bool scoresAll = next.score == Score::All;
      if (count > 0)
        pieces.push_back({work, taken, count, scoresLast, scoresAll});
      tokens += count;
      scored += scoresAll ? count : scoresLast;
      taken = finishes ? 0 : taken + count;
      work += finishes;
      if (!finishes)
        break;
    }
    if (!pieces.empty())
      runBatch(works, chosen.prefill, sink);
  }
}

void Engine::runBatch(const std::vector<Work> &works, tenon_program *program, const RowSink &sink) {
  // Room for all works that begin here first, or for none.
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Work &work = works[pieces[i].work];
    if (pieces[i].first > 0)
      continue;
    try {
      work.sequence->append(work.count);
      if (compiled.recompute_beyond > 0)
        work.sequence->remember(work.ids, work.count);
    } catch (const KvExhausted &) {
      while (i-- > 0) {
        const Work &begun = works[pieces[i].work];
        if (pieces[i].first == 0)
          begun.sequence->truncate(begun.sequence->length() - begun.count);
      }
      throw;
    }
  }

  const bool readsMemory = hasMemory() && program != chosen.encode;
  size_t maxBlocks = 0, memoryBlocks = 0;
  for (const Piece &piece : pieces) {
    maxBlocks = std::max(maxBlocks, works[piece.work].sequence->blocks().size());
    if (readsMemory)
      memoryBlocks = std::max(memoryBlocks, works[piece.work].memory->blocks().size());
  }
  ids.clear(), positions.clear(), sequenceOf.clear(), lengths.clear(), scoredRows.clear();
  types.clear(), memoryLengths.clear();
  starts.assign(1, 0);
  blockTable.assign(maxBlocks * pieces.size(), 0);
  memoryTable.assign(memoryBlocks * pieces.size(), 0);
  for (size_t s = 0; s < pieces.size(); ++s) {
    const Piece &piece = pieces[s];
    const Work &work = works[piece.work];
    const KvSequence &sequence = *work.sequence;
    int begin = static_cast<int>(ids.size()), first = sequence.length() - work.count + piece.first;
    for (int i = 0; i < piece.count; ++i) {
      ids.push_back(work.ids[piece.first + i]);
      if (compiled.token_types > 0)
        types.push_back(work.types ? work.types[piece.first + i] : 0);
      positions.push_back(first + i);
      sequenceOf.push_back(static_cast<int32_t>(s));
      if ((piece.scoresAll && piece.first + i >= work.unscored) ||
          (piece.scoresLast && i + 1 == piece.count))
        scoredRows.push_back(begin + i);
    }
    starts.push_back(static_cast<int32_t>(ids.size()));
    lengths.push_back(sequence.length());
    std::copy(sequence.blocks().begin(), sequence.blocks().end(),
              blockTable.begin() + s * maxBlocks);
    if (readsMemory) {
      const KvSequence &source = *works[piece.work].memory;
      memoryLengths.push_back(source.length());
      std::copy(source.blocks().begin(), source.blocks().end(),
                memoryTable.begin() + s * memoryBlocks);
    }
  }
  const int64_t T = static_cast<int64_t>(ids.size());
  const int64_t R = static_cast<int64_t>(scoredRows.size());
  tenon_batch batch = {static_cast<int32_t>(T),
                       static_cast<int32_t>(pieces.size()),
                       static_cast<int32_t>(R),
                       static_cast<int32_t>(maxBlocks),
                       ids.data(),
                       positions.data(),
                       sequenceOf.data(),
                       starts.data(),
                       lengths.data(),
                       blockTable.data(),
                       scoredRows.data(),
                       types.data(),
                       memoryLengths.data(),
                       memoryTable.data(),
                       static_cast<int32_t>(memoryBlocks)};

  int64_t arenaBytes = T * compiled.arena_token_bytes + R * compiled.arena_scored_bytes;
  if (arenaBytes > arena.size()) {
    arena = Mapping(); // the old one goes first
    arena = Mapping::ofZeros(arenaBytes, "activations");
  }
  // A row must not depend on its neighbours when decoding, so decode never uses oneDNN.
  services.matmul =
      program != chosen.decode && T >= oneDnnTokens && !oneDnnFailed() ? notedMatmul : nullptr;
  offeredOneDnn |= program != chosen.decode && T >= oneDnnTokens;
  services.barrier = trace ? Trace::barrier : plainBarrier;
  services.mark = trace ? Trace::mark : nullptr;
  if (trace)
    trace->beginStep(program == chosen.decode   ? compiled.decode_stages
                     : program == chosen.encode ? compiled.encode_stages
                                                : compiled.prefill_stages,
                     batch, team.size());
  team.run([&](int thread) {
    tenon_env env = {&batch,       &services,     scratch.data() + thread * scratchStride,
                     thread,       team.size(),   kvPool.blocks(),
                     &team,        memory.base(), memory.blocks(),
                     scratchStride};
    asked = false;
    if (trace)
      trace->enter(thread);
    program(&env, arena.data(), artefact.weights(), kvPool.base());
    if (asked)
      askedOneDnn = true;
  });

  fellBack |= services.matmul && oneDnnFailed();

  const char *logits = arena.data() + T * compiled.arena_token_bytes + R * compiled.logits_offset;
  const bool hasLogits = program != chosen.encode || !hasMemory();
  const tenon_hidden *hiddens = hasLogits ? compiled.hiddens : compiled.encoder_hiddens;
  const int64_t hiddenCount = hasLogits ? compiled.hidden_count : compiled.encoder_hidden_count;
  Row row;
  row.hiddens.resize(static_cast<size_t>(hiddenCount));
  for (int64_t r = 0; r < R; ++r) {
    const int32_t token = scoredRows[r];
    const Piece &piece = pieces[sequenceOf[token]];
    row.work = piece.work;
    row.token = piece.first + token - starts[sequenceOf[token]];
    row.logits = hasLogits ? reinterpret_cast<const float *>(logits) + r * compiled.vocab : nullptr;
    for (int64_t h = 0; h < hiddenCount; ++h)
      row.hiddens[h] = reinterpret_cast<const float *>(arena.data() + T * hiddens[h].offset) +
                       int64_t(token) * hiddens[h].width;
    sink(row);
  }
}

double Engine::secondsToStreamWeights() {
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
