// tk_expert_linear: out[t, k] = W[choice[t, k]] x, for the slots k of each token t.
//
//   choice          t0: 2 0    t1: 2 1    t2: 0 2          (two slots)
//   sorted pairs    expert 0: t0.1 t2.0    expert 1: t1.1    expert 2: t0.0 t1.0 t2.1
//
// In prefill an expert's tile of weights is read once for up to 64 of its pairs; in decode only the
// tiles of chosen experts are read at all. Every thread sorts the pairs for itself, and takes a
// run of (block of pairs, tile) pieces that is worth as much as that of any other.
#include "product.h"
#include "vmath.h"

namespace {

// What a piece costs beside its rows: reading the tile.
constexpr int64_t TileCost = 8;

struct ExpertPairs {
  const tk_expert_linear_shape &s;
  int32_t *order;  // pairs, those of one expert after another
  int32_t *starts; // [experts + 1] in `order`
};

// Sorts slots of tokens first .. first + count - 1; a pair is token · slots + slot.
TK_INLINE void sortPairs(const ExpertPairs &pairs, const float *choice, int64_t first,
                         int64_t count) {
  const tk_expert_linear_shape &s = pairs.s;
  auto expertOf = [&](int64_t token, int64_t slot) -> int64_t {
    if (!s.choice)
      return slot;
    float expert = choice[token * s.choice_stride + slot]; // anything else stands for the nearest
    return expert > 0 ? (int64_t)(expert < s.experts - 1 ? expert : s.experts - 1) : 0;
  };
  for (int64_t e = 0; e <= s.experts; ++e)
    pairs.starts[e] = 0;
  for (int64_t t = first; t < first + count; ++t)
    for (int64_t k = 0; k < s.slots; ++k)
      ++pairs.starts[expertOf(t, k) + 1];
  for (int64_t e = 0; e < s.experts; ++e)
    pairs.starts[e + 1] += pairs.starts[e];
  // Filling moves each start to its end, which is the next start.
  for (int64_t t = first; t < first + count; ++t)
    for (int64_t k = 0; k < s.slots; ++k)
      pairs.order[pairs.starts[expertOf(t, k)]++] = (int32_t)(t * s.slots + k);
  for (int64_t e = s.experts; e > 0; --e)
    pairs.starts[e] = pairs.starts[e - 1];
  pairs.starts[0] = 0;
}

// Rows of x for `count` pairs, as dot.h wants them.
TK_INLINE void prepareExpertRows(Product p, const ExpertPairs &pairs, const float *x,
                                 const int32_t *order, int64_t count, char *rows, float *spare) {
  const tk_expert_linear_shape &s = pairs.s;
  int64_t stride = tk_scratch_row_bytes(p.format, p.cols);
  for (int64_t i = 0; i < count; ++i) {
    int64_t token = order[i] / s.slots, slot = order[i] % s.slots;
    p.x = x + token * s.x_stride + (s.shared ? 0 : slot * p.cols);
    prepareRow(p, 0, rows + i * stride, spare);
  }
}

} // namespace

TK_KERNEL(tk_expert_linear) {
  const auto &s = *(const tk_expert_linear_shape *)shape;
  int operand = 0;
  const float *x = (const float *)io[operand++];
  const float *choice = s.choice ? (const float *)io[operand++] : nullptr;
  const uint8_t *weight = (const uint8_t *)io[operand++];
  const float *bias = s.bias ? (const float *)io[operand++] : nullptr;
  const uint8_t *up = s.gated ? (const uint8_t *)io[operand++] : nullptr;
  const float *upBias = s.gated && s.bias ? (const float *)io[operand++] : nullptr;
  float *out = (float *)io[operand];

  Product p = {};
  p.format = s.format;
  p.cols = s.cols;
  p.outCols = s.out_cols;
  int64_t matrix = tk_packed_bytes(s.format, s.out_cols, s.cols);
  int64_t tiles = (s.out_cols + 15) / 16;
  float *spare = (float *)env->scratch;
  char *rows = env->scratch + tk_spare_row_bytes(s.cols);
  int32_t *order = (int32_t *)(env->scratch + tk_product_scratch(s.format, s.cols, 0, 1));
  int64_t capacity = s.slots > TK_EXPERT_PAIRS ? s.slots : TK_EXPERT_PAIRS;
  ExpertPairs pairs = {s, order, order + capacity};

  int64_t tokens = countRows(s.rows, env), step = capacity / s.slots;
  int64_t block = tk_row_block(s.format, s.cols);
  TileRegisters registers = registersFor(s.format, tokens * s.slots);
  for (int64_t first = 0; first < tokens; first += step) {
    sortPairs(pairs, choice, first, least(step, tokens - first));
    // Calls f(expert, first pair, pair count, cost of a tile) for each block.
    auto forEachBlock = [&](auto f) __attribute__((always_inline)) {
      for (int64_t e = 0; e < s.experts; ++e)
        for (int64_t i = pairs.starts[e]; i < pairs.starts[e + 1]; i += block) {
          int64_t count = least(block, pairs.starts[e + 1] - i);
          f(e, i, count, count + TileCost);
        }
    };
    int64_t total = 0;
    for (int64_t e = 0; e < s.experts; ++e) {
      int64_t count = pairs.starts[e + 1] - pairs.starts[e];
      total += (count + (count + block - 1) / block * TileCost) * tiles;
    }
    int64_t begin = total * env->thread / env->threads;
    int64_t end = total * (env->thread + 1) / env->threads, at = 0;
    forEachBlock([&](int64_t e, int64_t i, int64_t count,
                     int64_t cost) __attribute__((always_inline)) {
      // A piece belongs to whose share its beginning lies in.
      int64_t from = begin <= at ? 0 : (begin - at + cost - 1) / cost;
      int64_t to = end <= at ? 0 : least(tiles, (end - at + cost - 1) / cost);
      at += tiles * cost;
      if (from >= to)
        return;
      prepareExpertRows(p, pairs, x, order + i, count, rows, spare);
      // Two tiles at a time: of gate and up, or neighbours.
      for (int64_t t = from; t < to; t += s.gated ? 1 : 2) {
        alignas(64) float acc[2][TK_MOST_ROWS * 16];
        int64_t next = least(t + 1, to - 1);
        float *const both[] = {acc[0], acc[s.gated || next > t ? 1 : 0]};
        p.weight = weight + e * matrix;
        const uint8_t *tiles[] = {p.tile(t), p.tile(next)};
        if (s.gated) {
          p.weight = up + e * matrix;
          tiles[1] = p.tile(t);
        }
        dotTiles(p.format, p.rounds, p.cols, tiles, rows, count, both);
        for (int64_t r = 0; r < count; ++r) {
          int64_t token = order[i + r] / s.slots, slot = order[i + r] % s.slots;
          float *o = out + token * s.out_stride + slot * s.out_cols;
          auto biased = [&](const float *bias, int half, int64_t c) __attribute__((always_inline)) {
            Vec v = load(acc[half] + 16 * r);
            if (s.bias)
              v = v + load(bias + e * s.out_cols + c, least(16, s.out_cols - c));
            return v;
          };
          int64_t c = 16 * t;
          if (s.gated) {
            Vec g = biased(bias, 0, c), u = biased(upBias, 1, c);
            store(o + c, activate(s.activation, g) * u, least(16, s.out_cols - c));
            continue;
          }
          for (int half = 0; half < 2 && t + half < to; ++half)
            store(o + c + 16 * half, biased(bias, half, c + 16 * half),
                  least(16, s.out_cols - c - 16 * half));
        }
      }
    });
  }
}
