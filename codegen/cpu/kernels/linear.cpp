// tk_linear: out = act(norm(x) · Wᵀ + bias) + residual.
#include "product.h"
#include "vmath.h"

TK_KERNEL(tk_linear) {
  const auto &s = *(const tk_linear_shape *)shape;
  int operand = 0;
  Product p;
  p.x = (const float *)io[operand++];
  p.weight = (const uint8_t *)io[operand++];
  p.format = s.format;
  p.cols = s.cols;
  p.outCols = s.out_cols;
  p.xStride = s.x_stride;
  p.norm = s.norm;
  p.eps = s.eps;
  p.rounds = roundsMinima(s.format, s.rows, s.may_round);
  p.normWeight = s.norm ? (const float *)io[operand++] : nullptr;
  p.normBias = s.norm_bias ? (const float *)io[operand++] : nullptr;
  const float *bias = s.bias ? (const float *)io[operand++] : nullptr;
  const float *residual = s.residual ? (const float *)io[operand++] : nullptr;
  float *out = (float *)io[operand];

  auto finish = [&](int64_t r, int64_t c, Vec v) __attribute__((always_inline)) {
    int64_t n = least(16, s.out_cols - c);
    if (s.bias)
      v = v + load(bias + c, n);
    v = activate(s.activation, v);
    if (s.residual)
      v = v + load(residual + r * s.residual_stride + c, n);
    store(out + r * s.out_stride + c, v, n);
  };

  int64_t rowCount = countRows(s.rows, env);
  if (usesMatmul(p, s.may_round, rowCount, env))
    return forEachMatmulBlock(p, rowCount, s.out_cols, env,
                              [&](const MatmulBlock &block, int64_t r, int64_t c, int64_t cols)
                                  __attribute__((always_inline)) {
                                    Matrix m = block.multiply(0, c, cols);
                                    for (int64_t i = 0; i < block.rows; ++i)
                                      for (int64_t j = 0; j < cols; j += 16)
                                        finish(r + i, c + j, load(m.data + i * m.stride + j));
                                  });
  forEachTile<32>(p, rowCount, s.out_cols, env,
                  [&](int64_t r, const char *rows, int64_t count, int64_t c)
                      __attribute__((always_inline)) {
                        alignas(64) float acc[2][TK_MOST_ROWS * 16];
                        float *const both[] = {acc[0], acc[1]};
                        dotColumns(p, c, c + 16, rows, count, both);
                        for (int64_t i = 0; i < count; ++i)
                          for (int64_t t = 0; t < 2 && c + 16 * t < s.out_cols; ++t)
                            finish(r + i, c + 16 * t, load(acc[t] + 16 * i));
                      });
}
