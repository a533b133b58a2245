// tk_expert_linear: out[t, k] = W[choice[t, k]] x, for the slots k of each token t.
//
// Few tokens: a block for each (token, slot) and some pairs of tiles, which reads the weights of
// the expert that was chosen. Many tokens: slots are sorted by their expert,
//
//   choice          t0: 2 0    t1: 2 1    t2: 0 2          (two slots)
//   order           expert 0: t0.1 t2.0    expert 1: t1.1    expert 2: t0.0 t1.0 t2.1
//
// their rows are prepared in that order, those of each expert from a whole panel on, and each
// expert's rows are multiplied like many rows of a matrix. In the workspace:
//
//   int32  starts [experts + 1]      first place of each expert, multiples of 8
//          counts [experts]          how many places it uses
//          places [tokens · slots]   of each slot
//          order  [places]           the slot in each place
//   the prepared rows, in panels of 8
#include "activation.h"
#include "product.h"

namespace tk {

struct ExpertOperands {
  Prologue prologue;
  const float *x, *choice, *bias, *upBias;
  const char *weight, *up;
  float *out;
};

TK_DEVICE ExpertOperands operandsOf(const tk_expert_linear_shape &s, const tk_args &args) {
  int at = 0;
  ExpertOperands o;
  o.x = (const float *)args.io[at++];
  o.choice = s.choice ? (const float *)args.io[at++] : nullptr;
  o.weight = (const char *)args.io[at++];
  o.bias = s.bias ? (const float *)args.io[at++] : nullptr;
  o.up = s.gated ? (const char *)args.io[at++] : nullptr;
  o.upBias = s.gated && s.bias ? (const float *)args.io[at++] : nullptr;
  o.out = (float *)args.io[at];
  o.prologue = {s.format, tk_parts(s.format, 0), s.cols, TK_NORM_NONE, 0, nullptr, nullptr};
  return o;
}

// The expert of a slot; a number that is none stands for the nearest one.
TK_DEVICE int32_t expertOf(const tk_expert_linear_shape &s, const ExpertOperands &o, int64_t token,
                           int64_t slot) {
  if (!s.choice)
    return int32_t(slot);
  float expert = o.choice[token * s.choice_stride + slot], last = (float)(s.experts - 1);
  return expert > 0 ? int32_t(expert < last ? expert : last) : 0;
}

TK_DEVICE const float *rowOf(const tk_expert_linear_shape &s, const ExpertOperands &o,
                             int64_t token, int64_t slot) {
  return o.x + token * s.x_stride + (s.shared ? 0 : slot * s.cols);
}

// The pairs of one expert. slotOf(row) is token · slots + slot of what is row `row` there.
template <bool Gated, class SlotOf>
TK_DEVICE auto pairsOf(const tk_expert_linear_shape &s, const ExpertOperands &o, int64_t expert,
                       SlotOf slotOf) {
  int64_t rows = tk_round_up(s.out_cols, 16), tileBytes = tk_tile_bytes(s.format, s.cols);
  int64_t matrix = expert * tk_packed_bytes(s.format, s.out_cols, s.cols);
  return makePairs<Gated>(
      Gated ? rows / 16 : (rows + 31) / 32,
      [=](int64_t pair, int g) -> Quarter {
        int64_t row = Gated ? 16 * pair + 4 * (g % 4) : 32 * pair + 4 * g;
        return {(Gated && g >= 4 ? o.up : o.weight) + matrix, tileBytes,
                row < rows ? row : row - 16, rows, true};
      },
      [=](int64_t row, int64_t pair, int output, float v, float up) {
        int64_t c = (Gated ? 16 : 32) * pair + output, slot = slotOf(row);
        if (c >= s.out_cols)
          return;
        if (s.bias)
          v += o.bias[expert * s.out_cols + c];
        if (s.bias && Gated)
          up += o.upBias[expert * s.out_cols + c];
        if (Gated)
          v = activate(s.activation, v) * up;
        o.out[slot / s.slots * s.out_stride + slot % s.slots * s.out_cols + c] = v;
      });
}

// Blocks in x: `slots` times those of one expert.
template <bool Gated>
TK_DEVICE void multiplySlot(const tk_expert_linear_shape &s, const ExpertOperands &o) {
  int64_t token = blockY(), blocks = gridX() / s.slots, slot = blockX() / blocks;
  auto pairs = pairsOf<Gated>(s, o, expertOf(s, o, token, slot),
                              [=](int64_t) { return token * s.slots + slot; });
  prefetchPair(o.prologue, pairs, blockX() % blocks);
  multiplyOne(o.prologue, rowOf(s, o, token, slot), 0, blockX() % blocks, blocks, pairs);
}

// The lists in the workspace, for `tokens` tokens.
struct ExpertLists {
  int32_t *starts, *counts, *places, *order;
  char *prepared;
};
TK_DEVICE ExpertLists listsOf(const tk_expert_linear_shape &s, char *workspace, int64_t tokens) {
  ExpertLists lists;
  lists.starts = (int32_t *)workspace;
  lists.counts = lists.starts + s.experts + 1;
  lists.places = lists.counts + s.experts;
  lists.order = lists.places + tokens * s.slots;
  lists.prepared =
      workspace + tk_round_up(4 * tk_expert_list_length(s.experts, tokens * s.slots), 256);
  return lists;
}

// Blocks in x are (expert, pairs); blocks in y take turns at the expert's rows.
template <bool Gated>
TK_DEVICE void multiplyExpert(const tk_expert_linear_shape &s, const ExpertOperands &o,
                              const ExpertLists &lists) {
  int64_t blocks = gridX() / s.experts, expert = blockX() / blocks;
  const int32_t *order = lists.order + lists.starts[expert];
  int64_t rows = lists.counts[expert];
  const char *prepared =
      lists.prepared + lists.starts[expert] * tk_prepared_bytes(s.format, o.prologue.parts, s.cols);
  auto pairs = pairsOf<Gated>(s, o, expert, [=](int64_t row) -> int64_t { return order[row]; });
  for (int64_t r = blockY() * TK_MANY_ROWS; r < rows; r += gridY() * TK_MANY_ROWS)
    multiplyBlock<TK_MANY_ROWS / 16>(o.prologue, prepared, r, rows,
                                     blockX() % blocks * TK_MANY_PAIRS, pairs);
}

} // namespace tk

