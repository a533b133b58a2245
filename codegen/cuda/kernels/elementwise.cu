// Kernels that work element by element, a row for each y; and tk_softmax, tk_normalise, a block for
// each row.
#include "activation.h"
#include "reduce.h"

namespace tk {

// Calls f(column) for the columns of this thread.
template <class F> TK_DEVICE void forEachColumn(int64_t cols, F f) {
  for (int64_t c = blockX() * threadCount() + threadIndex(); c < cols; c += gridX() * threadCount())
    f(c);
}

template <class Shape, class F> TK_DEVICE void mapUnary(const Shape &s, const tk_args &args, F f) {
  const float *x = (const float *)args.io[0] + blockY() * s.x_stride;
  float *out = (float *)args.io[1] + blockY() * s.out_stride;
  forEachColumn(s.cols, [&](int64_t c) { out[c] = f(x[c]); });
}

template <class F> TK_DEVICE void mapBinary(const tk_binary_shape &s, const tk_args &args, F f) {
  const float *a = (const float *)args.io[0] + blockY() * s.a_stride;
  const float *b = (const float *)args.io[1] + blockY() * s.b_stride;
  float *out = (float *)args.io[2] + blockY() * s.out_stride;
  forEachColumn(s.cols, [&](int64_t c) { out[c] = f(a[c], b[c]); });
}

// out = f(x) / Σ f(x).
template <class F>
TK_DEVICE void divideBySum(const tk_unary_shape &s, const float *x, float *out, float *space, F f) {
  float sum = 0;
  for (int64_t c = threadIndex(); c < s.cols; c += threadCount())
    sum += out[c] = f(x[c]);
  sum = blockSum(sum, space);
  for (int64_t c = threadIndex(); c < s.cols; c += threadCount())
    out[c] = out[c] / sum;
}

} // namespace tk

TK_DEVICE void tk_add(const tk_binary_shape &s, const tk_args &args) {
  tk::mapBinary(s, args, [](float a, float b) { return a + b; });
}
TK_DEVICE void tk_mul(const tk_binary_shape &s, const tk_args &args) {
  tk::mapBinary(s, args, [](float a, float b) { return a * b; });
}
TK_DEVICE void tk_activation(const tk_unary_shape &s, const tk_args &args) {
  tk::mapUnary(s, args, [&](float x) { return tk::activate(s.activation, x); });
}
TK_DEVICE void tk_scale(const tk_unary_shape &s, const tk_args &args) {
  tk::mapUnary(s, args, [&](float x) { return x * s.value; });
}
TK_DEVICE void tk_softcap(const tk_unary_shape &s, const tk_args &args) {
  tk::mapUnary(s, args, [&](float x) { return s.value * tk::hyperbolicTangent(x / s.value); });
}
TK_DEVICE void tk_shift(const tk_unary_shape &s, const tk_args &args) {
  tk::mapUnary(s, args, [&](float x) { return x + s.value; });
}
TK_DEVICE void tk_clamp(const tk_clamp_shape &s, const tk_args &args) {
  tk::mapUnary(s, args, [&](float x) {
    x = x < s.low ? s.low : x; // a NaN stays one
    return x > s.high ? s.high : x;
  });
}
TK_DEVICE void tk_copy(const tk_unary_shape &s, const tk_args &args) {
  tk::mapUnary(s, args, [](float x) { return x; });
}

TK_DEVICE void tk_gather_rows(const tk_unary_shape &s, const tk_args &args) {
  int64_t row = args.batch->scored_rows[tk::blockY()];
  const float *x = (const float *)args.io[0] + row * s.x_stride;
  float *out = (float *)args.io[1] + tk::blockY() * s.out_stride;
  tk::forEachColumn(s.cols, [&](int64_t c) { out[c] = x[c]; });
}

TK_DEVICE void tk_softmax(const tk_unary_shape &s, const tk_args &args) {
  const float *x = (const float *)args.io[0] + tk::blockY() * s.x_stride;
  float *space = (float *)tk::shared();
  float largest = -tk::infinity();
  for (int64_t c = tk::threadIndex(); c < s.cols; c += tk::threadCount())
    largest = tk::greater(x[c], largest);
  largest = tk::blockMax(largest, space);
  tk::divideBySum(s, x, (float *)args.io[1] + tk::blockY() * s.out_stride, space + tk::warps(),
                  [=](float v) { return tk::exponential(v - largest); });
}

TK_DEVICE void tk_normalise(const tk_unary_shape &s, const tk_args &args) {
  tk::divideBySum(s, (const float *)args.io[0] + tk::blockY() * s.x_stride,
                  (float *)args.io[1] + tk::blockY() * s.out_stride, (float *)tk::shared(),
                  [](float v) { return v; });
}
