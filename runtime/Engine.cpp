#include "runtime/Engine.h"

#include "runtime/Error.h"

#include <algorithm>

namespace tenon::rt {

// With the sizes of the pools.
static EngineOptions complete(const tenon_compiled &compiled, EngineOptions options) {
  const int64_t context = KvPool::blocksFor(compiled.context);
  if (options.cacheBlocks <= 0)
    options.cacheBlocks = context;
  if (compiled.memory.layers == 0)
    options.memoryBlocks = 0;
  else if (options.memoryBlocks <= 0)
    options.memoryBlocks = context;
  options.poolBytes = KvPool::bytesFor(compiled.cache, options.cacheBlocks) +
                      KvPool::bytesFor(compiled.memory, options.memoryBlocks);
  return options;
}

static KvReserve reserveFor(Executor &executor, const char *what) {
  return [&executor, what](int64_t bytes) { return executor.reserve(bytes, what); };
}

Engine::Engine(const tenon_compiled &compiled, const Artefact &artefact, const EngineOptions &given)
    : compiled(compiled), options(complete(compiled, given)),
      executor(makeExecutor(compiled, artefact, options)),
      kvPool(compiled.cache, options.cacheBlocks, reserveFor(*executor, "the KV cache")),
      memory(compiled.memory, options.memoryBlocks,
             reserveFor(*executor, "the cache of cross-attention")) {}

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
  const int waveTokens = executor->waveTokens();
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
      runBatch(works, Phase::Encode, sink);
  }
}

bool Engine::outgrowsCache(const Work &work) const {
  const int64_t cached = work.sequence->length(), limit = compiled.recompute_beyond;
  return limit > 0 && cached > 0 && cached <= limit && cached + work.count > limit;
}

int Engine::prefixUnit() const { return compiled.keys_by_length ? 0 : executor->prefixUnit(); }

void Engine::step(const std::vector<Work> &works, const RowSink &sink) {
  if (!decodes())
    return encode(works, sink);
  check(works, /*encodes=*/false);
  executor->begin();
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
    runBatch(works, Phase::Decode, sink);
    return;
  }
  const int waveTokens = executor->waveTokens();
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
      runBatch(works, Phase::Prefill, sink);
  }
}

void Engine::runBatch(const std::vector<Work> &works, Phase phase, const RowSink &sink) {
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

  const bool readsMemory = hasMemory() && phase != Phase::Encode;
  size_t maxBlocks = 0, memoryBlocks = 0;
  for (const Piece &piece : pieces) {
    maxBlocks = std::max(maxBlocks, works[piece.work].sequence->blocks().size());
    if (readsMemory)
      memoryBlocks = std::max(memoryBlocks, works[piece.work].memory->blocks().size());
  }
  ids.clear(), positions.clear(), sequenceOf.clear(), lengths.clear(), scoredRows.clear();
  types.clear(), memoryLengths.clear(), draws.clear();
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
          (piece.scoresLast && i + 1 == piece.count)) {
        scoredRows.push_back(begin + i);
        if (work.draw)
          draws.push_back(*work.draw);
      }
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

  const bool drawsAll = drawsTokens() && !draws.empty() && draws.size() == scoredRows.size();
  const Results results =
      executor->run(phase, batch, drawsAll ? draws.data() : nullptr, kvPool, memory, trace);
  const Hiddens hiddens = hiddensOf(compiled, phase);
  Row row;
  row.hiddens.resize(results.hiddens.size());
  for (int64_t r = 0; r < R; ++r) {
    const int32_t token = scoredRows[r];
    const Piece &piece = pieces[sequenceOf[token]];
    row.work = piece.work;
    row.token = piece.first + token - starts[sequenceOf[token]];
    row.logits = results.logits ? results.logits + r * compiled.vocab : nullptr;
    row.drawn = results.drawn ? results.drawn[r] : -1;
    for (size_t h = 0; h < row.hiddens.size(); ++h)
      row.hiddens[h] = results.hiddens[h] + int64_t(token) * hiddens.list[h].width;
    sink(row);
  }
}

} // namespace tenon::rt