TK_DEVICE void tk_expert_linear_one(const tk_expert_linear_shape &s, const tk_args &args) {
  tk::ExpertOperands o = tk::operandsOf(s, args);
  if (s.gated)
    tk::multiplySlot<true>(s, o);
  else
    tk::multiplySlot<false>(s, o);
}

// One block. Shared memory: a count for each expert.
TK_DEVICE void tk_expert_linear_sort(const tk_expert_linear_shape &s, const tk_args &args) {
  tk::ExpertOperands o = tk::operandsOf(s, args);
  int64_t tokens = tk::countRows(s.rows, args), slots = tokens * s.slots;
  tk::ExpertLists lists = tk::listsOf(s, args.workspace, tokens);
  int32_t *counts = (int32_t *)tk::shared();
  for (int64_t e = tk::threadIndex(); e < s.experts; e += tk::threadCount())
    counts[e] = 0;
  tk::sync();
  for (int64_t i = tk::threadIndex(); i < slots; i += tk::threadCount())
    tk::atomicAdd(counts + tk::expertOf(s, o, i / s.slots, i % s.slots), 1);
  tk::sync();
  if (tk::threadIndex() == 0) {
    int32_t start = 0;
    for (int64_t e = 0; e < s.experts; ++e) {
      lists.starts[e] = start;
      lists.counts[e] = counts[e];
      start += (int32_t)tk_round_up(counts[e], TK_PANEL_ROWS);
      counts[e] = lists.starts[e]; // from here on: the next place
    }
    lists.starts[s.experts] = start;
  }
  tk::sync();
  // The order within an expert is left to chance: no result depends on it.
  for (int64_t i = tk::threadIndex(); i < slots; i += tk::threadCount()) {
    int32_t expert = tk::expertOf(s, o, i / s.slots, i % s.slots);
    int32_t place = tk::atomicAdd(counts + expert, 1);
    lists.places[i] = place;
    lists.order[place] = (int32_t)i;
  }
}

// A token for each y, a slot for each x.
TK_DEVICE void tk_expert_linear_prepare(const tk_expert_linear_shape &s, const tk_args &args) {
  tk::ExpertOperands o = tk::operandsOf(s, args);
  tk::ExpertLists lists = tk::listsOf(s, args.workspace, tk::countRows(s.rows, args));
  int64_t token = tk::blockY(), slot = tk::blockX();
  tk::prepareRow(o.prologue, tk::rowOf(s, o, token, slot), lists.prepared,
                 lists.places[token * s.slots + slot]);
}

TK_DEVICE void tk_expert_linear_many(const tk_expert_linear_shape &s, const tk_args &args) {
  tk::ExpertOperands o = tk::operandsOf(s, args);
  tk::ExpertLists lists = tk::listsOf(s, args.workspace, tk::countRows(s.rows, args));
  if (s.gated)
    tk::multiplyExpert<true>(s, o, lists);
  else
    tk::multiplyExpert<false>(s, o, lists);
}
