// tk_gated_mlp: out = act(norm(x) · Wgᵀ + bg) ⊙ (norm(x) · Wuᵀ + bu). A pair of tiles is the same
// columns of gate and up: rows c and F + c of the one matrix W = [Wg; Wu].
#include "activation.h"
#include "library.h"

namespace tk {

TK_DEVICE auto pairsOf(const tk_gated_mlp_shape &s, const ProductOperands &o) {
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
  tk::productOne(s, args);
}
TK_DEVICE void tk_gated_mlp_prepare(const tk_gated_mlp_shape &s, const tk_args &args) {
  tk::productPrepare(s, args);
}
TK_DEVICE void tk_gated_mlp_few(const tk_gated_mlp_shape &s, const tk_args &args) {
  tk::productFew(s, args);
}
TK_DEVICE void tk_gated_mlp_many(const tk_gated_mlp_shape &s, const tk_args &args) {
  tk::productMany<64>(s, args);
}
TK_DEVICE void tk_gated_mlp_many_tall(const tk_gated_mlp_shape &s, const tk_args &args) {
  tk::productMany<128>(s, args);
}
TK_DEVICE void tk_gated_mlp_round(const tk_gated_mlp_shape &s, const tk_args &args) {
  tk::productRound(s, args, 2 * s.out_cols);
}
TK_DEVICE void tk_gated_mlp_finish(const tk_gated_mlp_shape &s, const tk_args &args) {
  tk::productFinish(s, args, 2 * s.out_cols);
}
