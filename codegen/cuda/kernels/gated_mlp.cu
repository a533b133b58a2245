// tk_gated_mlp: out = act(norm(x) · Wgᵀ + bg) ⊙ (norm(x) · Wuᵀ + bu). A pair of tiles is the same
// columns of gate and up: rows c and F + c of the one matrix W = [Wg; Wu].
#include "activation.h"
#include "product.h"

namespace tk {

struct GatedOperands {
  Prologue prologue;
  const float *x, *bias;
  const char *weight;
  float *out;
};

TK_DEVICE GatedOperands operandsOf(const tk_gated_mlp_shape &s, const tk_args &args,
                                   int32_t rounded) {
  int at = 0;
  GatedOperands o;
  o.x = (const float *)args.io[at++];
  o.weight = (const char *)args.io[at++];
  const float *normWeight = s.norm ? (const float *)args.io[at++] : nullptr;
  const float *normBias = s.norm_bias ? (const float *)args.io[at++] : nullptr;
  o.bias = s.bias ? (const float *)args.io[at++] : nullptr;
  o.out = (float *)args.io[at];
  o.prologue = {s.format, tk_parts(s.format, rounded), s.cols, s.norm, s.eps, normWeight, normBias};
  return o;
}

TK_DEVICE auto pairsOf(const tk_gated_mlp_shape &s, const GatedOperands &o) {
  int64_t up = s.out_cols; // first row of Wu
  int64_t rows = tk_round_up(2 * up, 16), tileBytes = tk_tile_bytes(s.format, s.cols);
  return makePairs<true>((up + 15) / 16,
                         [=](int64_t pair, int g) -> Quarter {
                           int64_t row = 16 * pair + 4 * (g % 4) + (g < 4 ? 0 : up);
                           bool whole = g < 4 || up % 4 == 0;
                           return {o.weight, tileBytes, whole ? least(row, rows - 4) : row, rows,
                                   whole};
                         },
                         [=](int64_t row, int64_t pair, int output, float gate, float v) {
                           int64_t c = 16 * pair + output;
                           if (c >= up)
                             return;
                           if (s.bias) {
                             gate += o.bias[c];
                             v += o.bias[up + c];
                           }
                           o.out[row * s.out_stride + c] = activate(s.activation, gate) * v;
                         });
}

} // namespace tk

TK_DEVICE void tk_gated_mlp_one(const tk_gated_mlp_shape &s, const tk_args &args) {
  tk::GatedOperands o = tk::operandsOf(s, args, 0);
  tk::multiplyOne(o.prologue, o.x, 0, tk::blockX(), tk::gridX(), tk::pairsOf(s, o));
}

TK_DEVICE void tk_gated_mlp_prepare(const tk_gated_mlp_shape &s, const tk_args &args) {
  tk::GatedOperands o = tk::operandsOf(s, args, tk_rounds(s.matmul, tk::countRows(s.rows, args)));
  tk::prepareRow(o.prologue, o.x + tk::blockY() * s.x_stride, args.workspace, tk::blockY());
}

TK_DEVICE void tk_gated_mlp_few(const tk_gated_mlp_shape &s, const tk_args &args) {
  tk::GatedOperands o = tk::operandsOf(s, args, 0);
  tk::multiplyFew(o.prologue, args.workspace, tk::countRows(s.rows, args), tk::pairsOf(s, o));
}

TK_DEVICE void tk_gated_mlp_many(const tk_gated_mlp_shape &s, const tk_args &args) {
  tk::GatedOperands o = tk::operandsOf(s, args, s.matmul);
  tk::multiplyMany(o.prologue, args.workspace, tk::blockY() * tk_many_rows(s.format, s.matmul),
                   tk::countRows(s.rows, args), tk::blockX() * TK_MANY_PAIRS, tk::pairsOf(s, o));
}
