#include "runtime/KvPool.h"

#include <algorithm>
#include <cstring>

namespace tenon::rt {

KvExhausted::KvExhausted(int64_t needed, int64_t free, int64_t total)
    : Error(ExitRefused, fmt::format("the KV cache is full: {} more blocks of {} positions are "
                                     "needed, {} of {} are free",
                                     needed, TENON_BLOCK_TOKENS, free, total)) {}

static constexpr int64_t largestPool = int64_t(1) << 46; // half of the address space

KvPool::KvPool(int layers, int64_t blockBytes, int64_t blocks)
    : layers(layers), blockBytes(blockBytes), total(blocks) {
  int64_t bytes;
  if (layers < 0 || blockBytes < 0 || blocks < 0 || blocks > INT32_MAX ||
      __builtin_mul_overflow(blockBytes, blocks, &bytes) ||
      __builtin_mul_overflow(bytes, int64_t(layers), &bytes) || bytes > largestPool)
    refuse("a KV cache of {} layers x {} blocks x {} bytes cannot be reserved", layers, blocks,
           blockBytes);
  memory = Mapping::ofZeros(bytes, "the KV cache");
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
  if (blockBytes == 0)
    return;
  for (int layer = 0; layer < layers; ++layer) {
    char *pool = memory.data() + layer * total * blockBytes;
    std::memcpy(pool + to * blockBytes, pool + from * blockBytes, static_cast<size_t>(blockBytes));
  }
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
