// tk_gated_mlp: out = act(norm(x) · Wgᵀ + bg) ⊙ (norm(x) · Wuᵀ + bu). A thread computes the same
// columns of gate and up: columns c and F + c of the one matrix W = [Wg; Wu].
#include "product.h"
#include "vmath.h"

TK_KERNEL(tk_gated_mlp) {
  const auto &s = *(const tk_gated_mlp_shape *)shape;
  int operand = 0;
  Product p;
  p.x = (const float *)io[operand++];
  p.weight = (const uint8_t *)io[operand++];
  p.format = s.format;
  p.cols = s.cols;
  p.outCols = 2 * (int64_t)s.out_cols;
  p.xStride = s.x_stride;
  p.norm = s.norm;
  p.eps = s.eps;
  p.rounds = roundsMinima(s.format, s.rows, s.may_round);
  p.normWeight = s.norm ? (const float *)io[operand++] : nullptr;
  p.normBias = s.norm_bias ? (const float *)io[operand++] : nullptr;
  const float *bias = s.bias ? (const float *)io[operand++] : nullptr;
  float *out = (float *)io[operand];
  int64_t up = s.out_cols; // first column of `up`

  auto finish = [&](int64_t r, int64_t c, Vec g, Vec u) __attribute__((always_inline)) {
    int64_t n = least(16, s.out_cols - c);
    if (s.bias) {
      g = g + load(bias + c, n);
      u = u + load(bias + up + c, n);
    }
    store(out + r * s.out_stride + c, activate(s.activation, g) * u, n);
  };

  int64_t rowCount = countRows(s.rows, env);
  if (usesMatmul(p, s.may_round, rowCount, env))
    return forEachMatmulBlock(p, rowCount, s.out_cols, env,
                              [&](const MatmulBlock &block, int64_t r, int64_t c, int64_t cols)
                                  __attribute__((always_inline)) {
                                    Matrix g = block.multiply(0, c, cols),
                                           u = block.multiply(1, up + c, cols);
                                    for (int64_t i = 0; i < block.rows; ++i)
                                      for (int64_t j = 0; j < cols; j += 16)
                                        finish(r + i, c + j, load(g.data + i * g.stride + j),
                                               load(u.data + i * u.stride + j));
                                  });
  forEachTile<16>(p, rowCount, s.out_cols, env,
                  [&](int64_t r, const char *rows, int64_t count, int64_t c)
                      __attribute__((always_inline)) {
                        alignas(64) float g[TK_MOST_ROWS * 16], u[TK_MOST_ROWS * 16];
                        float *const both[] = {g, u};
                        dotColumns(p, c, up + c, rows, count, both);
                        for (int64_t i = 0; i < count; ++i)
                          finish(r + i, c, load(g + 16 * i), load(u + 16 * i));
                      });
}
