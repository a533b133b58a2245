// A ragged batch, rows and a KV cache in memory, as the reference engine takes and gives them.
#ifndef TENON_CODEGEN_REFERENCE_HOSTBATCH_H
#define TENON_CODEGEN_REFERENCE_HOSTBATCH_H

#include "ir/LLM.h"
#include "runtime/kernel_abi.h"
#include <memory>
#include <vector>

namespace tenon {

// `count` new tokens of a sequence after `cached` earlier ones.
struct SequenceShare {
  int32_t sequence, cached, count;
};

// See tenon_batch. Sequence s keeps its blocks from batch to batch: they are those of `s` in a pool
// that is shuffled, so that no two lie in order.
struct HostBatch {
  std::vector<int32_t> ids, positions, sequenceOf, starts, lengths, blockTable, scoredRows, types;
  std::vector<int32_t> memoryLengths, memoryTable; // where an encoder has gone before
  std::vector<int32_t> sequences; // of each token: its number in the whole, which sequenceOf counts
                                  // anew
  int32_t maxBlocks = 0, memoryMaxBlocks = 0;
  int64_t blocks = 0; // of the pool
  int64_t memoryBlocks = 0;

  int64_t getTokens() const { return int64_t(positions.size()); }
  int64_t getScored() const { return int64_t(scoredRows.size()); }
  // Rows that llm.kv_read gives.
  int64_t getContext() const;
  int64_t getMemory() const;
  tenon_batch get() const;
};

// What the rows of a value are: those of tokens, of tokens to be scored, of cached positions, or of
// what an encoder has left.
enum class RowKind { tokens, scored, context, memory };

struct HostRows {
  RowKind kind = RowKind::tokens;
  int64_t count = 0, columns = 0;
  std::vector<float> data; // [count][columns]

  float at(int64_t row, int64_t column) const { return data[row * columns + column]; }
};

// Layers are shared until written: a cache is a value.
struct HostCache {
  llm::CacheType type; // null: none
  std::vector<std::shared_ptr<std::vector<char>>> layers;

  // For writing.
  char *own(int64_t layer) {
    if (layers[layer].use_count() > 1)
      layers[layer] = std::make_shared<std::vector<char>>(*layers[layer]);
    return layers[layer]->data();
  }
  // The key (half 0) or value (half 1) rows of a batch's tokens in a layer.
  HostRows getRows(int64_t layer, int half, const HostBatch &batch) const;
};

} // namespace tenon

#endif // TENON_CODEGEN_REFERENCE_HOSTBATCH_H
