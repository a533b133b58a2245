// tk_norm, tk_add_norm: a block for each vector; blocks in x are the vectors of a row.
#include "norm.h"

namespace tk {

// out = norm(x), by the threads that wrote x's elements.
TK_DEVICE void normVector(const tk_norm_shape &s, const float *x, const float *weight,
                          const float *bias, float *out) {
  float *space = (float *)shared();
  NormOfRow n = measure(s.norm, s.eps, s.cols, [&](auto f, int pass) {
    float sum = 0;
    for (int64_t c = threadIndex(); c < s.cols; c += threadCount())
      sum += f(x[c]);
    return blockSum(sum, space + pass * warps());
  });
  for (int64_t c = threadIndex(); c < s.cols; c += threadCount())
    out[c] = normed(s.norm, n, x[c], weight[c], s.bias ? bias[c] : 0.0f);
}

} // namespace tk

TK_DEVICE void tk_norm(const tk_norm_shape &s, const tk_args &args) {
  int64_t row = tk::blockY(), column = tk::blockX() * s.cols;
  tk::normVector(s, (const float *)args.io[0] + row * s.x_stride + column,
                 (const float *)args.io[1], (const float *)args.io[2],
                 (float *)args.io[s.bias ? 3 : 2] + row * s.out_stride + column);
}

TK_DEVICE void tk_add_norm(const tk_norm_shape &s, const tk_args &args) {
  int64_t row = tk::blockY(), column = tk::blockX() * s.cols;
  const float *x = (const float *)args.io[0] + row * s.x_stride + column;
  const float *y = (const float *)args.io[1] + row * s.y_stride + column;
  float *sum = (float *)args.io[s.bias ? 4 : 3] + row * s.sum_stride + column;
  for (int64_t c = tk::threadIndex(); c < s.cols; c += tk::threadCount())
    sum[c] = x[c] + y[c];
  tk::normVector(s, sum, (const float *)args.io[2], (const float *)args.io[3],
                 (float *)args.io[s.bias ? 5 : 4] + row * s.out_stride + column);
}
