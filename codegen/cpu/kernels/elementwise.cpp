// Kernels that work element by element: rows over threads, or columns when there are few rows.
#include "vmath.h"

namespace {

// Calls f(row, column, count) for this thread's pieces of 16 columns.
template <class F>
TK_INLINE void forEachPiece(int64_t rows, int64_t cols, const tenon_env *env, F f) {
  int64_t pieces = (cols + 15) / 16;
  bool byRow = rows >= env->threads;
  Range rowShare = byRow ? shareOf(rows, env) : Range{0, rows};
  Range share = byRow ? Range{0, pieces} : shareOf(pieces, env);
  for (int64_t r = rowShare.begin; r < rowShare.end; ++r)
    for (int64_t p = share.begin; p < share.end; ++p)
      f(r, 16 * p, least(16, cols - 16 * p));
}

template <class Shape, class F>
TK_INLINE void mapUnary(const Shape &s, void *const *io, const tenon_env *env, F f) {
  const float *x = (const float *)io[0];
  float *out = (float *)io[1];
  forEachPiece(countRows(s.rows, env), s.cols, env, [&](int64_t r, int64_t c, int64_t n) {
    store(out + r * s.out_stride + c, f(load(x + r * s.x_stride + c, n)), n);
  });
}

template <class F>
TK_INLINE void mapBinary(const tk_binary_shape &s, void *const *io, const tenon_env *env, F f) {
  const float *a = (const float *)io[0], *b = (const float *)io[1];
  float *out = (float *)io[2];
  forEachPiece(countRows(s.rows, env), s.cols, env, [&](int64_t r, int64_t c, int64_t n) {
    store(out + r * s.out_stride + c,
          f(load(a + r * s.a_stride + c, n), load(b + r * s.b_stride + c, n)), n);
  });
}

} // namespace

TK_KERNEL(tk_add) {
  mapBinary(*(const tk_binary_shape *)shape, io, env, [](Vec a, Vec b) { return a + b; });
}
TK_KERNEL(tk_mul) {
  mapBinary(*(const tk_binary_shape *)shape, io, env, [](Vec a, Vec b) { return a * b; });
}
TK_KERNEL(tk_activation) {
  const auto &s = *(const tk_unary_shape *)shape;
  mapUnary(s, io, env, [&](Vec x) { return activate(s.activation, x); });
}
TK_KERNEL(tk_scale) {
  const auto &s = *(const tk_unary_shape *)shape;
  mapUnary(s, io, env, [&](Vec x) { return x * s.value; });
}
TK_KERNEL(tk_softcap) {
  const auto &s = *(const tk_unary_shape *)shape;
  mapUnary(s, io, env, [&](Vec x) { return s.value * hyperbolicTangent(x / s.value); });
}
TK_KERNEL(tk_shift) {
  const auto &s = *(const tk_unary_shape *)shape;
  mapUnary(s, io, env, [&](Vec x) { return x + s.value; });
}
TK_KERNEL(tk_clamp) {
  const auto &s = *(const tk_clamp_shape *)shape;
  mapUnary(s, io, env, [&](Vec x) {
    x = x < s.low ? s.low : x; // a NaN stays one
    return x > s.high ? s.high : x;
  });
}
TK_KERNEL(tk_copy) {
  mapUnary(*(const tk_unary_shape *)shape, io, env, [](Vec x) { return x; });
}
TK_KERNEL(tk_gather_rows) {
  const auto &s = *(const tk_unary_shape *)shape;
  const float *x = (const float *)io[0];
  float *out = (float *)io[1];
  const int32_t *rows = env->batch->scored_rows;
  forEachPiece(env->batch->scored, s.cols, env, [&](int64_t r, int64_t c, int64_t n) {
    store(out + r * s.out_stride + c, load(x + (int64_t)rows[r] * s.x_stride + c, n), n);
  });
}
