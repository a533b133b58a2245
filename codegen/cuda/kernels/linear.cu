// tk_linear: out = act(norm(x) · Wᵀ + bias) + residual.
#include "activation.h"
#include "library.h"

namespace tk {

// Pair p is outputs 32p .. 32p + 31. Behind the last tile it is read once more.
TK_DEVICE auto pairsOf(const tk_linear_shape &s, const ProductOperands &o) {
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
  tk::productOne(s, args);
}
TK_DEVICE void tk_linear_prepare(const tk_linear_shape &s, const tk_args &args) {
  tk::productPrepare(s, args);
}
TK_DEVICE void tk_linear_few(const tk_linear_shape &s, const tk_args &args) {
  tk::productFew(s, args);
}
TK_DEVICE void tk_linear_many(const tk_linear_shape &s, const tk_args &args) {
  tk::productMany<64>(s, args);
}
TK_DEVICE void tk_linear_many_tall(const tk_linear_shape &s, const tk_args &args) {
  tk::productMany<128>(s, args);
}
TK_DEVICE void tk_linear_round(const tk_linear_shape &s, const tk_args &args) {
  tk::productRound(s, args, s.out_cols);
}
TK_DEVICE void tk_linear_finish(const tk_linear_shape &s, const tk_args &args) {
  tk::productFinish(s, args, s.out_cols);
}
