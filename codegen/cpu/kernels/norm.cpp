// tk_norm: heads over threads; tk_add_norm: rows.
#include "norm.h"

TK_KERNEL(tk_norm) {
  const auto &s = *(const tk_norm_shape *)shape;
  const float *x = (const float *)io[0], *weight = (const float *)io[1];
  const float *bias = s.bias ? (const float *)io[2] : nullptr;
  float *out = (float *)io[2 + (s.bias ? 1 : 0)];
  Range share = shareOf(countRows(s.rows, env) * s.groups, env);
  for (int64_t i = share.begin; i < share.end; ++i) {
    int64_t row = i / s.groups, column = i % s.groups * s.cols;
    normalise(s.norm, s.eps, s.cols, x + row * s.x_stride + column, weight, bias,
              out + row * s.out_stride + column);
  }
}

TK_KERNEL(tk_add_norm) {
  const auto &s = *(const tk_norm_shape *)shape;
  const float *x = (const float *)io[0], *y = (const float *)io[1], *weight = (const float *)io[2];
  const float *bias = s.bias ? (const float *)io[3] : nullptr;
  float *total = (float *)io[3 + (s.bias ? 1 : 0)], *out = (float *)io[4 + (s.bias ? 1 : 0)];
  Range share = shareOf(countRows(s.rows, env), env);
  for (int64_t r = share.begin; r < share.end; ++r)
    for (int64_t g = 0; g < s.groups; ++g) {
      float *t = total + r * s.sum_stride + g * s.cols;
      for (int64_t c = 0; c < s.cols; c += 16) {
        int64_t n = least(16, s.cols - c);
        store(t + c,
              load(x + r * s.x_stride + g * s.cols + c, n) +
                  load(y + r * s.y_stride + g * s.cols + c, n),
              n);
      }
      normalise(s.norm, s.eps, s.cols, t, weight, bias, out + r * s.out_stride + g * s.cols);
    }
}
