// Compiles a sched.kernel from text and calls it as a program would: a ragged batch, rows with gaps
// between them, a paged cache with shuffled blocks. Whatever a kernel must not read is NaN,
// whatever it must not write is checked.
#ifndef TENON_TEST_REFERENCE_JIT_H
#define TENON_TEST_REFERENCE_JIT_H

#include "ir/Sched.h"
#include "runtime/kernel_abi.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace llvm::orc {
class LLJIT;
}

namespace tenon::test {

// `counts` new tokens of each sequence after `cached` earlier ones.
class Batch {
public:
  explicit Batch(std::vector<int32_t> counts, std::vector<int32_t> cached = {},
                 std::vector<int32_t> scoredRows = {});
  explicit Batch(int32_t tokens) : Batch(std::vector<int32_t>{tokens}) {}
  Batch(const Batch &) = delete;

  const tenon_batch &get() const { return batch; }
  int64_t tokens() const { return batch.tokens; }
  int64_t blocks() const { return blockCount; } // of the whole pool; some belong to no sequence
  int32_t blockOf(int32_t sequence, int32_t position) const {
    return blockTable[sequence * batch.max_blocks + position / TENON_BLOCK_TOKENS];
  }

  std::vector<int32_t> ids, positions, sequenceOf, starts, lengths, blockTable, scoredRows;

private:
  tenon_batch batch;
  int64_t blockCount;
};

// Rows in memory with a gap behind each.
class Rows {
public:
  static constexpr int64_t gap = 5;

  Rows(int64_t count, int64_t columns);                             // to be written
  Rows(int64_t count, int64_t columns, unsigned seed);              // random
  Rows(int64_t count, int64_t columns, std::vector<double> values); // given

  int64_t count, columns;
  std::vector<float> data;

  int64_t stride() const { return columns + gap; }
  float &at(int64_t row, int64_t column) { return data[row * stride() + column]; }
  // |got - want| <= tolerance (|want| + rms of all), for all elements; the gaps are untouched.
  void expectNear(const std::vector<double> &want, double tolerance = 1e-5);
};

std::vector<float> randomFloats(int64_t count, unsigned seed);

// One layer of a cache of f32, bf16, f16 or i8 elements, filled with numbers that differ
// everywhere.
class Cache {
public:
  Cache(const std::string &type, const Batch &batch, int64_t heads, int64_t dim);

  // The element, of keys (0) or values (1), at a position of a sequence.
  double at(int half, int32_t sequence, int32_t position, int64_t head, int64_t d) const;
  // The type of a cache operand: "!llm.cache<2 x [k: 3x64xbf16, v: 3x64xbf16]>".
  std::string type() const;
  // How element d of a head in a row is stored: rounded to the nearest even; of i8 to a multiple of
  // what its group has.
  double stored(Rows &rows, int64_t row, int64_t head, int64_t d) const;

  std::vector<char> bytes;

private:
  int64_t scaleBytes() const; // of a head's block
  const char *blockOf(int half, int32_t sequence, int32_t position, int64_t head) const;

  std::string element;
  const Batch &batch;
  int64_t heads, dim, size;
};

struct Operand {
  Operand(Rows &rows) : data(rows.data.data()), stride(rows.stride()) {}
  Operand(std::vector<float> &weight) : data(weight.data()) {}
  Operand(std::vector<double> &table) : data(table.data()) {}
  Operand(Cache &cache) : data(cache.bytes.data()) {}

  void *data;
  int64_t stride = 0; // rows only
};

// Compiles every kernel of `source`; those operands and results (numbered without the batch) that
// are `scored` have one row for each row to be scored.
class Jit {
public:
  static llvm::Expected<Jit> compile(const std::string &source, std::vector<unsigned> scored = {});
  // As above, for source that is right.
  explicit Jit(const std::string &source, std::vector<unsigned> scored = {});
  Jit(Jit &&);
  ~Jit();

  tenon_kernel *lookup(const std::string &name);
  // Runs the kernel @k.
  void run(const Batch &batch, const std::vector<Operand> &operands, int32_t thread = 0);

private:
  Jit() = default;
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace tenon::test

#endif // TENON_TEST_REFERENCE_JIT_H
