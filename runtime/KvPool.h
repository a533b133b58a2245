// The paged KV cache: one pool of blocks for all sequences, each block TENON_BLOCK_TOKENS positions
// long.
//
//   sequence A  length 37   blocks [ 4 | 0 | 7 ]
//   sequence B  (fork of A) blocks [ 4 | 0 | 7 ]      block 7 has two owners: who appends copies it
//
//   memory: for every layer the keys of each head, then the values of each head, in strips:
//   [ block 0 | block 1 | ... | block n-1 ]
//
// A block has the same number in every strip, so one table serves all. The pool is reserved
// at once and costs memory only where it has been written.
#ifndef TENON_RUNTIME_KVPOOL_H
#define TENON_RUNTIME_KVPOOL_H

#include "runtime/Error.h"
#include "runtime/kernel_abi.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace tenon::rt {

// The pool has too few free blocks. Nothing has changed; release a sequence and try again.
class KvExhausted : public Error {
public:
  KvExhausted(int64_t needed, int64_t free, int64_t total);
};

// The memory of a pool: this machine's, or a device's, which only programs can read.
class KvMemory {
public:
  virtual ~KvMemory() = default;
  virtual char *base() const = 0;
  virtual void copy(int64_t to, int64_t from, int64_t bytes) = 0;
};
using KvReserve = std::function<std::unique_ptr<KvMemory>(int64_t bytes)>;
std::unique_ptr<KvMemory> reserveHost(int64_t bytes, const char *what = "the KV cache");

class KvPool {
public:
  KvPool(const tenon_cache_layout &layout, int64_t blocks, const KvReserve &reserve);
  KvPool(const tenon_cache_layout &layout, int64_t blocks)
      : KvPool(layout, blocks, [](int64_t bytes) { return reserveHost(bytes); }) {}

  char *base() const { return memory->base(); }
  int64_t blocks() const { return total; }
  int64_t freeBlocks() const { return total - fresh + static_cast<int64_t>(returned.size()); }
  int owners(int32_t block) const { return references[block]; }

  // What a pool takes. Refuses what no machine has.
  static int64_t bytesFor(const tenon_cache_layout &layout, int64_t blocks);
  // What one position of a sequence takes.
  static int64_t positionBytes(const tenon_cache_layout &layout) {
    return layout.layers * layout.heads * (layout.key_bytes + layout.value_bytes) /
           TENON_BLOCK_TOKENS;
  }
  // Blocks that hold so many positions.
  static int64_t blocksFor(int64_t tokens) {
    return (tokens + TENON_BLOCK_TOKENS - 1) / TENON_BLOCK_TOKENS;
  }

private:
  friend class KvSequence;

  int32_t take(); // a free block; the caller has checked that there is one
  void release(int32_t block);
  void copy(int32_t from, int32_t to); // in every strip

  tenon_cache_layout layout;
  int64_t total;
  int64_t fresh = 0;               // blocks from here on were never used
  std::vector<int32_t> returned;   // used before and free again
  std::vector<int32_t> references; // [total]
  std::unique_ptr<KvMemory> memory;
};

// A sequence's positions in the pool; gives its blocks back when destroyed. The pool must live
// longer.
class KvSequence {
public:
  explicit KvSequence(KvPool &pool) : pool(&pool) {}
  KvSequence(KvSequence &&other) noexcept;
  KvSequence &operator=(KvSequence &&other) noexcept;
  ~KvSequence() { truncate(0); }

  int length() const { return tokens; }
  // The ids of its tokens, if they are told by `remember`.
  const std::vector<int32_t> &ids() const { return known; }
  void remember(const int32_t *ids, int count) { known.insert(known.end(), ids, ids + count); }
  const std::vector<int32_t> &blocks() const { return table; }

  // A second sequence with the same past. Shares every block until one of the two appends.
  KvSequence fork() const;
  // Makes room for `count` more positions that nobody else owns. Throws KvExhausted and changes
  // nothing when the pool is too full.
  void append(int count);
  // Forgets positions from `length` on.
  void truncate(int length);

private:
  KvPool *pool;
  int tokens = 0;
  std::vector<int32_t> table, known;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_KVPOOL_H
