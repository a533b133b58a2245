// `tenon_compiled` of the toy (Toy.h), written by hand as the compiler would generate it.
#include "runtime/kernel_abi.h"

#include <cstdlib>
#include <cstring>

namespace {

constexpr int vocab = 480, layers = 2, hiddenWidth = 4;
constexpr int64_t keyBytes = TENON_BLOCK_TOKENS * sizeof(float); // one head of width 1
constexpr tenon_hidden hiddens[] = {
    {"hidden.0", 0, hiddenWidth}, {"hidden.1", 16, hiddenWidth}, {"hidden_final", 32, hiddenWidth}};
constexpr int64_t arenaTokenBytes = 64, arenaScoredBytes = vocab * sizeof(float);

float *slot(const tenon_env *env, char *cache, int layer, int sequence, int position, bool value) {
  const tenon_batch &batch = *env->batch;
  int block = batch.block_table[sequence * batch.max_blocks + position / TENON_BLOCK_TOKENS];
  char *data = cache + ((2 * layer + value) * env->cache_blocks + block) * keyBytes;
  return reinterpret_cast<float *>(data) + position % TENON_BLOCK_TOKENS;
}

int64_t history(const tenon_env *env, char *cache, int token) {
  int sequence = env->batch->sequence_of[token];
  int64_t h = 0;
  for (int p = 0; p <= env->batch->positions[token]; ++p) {
    int64_t key = static_cast<int64_t>(*slot(env, cache, 0, sequence, p, false));
    int64_t value = static_cast<int64_t>(*slot(env, cache, 1, sequence, p, true));
    h += (key + value) * value;
  }
  return h;
}

void program(const tenon_env *env, char *arena, const char *weights, char *cache) {
  const tenon_batch &batch = *env->batch;
  std::memset(env->scratch, 0x5a, 64);
  for (int t = env->thread; t < batch.tokens; t += env->threads) {
    int sequence = batch.sequence_of[t], position = batch.positions[t];
    if (position >= batch.lengths[sequence] || t < batch.starts[sequence] ||
        t >= batch.starts[sequence + 1])
      std::abort();
    *slot(env, cache, 0, sequence, position, false) = static_cast<float>(batch.ids[t]);
    *slot(env, cache, 1, sequence, position, true) = static_cast<float>(position + 1);
  }
  env->services->barrier(env);
  for (int t = env->thread; t < batch.tokens; t += env->threads)
    for (int i = 0; i < 3; ++i) {
      float *hidden =
          reinterpret_cast<float *>(arena + batch.tokens * hiddens[i].offset) + t * hiddenWidth;
      hidden[0] = static_cast<float>(batch.ids[t]);
      hidden[1] = static_cast<float>(batch.positions[t]);
      hidden[2] = static_cast<float>(i);
      hidden[3] = static_cast<float>(history(env, cache, t));
    }
  float *logits = reinterpret_cast<float *>(arena + batch.tokens * arenaTokenBytes);
  for (int r = env->thread; r < batch.scored; r += env->threads) {
    int32_t next;
    int64_t h = history(env, cache, batch.scored_rows[r]) % vocab;
    std::memcpy(&next, weights + h * 4, 4);
    for (int v = 0; v < vocab; ++v)
      logits[r * vocab + v] = -0.25f * static_cast<float>(std::abs(v - next));
  }
}

void prefill(const tenon_env *env, char *arena, const char *weights, char *cache) {
  if (env->batch->tokens > 512 || env->batch->scored > 64)
    std::abort(); // larger than a wave may be
  program(env, arena, weights, cache);
}

void decode(const tenon_env *env, char *arena, const char *weights, char *cache) {
  if (env->batch->tokens != env->batch->sequences || env->batch->tokens != env->batch->scored ||
      env->services->matmul)
    std::abort();
  program(env, arena, weights, cache);
}

constexpr tenon_variant variants[] = {
    {"future", "sse2,avx9000", prefill, decode, 0, nullptr},
    {"toy", "", prefill, decode, 100, nullptr},
};

} // namespace

// The digest is that of toy::weights().
extern "C" const tenon_compiled toyCompiled __asm__("tenon_compiled");
const tenon_compiled toyCompiled = {TENON_KERNEL_ABI,
                                    2,
                                    variants,
                                    "cpu",
                                    0,
                                    vocab,
                                    128,
                                    arenaTokenBytes,
                                    arenaScoredBytes,
                                    0,
                                    TENON_F32,
                                    {layers, 1, keyBytes, keyBytes},
                                    vocab * 4,
                                    {0xe5, 0xbb, 0xe7, 0x8f, 0x58, 0x67, 0x5c, 0xcc},
                                    3,
                                    hiddens,
                                    0,
                                    0,
                                    0,
                                    nullptr,
                                    {0, 0, 0, 0},
                                    0,
                                    0,
                                    {0, nullptr},
                                    {0, nullptr},
                                    {0, nullptr},
                                    nullptr};
