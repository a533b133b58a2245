// tk_linear: out = act(norm(x) · Wᵀ + bias) + residual.
#include "activation.h"
#include "product.h"

namespace tk {

struct LinearOperands {
  Prologue prologue;
  const float *x, *bias, *residual;
  const char *weight;
  float *out;
};

TK_DEVICE LinearOperands operandsOf(const tk_linear_shape &s, const tk_args &args,
                                    int32_t rounded) {
  int at = 0;
  LinearOperands o;
  o.x = (const float *)args.io[at++];
  o.weight = (const char *)args.io[at++];
  const float *normWeight = s.norm ? (const float *)args.io[at++] : nullptr;
  const float *normBias = s.norm_bias ? (const float *)args.io[at++] : nullptr;
  o.bias = s.bias ? (const float *)args.io[at++] : nullptr;
  o.residual = s.residual ? (const float *)args.io[at++] : nullptr;
  o.out = (float *)args.io[at];
  o.prologue = {s.format, tk_parts(s.format, rounded), s.cols, s.norm, s.eps, normWeight, normBias};
  return o;
}

// Pair p is outputs 32p .. 32p + 31. Behind the last tile it is read once more.
TK_DEVICE auto pairsOf(const tk_linear_shape &s, const LinearOperands &o) {
  int64_t rows = tk_round_up(s.out_cols, 16), tileBytes = tk_tile_bytes(s.format, s.cols);
  return makePairs<false>((rows + 31) / 32,
                          [=](int64_t pair, int g) -> Quarter {
                            int64_t row = 32 * pair + 4 * g;
                            return {o.weight, tileBytes, row < rows ? row : row - 16, rows, true};
                          },
                          [=](int64_t row, int64_t pair, int output, float v, float) {
                            int64_t c = 32 * pair + output;
                            if (c >= s.out_cols)
                              return;
                            if (s.bias)
                              v += o.bias[c];
                            v = activate(s.activation, v);
                            if (s.residual)
                              v += o.residual[row * s.residual_stride + c];
                            o.out[row * s.out_stride + c] = v;
                          });
}

} // namespace tk

TK_DEVICE void tk_linear_one(const tk_linear_shape &s, const tk_args &args) {
  tk::LinearOperands o = tk::operandsOf(s, args, 0);
  tk::multiplyOne(o.prologue, o.x, 0, tk::blockX(), tk::gridX(), tk::pairsOf(s, o));
}

TK_DEVICE void tk_linear_prepare(const tk_linear_shape &s, const tk_args &args) {
  tk::LinearOperands o = tk::operandsOf(s, args, tk_rounds(s.matmul, tk::countRows(s.rows, args)));
  tk::prepareRow(o.prologue, o.x + tk::blockY() * s.x_stride, args.workspace, tk::blockY());
}

TK_DEVICE void tk_linear_few(const tk_linear_shape &s, const tk_args &args) {
  tk::LinearOperands o = tk::operandsOf(s, args, 0);
  tk::multiplyFew(o.prologue, args.workspace, tk::countRows(s.rows, args), tk::pairsOf(s, o));
}

TK_DEVICE void tk_linear_many(const tk_linear_shape &s, const tk_args &args) {
  tk::LinearOperands o = tk::operandsOf(s, args, s.matmul);
  tk::multiplyMany(o.prologue, args.workspace, tk::blockY() * tk_many_rows(s.format, s.matmul),
                   tk::countRows(s.rows, args), tk::blockX() * TK_MANY_PAIRS, tk::pairsOf(s, o));
}
