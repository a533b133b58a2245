// The stage alone, on one thread: norms and rotations in four passes as Tenon's kernels do them,
// and the kernel of the plugin. Its shape is a constant, as the code generator makes it: Qwen3
// 0.6B, 16 query heads and 8 key heads of 128, side by side in rows of 4096.
#define TK_KERNEL(name)                                                                            \
  static inline __attribute__((always_inline)) void name(const void *shape, void *const *io,       \
                                                         const tenon_env *env)
#include "kernels/qk_norm_rope.cpp"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int32_t Q = 16, K = 8, D = 128, Row = 4096;
constexpr float eps = 1e-6f;
constexpr qk_norm_rope_shape shape = {
    {Q, Row, Q * D, eps}, {K, Row, K * D, eps}, D, D, TK_ROPE_HALF, D};

template <int Heads>
__attribute__((noinline)) static void norm(int64_t tokens, const float *x, const float *weight,
                                           float *out) {
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < Heads; ++h)
      normalise(TK_NORM_RMS, eps, D, x + t * Row + h * D, weight, nullptr,
                out + (t * Heads + h) * D);
}
template <int Heads>
__attribute__((noinline)) static void rope(int64_t tokens, const float *x, const float *angles,
                                           float *out) {
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < Heads; ++h)
      rotate(TK_ROPE_HALF, D, D, x + (t * Heads + h) * D, angles + t * D,
             out + (t * Heads + h) * D);
}
__attribute__((noinline)) static void fused(void *const *io, const tenon_env *env) {
  qk_norm_rope(&shape, io, env);
}

// The best of many runs, in microseconds.
template <class F> static double time(F f) {
  double best = 1e9;
  for (int i = 0; i < 2000; ++i) {
    auto start = std::chrono::steady_clock::now();
    f();
    std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    best = took.count() < best ? took.count() : best;
  }
  return best;
}

int main() {
  std::printf("%8s %12s %12s %8s\n", "tokens", "four, us", "one, us", "ratio");
  for (int tokens : {1, 8, 64, 512}) {
    std::vector<float> qkv(tokens * Row), weight(D), angles(tokens * D);
    for (auto *values : {&qkv, &weight, &angles})
      for (float &value : *values)
        value = float(std::rand()) / float(RAND_MAX) - 0.5f;
    std::vector<float> q(tokens * Q * D), k(tokens * K * D), q4 = q, k4 = k, q1 = q, k1 = k;
    tenon_batch batch = {};
    batch.tokens = tokens;
    tenon_env env = {};
    env.batch = &batch;
    env.threads = 1;
    void *io[] = {qkv.data(),         weight.data(), angles.data(), q1.data(),
                  qkv.data() + Q * D, weight.data(), k1.data()};
    int repeat = 1 + 128 / tokens;
    double four = time([&] {
      for (int i = 0; i < repeat; ++i) {
        norm<Q>(tokens, qkv.data(), weight.data(), q.data());
        rope<Q>(tokens, q.data(), angles.data(), q4.data());
        norm<K>(tokens, qkv.data() + Q * D, weight.data(), k.data());
        rope<K>(tokens, k.data(), angles.data(), k4.data());
      }
    });
    double one = time([&] {
      for (int i = 0; i < repeat; ++i)
        fused(io, &env);
    });
    std::printf("%8d %12.2f %12.2f %8.2f  %s\n", tokens, four / repeat, one / repeat, four / one,
                q1 == q4 && k1 == k4 ? "bit-equal" : "DIFFERENT");
  }
}
