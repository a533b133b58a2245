// What both kernels of tiles (prefill, encoders) share. A block's rows are (token, head of the
// group) pairs of consecutive tokens, which may belong to several sequences; these are taken one
// after another, and of each 64 keys at a time, with a running maximum:
//
//             keys of sequence 3         keys of sequence 4
//   rows    ┌───────────┬───────────┬  ┬───────────┬
//   of 3    │ ░░░░░░░░░ │ ░░░       │  │           │      ░ what rows see
//   of 4    │           │           │  │ ░░░░      │
//           └───────────┴───────────┴  ┴───────────┴
//            a step: scores, weights, sums over values
//
// What a row does not see leaves its maximum, its sums and so its bits as they are: a row's result
// does not depend on the rows beside it. Steps begin at multiples of 64 of the position.
//
// TK_TILE_SHARES blocks have the same rows, and each its share of their sequences: many sequences
// of one token each are not left to one block.
#ifndef TENON_CODEGEN_CUDA_KERNELS_ATTEND_TILE_H
#define TENON_CODEGEN_CUDA_KERNELS_ATTEND_TILE_H

#include "attention_cut.h"
#include "score.h"

namespace tk {

// Finite, so that rows which have not met a key that they see stay finite.
TK_DEVICE float leastMaximum() { return -1e30f; }

// 64 keys of a sequence, for its tokens in the tile.
struct TileStep {
  int32_t sequence;
  int32_t firstToken, endToken;
  int32_t lowest;     // the last position that all of them see
  int32_t begin, end; // positions that any of them sees
  int32_t first;      // the step's first position

  TK_METHOD bool has(int32_t key) const { return key >= begin && key < end; }
};

struct TileRow {
  int32_t token; // -1: there is none
  int32_t sequence;
  int32_t head;
  int32_t position;
  int32_t last; // position that it sees
};

struct Tile {
  const tk_attention_shape &s;
  const AttentionOperands &io;
  const tk_args &args;
  tk_tile_cut cut;
  int32_t firstToken, endToken, kvHead, run, share;

  TK_METHOD TileRow row(int32_t r) const {
    const tenon_batch &batch = *args.batch;
    int32_t token = firstToken + r / cut.perToken, query = run * cut.rows + r % cut.perToken;
    if (token >= endToken || query >= cut.group)
      return {-1, -1, 0, 0, -1};
    return {token, batch.sequence_of[token], kvHead * cut.group + query, batch.positions[token],
            tk_last_visible(&s, &batch, token)};
  }

  // Whether a row sees a key.
  TK_METHOD bool sees(const TileRow &row, const TileStep &step, int32_t key) const {
    return row.token >= step.firstToken && row.token < step.endToken && key <= row.last &&
           (!s.window || key > row.last - s.window);
  }
  // Whether rows `from` to `to - 1` have any of the step's tokens.
  TK_METHOD bool concerns(const TileStep &step, int32_t from, int32_t to) const {
    return (step.firstToken - firstToken) * cut.perToken < to &&
           (step.endToken - firstToken) * cut.perToken > from;
  }
  // Whether they all see all of its keys; rows that are none do not count.
  TK_METHOD bool isWhole(const TileStep &step, int32_t from, int32_t to) const {
    return (step.firstToken - firstToken) * cut.perToken <= from &&
           (step.endToken == endToken || (step.endToken - firstToken) * cut.perToken >= to) &&
           step.first + TK_TILE_KEYS - 1 <= step.lowest &&
           (!s.window || step.first > step.end - 1 - s.window);
  }

  // Whether this block writes the rows of a sequence, and whether there are any.
  TK_METHOD bool owns(int32_t sequence) const {
    return (sequence - args.batch->sequence_of[firstToken]) % TK_TILE_SHARES == share;
  }
  TK_METHOD bool ownsAny() const {
    const int32_t *sequences = args.batch->sequence_of;
    return sequences[endToken - 1] - sequences[firstToken] >= share;
  }

  // This block's steps in order. With firstToken == endToken there are no more.
  TK_METHOD TileStep firstStep() const { return skip(sequenceAt(firstToken)); }
  TK_METHOD void advance(TileStep &step) const {
    step.first += TK_TILE_KEYS;
    if (step.first >= step.end)
      step = skip(sequenceAt(step.endToken));
  }

private:
  TK_METHOD TileStep sequenceAt(int32_t token) const {
    const tenon_batch &batch = *args.batch;
    if (token >= endToken)
      return {0, endToken, endToken, 0, 0, 0, 0};
    int32_t sequence = batch.sequence_of[token], end = batch.starts[sequence + 1];
    end = end < endToken ? end : endToken;
    int32_t lowest = tk_last_visible(&s, &batch, token), begin = tk_first_visible(&s, lowest);
    return {sequence,
            token,
            end,
            lowest,
            begin,
            tk_last_visible(&s, &batch, end - 1) + 1,
            begin / TK_TILE_KEYS * TK_TILE_KEYS};
  }
  // On to the next sequence that is this block's and has keys.
  TK_METHOD TileStep skip(TileStep step) const {
    while (step.firstToken < endToken && (step.first >= step.end || !owns(step.sequence)))
      step = sequenceAt(step.endToken);
    return step;
  }
};

TK_DEVICE Tile tileOf(const tk_attention_shape &s, const AttentionOperands &io,
                      const tk_args &args) {
  Tile tile = {s, io, args, tk_cut_tile(s), 0, 0, 0, 0, 0};
  int32_t x = (int32_t)blockX();
  tile.firstToken = (int32_t)blockY() * tile.cut.tokens;
  tile.endToken = tile.firstToken + tile.cut.tokens;
  if (tile.endToken > args.batch->tokens)
    tile.endToken = args.batch->tokens;
  tile.run = x % tile.cut.runs;
  tile.kvHead = x / tile.cut.runs % s.kv_heads;
  tile.share = x / tile.cut.runs / s.kv_heads;
  return tile;
}

} // namespace tk

#endif // TENON_CODEGEN_CUDA_KERNELS_ATTEND_TILE_H
