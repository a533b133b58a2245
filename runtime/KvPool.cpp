#include "runtime/KvPool.h"

#include "runtime/Mapping.h"

#include <algorithm>
#include <cstring>

namespace tenon::rt {

KvExhausted::KvExhausted(int64_t needed, int64_t free, int64_t total)
    : Error(ExitRefused, fmt::format("the KV cache is full: {} more blocks of {} positions are "
                                     "needed, {} of {} are free",
                                     needed, TENON_BLOCK_TOKENS, free, total)) {}

static constexpr int64_t largestPool = int64_t(1) << 46; // half of the address space

namespace {
class HostMemory : public KvMemory {
public:
  HostMemory(int64_t bytes, const char *what) : mapping(Mapping::ofZeros(bytes, what)) {}
  char *base() const override { return mapping.data(); }
  void copy(int64_t to, int64_t from, int64_t bytes) override {
    std::memcpy(base() + to, base() + from, static_cast<size_t>(bytes));
  }

private:
  Mapping mapping;
};
} // namespace

std::unique_ptr<KvMemory> reserveHost(int64_t bytes, const char *what) {
  return std::make_unique<HostMemory>(bytes, what);
}

int64_t KvPool::bytesFor(const tenon_cache_layout &layout, int64_t blocks) {
  int64_t bytes;
  if (layout.layers < 0 || layout.heads < 0 || layout.key_bytes < 0 || layout.value_bytes < 0 ||
      blocks < 0 || blocks > INT32_MAX ||
      __builtin_add_overflow(layout.key_bytes, layout.value_bytes, &bytes) ||
      __builtin_mul_overflow(bytes, int64_t(layout.heads), &bytes) ||
      __builtin_mul_overflow(bytes, blocks, &bytes) ||
      __builtin_mul_overflow(bytes, int64_t(layout.layers), &bytes) || bytes > largestPool)
    refuse("a KV cache of {} layers x {} heads x {} blocks x ({} + {}) bytes cannot be reserved",
           layout.layers, layout.heads, blocks, layout.key_bytes, layout.value_bytes);
  return bytes;
}

KvPool::KvPool(const tenon_cache_layout &layout, int64_t blocks, const KvReserve &reserve)
    : layout(layout), total(blocks), memory(reserve(bytesFor(layout, blocks))) {
  references.resize(static_cast<size_t>(blocks));
}

int32_t KvPool::take() {
  int32_t block;
  if (returned.empty()) {
    block = static_cast<int32_t>(fresh++);
  } else {
    block = returned.back();
    returned.pop_back();
  }
  references[block] = 1;
  return block;
}

void KvPool::release(int32_t block) {
  if (--references[block] == 0)
    returned.push_back(block);
}

void KvPool::copy(int32_t from, int32_t to) {
  int64_t strip = 0;
  for (int layer = 0; layer < layout.layers; ++layer)
    for (int64_t bytes : {layout.key_bytes, layout.value_bytes})
      for (int head = 0; head < layout.heads; ++head, strip += total * bytes)
        if (bytes > 0)
          memory->copy(strip + to * bytes, strip + from * bytes, bytes);
}

KvSequence::KvSequence(KvSequence &&other) noexcept
    : pool(other.pool), tokens(other.tokens), table(std::move(other.table)),
      known(std::move(other.known)) {
  other.tokens = 0;
  other.table.clear();
  other.known.clear();
}

KvSequence &KvSequence::operator=(KvSequence &&other) noexcept {
  std::swap(pool, other.pool);
  std::swap(tokens, other.tokens);
  std::swap(table, other.table);
  std::swap(known, other.known);
  return *this;
}

KvSequence KvSequence::fork() const {
  KvSequence child(*pool);
  child.table = table;
  child.known = known;
  child.tokens = tokens;
  for (int32_t block : table)
    ++pool->references[block];
  return child;
}

void KvSequence::append(int count) {
  if (count <= 0)
    return;
  int64_t fresh = KvPool::blocksFor(int64_t(tokens) + count) - static_cast<int64_t>(table.size());
  bool split = tokens % TENON_BLOCK_TOKENS != 0 && pool->references[table.back()] > 1;
  if (int64_t needed = fresh + split; needed > pool->freeBlocks())
    throw KvExhausted(needed, pool->freeBlocks(), pool->total);
  table.reserve(table.size() + static_cast<size_t>(fresh));
  if (split) {
    int32_t own = pool->take();
    pool->copy(table.back(), own);
    pool->release(table.back());
    table.back() = own;
  }
  for (; fresh > 0; --fresh)
    table.push_back(pool->take());
  tokens += count;
}

void KvSequence::truncate(int length) {
  if (length >= tokens)
    return;
  size_t keep = static_cast<size_t>(KvPool::blocksFor(length));
  for (; table.size() > keep; table.pop_back())
    pool->release(table.back());
  tokens = length;
  known.resize(std::min(known.size(), static_cast<size_t>(length)));
}

} // namespace tenon::rt
