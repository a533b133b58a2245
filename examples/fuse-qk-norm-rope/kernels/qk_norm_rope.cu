// qk_norm_rope on a CUDA device: a warp for each head of each token, a token for each row of
// blocks. The plan is in QkKernels.cpp. Behind the text of shapes.h, and that of Tenon's own
// kernels.

TK_DEVICE void qk_norm_rope(const qk_norm_rope_shape &s, const tk_args &args) {
  int64_t row = tk::blockY();
  int32_t head = int32_t(tk::blockX()) * tk::warps() + tk::warp();
  bool isSecond = head >= s.first.heads;
  if (isSecond)
    head -= s.first.heads;
  const qk_rows &set = isSecond ? s.second : s.first;
  if (head >= set.heads)
    return;
  const float *angles = (const float *)args.io[2] + row * s.angles_stride;
  const float *weight = (const float *)args.io[isSecond ? 5 : 1];
  const float *x =
      (const float *)args.io[isSecond ? 4 : 0] + row * set.x_stride + head * s.head_dim;
  float *out = (float *)args.io[isSecond ? 6 : 3] + row * set.out_stride + head * s.head_dim;

  float squares = 0;
  for (int32_t d = tk::lane(); d < s.head_dim; d += 32)
    squares += x[d] * x[d];
  float scale = 1.0f / tk::squareRoot(tk::warpSum(squares) / float(s.head_dim) + set.eps);

  int32_t half = s.rotary_dim / 2;
  bool halves = s.style == TK_ROPE_HALF;
  for (int32_t i = tk::lane(); i < s.head_dim - half; i += 32) {
    if (i >= half) { // not rotated
      out[i + half] = x[i + half] * scale * weight[i + half];
      continue;
    }
    int32_t low = halves ? i : 2 * i, high = halves ? i + half : 2 * i + 1;
    float a = x[low] * scale * weight[low], b = x[high] * scale * weight[high];
    out[low] = a * angles[i] - b * angles[half + i];
    out[high] = b * angles[i] + a * angles[half + i];
  }
}
