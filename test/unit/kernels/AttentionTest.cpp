// Attention over the paged cache: golden cases (causal, grouped, window, softcap, scale, ALiBi),
// ragged batches against double precision, and bit-equality under every cut of the work.
#include "Kernels.h"
#include "Oracle.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace {

struct Heads {
  int32_t heads, kvHeads, dim;
  int32_t width() const { return heads * dim; }
  int32_t kvWidth() const { return kvHeads * dim; }
};

int64_t poolBytes(const Heads &h, const Batch &batch) {
  return batch.blocks() * 2 * TENON_BLOCK_TOKENS * h.kvWidth() * 4;
}

tk_attention_shape attentionShape(const Heads &h, int32_t dtype = TENON_F32) {
  tk_attention_shape s = {};
  s.heads = h.heads;
  s.kv_heads = h.kvHeads;
  s.head_dim = h.dim;
  s.q_stride = s.out_stride = h.width();
  s.kv_dtype = dtype;
  s.scale = 1 / std::sqrt(float(h.dim));
  return s;
}

class AttentionTest : public KernelTest {
protected:
  // A cache with the first lengths[s] rows of each sequence's k and v; whatever was not written is
  // NaN.
  std::vector<char> fill(const Heads &h, int32_t dtype, std::vector<int32_t> lengths,
                         const std::vector<float> &k, const std::vector<float> &v,
                         const Batch &like) {
    Batch batch(lengths);
    batch.blockTable = like.blockTable;
    tenon_batch &raw = const_cast<tenon_batch &>(batch.get());
    raw.block_table = batch.blockTable.data();
    raw.max_blocks = like.get().max_blocks;
    std::vector<char> pool(poolBytes(h, like), char(0xff));
    tk_kv_append_shape shape = {h.kvHeads, h.dim, h.kvWidth(), h.kvWidth(), dtype, 0, 0, 0};
    runKernel(level().tk_kv_append, &shape, {k.data(), v.data(), pool.data()}, batch, 2);
    return pool;
  }

  // What another context than that of `first` gives: the same bits or, on CUDA, where the context
  // chooses into how many shares a row is cut, nearly the same numbers.
  void expectAlike(const std::vector<float> &got, const std::vector<float> &first,
                   bool isSameContext = false) {
    if (level().emulated && !isSameContext)
      expectNear(got, {first.begin(), first.end()}, 1e-4);
    else
      EXPECT_EQ(got, first);
  }

  std::vector<float> attend(const tk_attention_shape &shape, const Batch &batch,
                            const std::vector<float> &q, std::vector<char> &pool, int threads = 1,
                            const std::vector<float> &bias = {}, const float *sinks = nullptr) {
    std::vector<float> out(batch.tokens() * shape.out_stride, -9);
    std::vector<const void *> io{q.data(), pool.data()};
    if (shape.bias)
      io.push_back(bias.data());
    if (shape.sinks)
      io.push_back(sinks);
    io.push_back(out.data());
    runKernel(level().tk_attention, &shape, io, batch, threads, tk_attention_scratch(&shape));
    return out;
  }
};

// [heads, positions, dim] to [positions, heads · dim], positions first .. last - 1.
std::vector<float> byToken(const GoldenTensor &t, int64_t first, int64_t last) {
  int64_t heads = t.dim(1), positions = t.dim(2), dim = t.dim(3);
  std::vector<float> result;
  for (int64_t p = first; p < last; ++p)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t d = 0; d < dim; ++d)
        result.push_back(float(t.values[(h * positions + p) * dim + d]));
  return result;
}

TEST_P(AttentionTest, Golden) {
  auto golden = readOracle("attention/attention.safetensors");
  struct Case {
    const char *name, *out;
    int32_t firstQuery, queries, keys; // queries are the last of the keys' positions
    int32_t window = 0;
    const char *scale = nullptr, *cap = nullptr, *slopes = nullptr;
  };
  for (Case c : {Case{"gqa", "gqa.prefill4", 0, 4, 4}, Case{"gqa", "gqa.decode5", 4, 1, 5},
                 Case{"gqa", "gqa.decode6", 5, 1, 6}, Case{"offset7", "offset7", 0, 3, 10},
                 Case{"window4", "window4", 0, 12, 12, 4},
                 Case{"window4_decode", "window4_decode", 0, 1, 12, 4},
                 Case{"softcap", "softcap", 0, 5, 5, 0, nullptr, "softcap.cap"},
                 Case{"scale", "scale", 0, 5, 5, 0, "scale.scale"},
                 Case{"large_scores", "large_scores", 0, 4, 4},
                 Case{"alibi8", "alibi8", 0, 5, 9, 0, nullptr, nullptr, "alibi8.slopes"},
                 Case{"alibi6", "alibi6", 0, 5, 9, 0, nullptr, nullptr, "alibi6.slopes"}}) {
    SCOPED_TRACE(c.out);
    const GoldenTensor &q = golden[std::string(c.name) + ".q"],
                       &k = golden[std::string(c.name) + ".k"];
    Heads h = {int32_t(q.dim(1)), int32_t(k.dim(1)), int32_t(q.dim(3))};
    tk_attention_shape shape = attentionShape(h);
    shape.window = c.window;
    if (c.scale)
      shape.scale = float(golden[c.scale].values[0]);
    if (c.cap)
      shape.softcap = float(golden[c.cap].values[0]);
    std::vector<float> bias; // distances -8 to 0
    if (c.slopes) {
      for (double slope : golden[c.slopes].values)
        for (int distance = -8; distance <= 0; ++distance)
          bias.push_back(float(slope * distance));
      shape.bias = TK_BIAS_DISTANCE;
      shape.bias_length = 9;
      shape.bias_origin = 8;
    }
    const GoldenTensor &out = golden[std::string(c.out) + ".out"];
    std::vector<float> wanted = byToken(out, 0, c.queries);
    Batch batch({c.queries}, {c.keys - c.queries});
    std::vector<char> pool = fill(h, TENON_F32, {c.keys}, byToken(k, 0, c.keys),
                                  byToken(golden[std::string(c.name) + ".v"], 0, c.keys), batch);
    std::vector<float> queries = byToken(q, c.firstQuery, c.firstQuery + c.queries);
    for (int threads : teams({1, 2, 5}))
      expectNear(attend(shape, batch, queries, pool, threads, bias), {wanted.begin(), wanted.end()},
                 1e-5);
    if (c.queries == 1) {
      shape.decode = 1;
      expectNear(attend(shape, batch, queries, pool, 2), {wanted.begin(), wanted.end()}, 1e-5);
    }
  }
}

TEST_P(AttentionTest, Sinks) {
  auto golden = readOracle("attention/attention.safetensors");
  const GoldenTensor &q = golden["sinks.q"], &k = golden["sinks.k"];
  Heads h = {int32_t(q.dim(1)), int32_t(k.dim(1)), int32_t(q.dim(3))};
  auto queries = int32_t(q.dim(2)), keys = int32_t(k.dim(2));
  std::vector<float> sinks = golden["sinks.sinks"].floats();
  std::vector<float> want = byToken(golden["sinks.out"], 0, queries);
  tk_attention_shape shape = attentionShape(h);
  shape.sinks = 1;
  shape.context = 256;
  Batch batch({queries}, {keys - queries});
  std::vector<char> pool =
      fill(h, TENON_F32, {keys}, byToken(k, 0, keys), byToken(golden["sinks.v"], 0, keys), batch);
  std::vector<float> rows = byToken(q, 0, queries);
  expectNear(attend(shape, batch, rows, pool, 2, {}, sinks.data()), {want.begin(), want.end()},
             1e-5);
  // The last token alone, as decode has it.
  Batch last({1}, {keys - 1});
  last.blockTable = batch.blockTable;
  const_cast<tenon_batch &>(last.get()).block_table = last.blockTable.data();
  std::vector<float> row(rows.end() - h.width(), rows.end());
  shape.decode = 1;
  for (int context : {0, 800}) { // with 800 spans are shared
    shape.context = context;
    expectNear(attend(shape, last, row, pool, 2, {}, sinks.data()),
               {want.end() - h.width(), want.end()}, 1e-5);
  }
}

// Row r of a golden [rows, heads, positions, dim] as a golden tensor of one row.
GoldenTensor rowOf(const GoldenTensor &t, int64_t r) {
  GoldenTensor row = t;
  const int64_t size = int64_t(t.values.size()) / t.dim(0);
  row.values.assign(t.values.begin() + r * size, t.values.begin() + (r + 1) * size);
  return row;
}

// Two decoders of 5 tokens over memories of other lengths: every query sees all of its memory,
// whatever its position. The same by an encoder's rows, and by steps of one token.
TEST_P(AttentionTest, Memory) {
  auto golden = readOracle("attention/attention.safetensors");
  const GoldenTensor &q = golden["cross_pad.q"], &k = golden["cross_pad.k"];
  const GoldenTensor &v = golden["cross_pad.v"], &out = golden["cross_pad.out"];
  Heads h = {int32_t(q.dim(1)), int32_t(k.dim(1)), int32_t(q.dim(3))};
  const int32_t queries = int32_t(q.dim(2));
  std::vector<int32_t> lengths;
  std::vector<float> keys, values, asked;
  std::vector<double> wanted;
  auto append = [](auto &to, const std::vector<float> &from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (int64_t row = 0; row < q.dim(0); ++row) {
    lengths.push_back(int32_t(golden["cross_pad.lengths"].values[row]));
    append(keys, byToken(rowOf(k, row), 0, lengths.back()));
    append(values, byToken(rowOf(v, row), 0, lengths.back()));
    append(asked, byToken(rowOf(q, row), 0, queries));
    append(wanted, byToken(rowOf(out, row), 0, queries));
  }
  Batch memory(lengths);
  std::vector<char> pool = fill(h, TENON_F32, lengths, keys, values, memory);
  tk_attention_shape shape = attentionShape(h);
  shape.keys = TK_KEYS_MEMORY;
  auto show = [&](const Batch &batch) {
    tenon_batch &raw = const_cast<tenon_batch &>(batch.get());
    raw.memory_lengths = memory.lengths.data();
    raw.memory_table = memory.blockTable.data();
    raw.memory_max_blocks = memory.get().max_blocks;
    const_cast<Batch &>(batch).memoryBlocks = memory.blocks();
  };
  Batch batch({queries, queries}, {0, 30});
  show(batch);
  for (int threads : teams({1, 3}))
    expectNear(attend(shape, batch, asked, pool, threads), wanted, 1e-5);

  shape.decode = 1;
  Batch step({1, 1}, {2, 33});
  show(step);
  std::vector<float> one;
  std::vector<double> first;
  for (int64_t row = 0; row < 2; ++row) {
    auto at = row * queries * h.width();
    one.insert(one.end(), asked.begin() + at, asked.begin() + at + h.width());
    first.insert(first.end(), wanted.begin() + at, wanted.begin() + at + h.width());
  }
  expectNear(attend(shape, step, one, pool, 2), first, 1e-5);
}

// An encoder's tokens see their whole sequence: as if it were their memory.
TEST_P(AttentionTest, Bidirectional) {
  Heads h = {6, 2, 24};
  std::vector<int32_t> lengths = {1, 70, 9};
  std::vector<float> q = randomFloats(80 * h.width(), 21, 2),
                     k = randomFloats(80 * h.kvWidth(), 22), v = randomFloats(80 * h.kvWidth(), 23);
  Batch batch(lengths);
  std::vector<char> pool = fill(h, TENON_F32, lengths, k, v, batch);
  tenon_batch &raw = const_cast<tenon_batch &>(batch.get());
  raw.memory_lengths = batch.lengths.data();
  raw.memory_table = batch.blockTable.data();
  raw.memory_max_blocks = raw.max_blocks;
  batch.memoryBlocks = batch.blocks();
  tk_attention_shape shape = attentionShape(h);
  shape.keys = TK_KEYS_MEMORY;
  std::vector<float> wanted = attend(shape, batch, q, pool);
  shape.keys = TK_KEYS_TOKENS;
  shape.k_stride = shape.v_stride = h.kvWidth();
  for (int threads : teams({1, 2, 7})) {
    std::vector<float> out(q.size(), -9);
    runKernel(level().tk_attention, &shape, {q.data(), k.data(), v.data(), out.data()}, batch,
              threads, tk_attention_scratch(&shape));
    EXPECT_EQ(out, wanted);
  }
}

// A ragged batch over random keys and values, and its answer in double precision.
struct Ragged {
  Heads heads;
  std::vector<int32_t> counts, cached, lengths;
  std::vector<float> q, k, v; // k and v: all positions of sequence 0, then of sequence 1, ...

  Ragged(Heads heads, std::vector<int32_t> counts, std::vector<int32_t> cached)
      : heads(heads), counts(counts), cached(cached) {
    int32_t tokens = 0, keys = 0;
    for (size_t s = 0; s < counts.size(); ++s) {
      lengths.push_back(counts[s] + cached[s]);
      tokens += counts[s];
      keys += lengths[s];
    }
    q = randomFloats(int64_t(tokens) * heads.width(), 11, 2);
    k = randomFloats(int64_t(keys) * heads.kvWidth(), 12);
    v = randomFloats(int64_t(keys) * heads.kvWidth(), 13);
  }

  std::vector<double> answer(const tk_attention_shape &s,
                             const std::vector<float> &bias = {}) const {
    std::vector<double> out(q.size());
    int64_t token = 0, firstKey = 0;
    for (size_t seq = 0; seq < counts.size(); firstKey += lengths[seq++])
      for (int32_t i = 0; i < counts[seq]; ++i, ++token)
        for (int32_t h = 0; h < heads.heads; ++h) {
          int32_t position = cached[seq] + i, kvHead = h / (heads.heads / heads.kvHeads);
          int32_t first = s.window ? std::max(0, position - s.window + 1) : 0;
          std::vector<double> scores;
          for (int32_t j = first; j <= position; ++j) {
            double score = 0;
            for (int32_t d = 0; d < heads.dim; ++d)
              score += double(q[token * heads.width() + h * heads.dim + d]) *
                       k[(firstKey + j) * heads.kvWidth() + kvHead * heads.dim + d];
            score *= s.scale;
            scores.push_back(s.softcap != 0 ? s.softcap * std::tanh(score / s.softcap) : score);
            if (!s.bias)
              continue;
            int32_t entry = (s.bias == TK_BIAS_DISTANCE ? j - position : j) + s.bias_origin;
            scores.back() +=
                bias[h * s.bias_length + std::min(std::max(entry, 0), s.bias_length - 1)];
          }
          double max = *std::max_element(scores.begin(), scores.end()), sum = 0;
          for (double &score : scores)
            sum += score = std::exp(score - max);
          for (int32_t j = first; j <= position; ++j)
            for (int32_t d = 0; d < heads.dim; ++d)
              out[token * heads.width() + h * heads.dim + d] +=
                  scores[j - first] / sum *
                  v[(firstKey + j) * heads.kvWidth() + kvHead * heads.dim + d];
        }
    return out;
  }
};

// Odd sizes: heads of 8, 24 and 80, groups of 1, 3 and 71, lengths on and beside blocks and spans.
const Heads oddHeads[] = {{3, 3, 8}, {9, 3, 24}, {8, 2, 64}, {71, 1, 16}, {2, 1, 80}, {3, 1, 96}};

TEST_P(AttentionTest, RaggedPrefill) {
  for (const Heads &h : oddHeads) {
    SCOPED_TRACE(h.dim);
    Ragged ragged(h, {5, 1, 70, 33}, {0, 300, 63, 15});
    Batch batch(ragged.counts, ragged.cached);
    std::vector<char> pool = fill(h, TENON_F32, ragged.lengths, ragged.k, ragged.v, batch);
    for (auto [window, softcap] : {std::pair{0, 0.0f}, {20, 0.0f}, {0, 3.0f}}) {
      tk_attention_shape shape = attentionShape(h);
      shape.window = window;
      shape.softcap = softcap;
      std::vector<float> one = attend(shape, batch, ragged.q, pool);
      expectNear(one, ragged.answer(shape), 1e-5);
      for (int threads : teams({2, 3, 7}))
        EXPECT_EQ(attend(shape, batch, ragged.q, pool, threads), one);
    }
  }
}

// Values narrower than keys, in rows of their own or as the first elements of the keys.
TEST_P(AttentionTest, NarrowValues) {
  for (auto [dim, width] : {std::pair{28, 20}, {96, 64}, {40, 40}})
    for (int decode : {0, 1})
      for (int32_t dtype : {TENON_F32, TENON_BF16, TENON_I8}) {
        SCOPED_TRACE(dim);
        Heads h = {6, 1, dim};
        Ragged ragged(h, decode ? std::vector<int32_t>{1, 1} : std::vector<int32_t>{70, 9},
                      {300, 5});
        ragged.v = ragged.k;
        std::vector<float> v;
        for (size_t row = 0; row < ragged.k.size() / dim; ++row)
          v.insert(v.end(), ragged.k.begin() + row * dim, ragged.k.begin() + row * dim + width);
        tk_attention_shape shape = attentionShape(h, dtype);
        shape.decode = decode;
        shape.context = 512;
        shape.value_dim = width;
        shape.out_stride = h.heads * width;
        std::vector<double> whole = ragged.answer(shape), want;
        for (size_t row = 0; row < whole.size() / dim; ++row)
          want.insert(want.end(), whole.begin() + row * dim, whole.begin() + row * dim + width);

        Batch batch(ragged.counts, ragged.cached), history(ragged.lengths);
        history.blockTable = batch.blockTable;
        tenon_batch &raw = const_cast<tenon_batch &>(history.get());
        raw.block_table = history.blockTable.data();
        raw.max_blocks = batch.get().max_blocks;
        std::vector<char> apart(poolBytes(h, batch), char(0xff)), inKeys = apart;
        tk_kv_append_shape append = {1, dim, dim, width, dtype, width, 0, 0};
        runKernel(level().tk_kv_append, &append, {ragged.k.data(), v.data(), apart.data()}, history,
                  2);
        append.values_in_keys = 1;
        runKernel(level().tk_kv_append, &append, {ragged.k.data(), inKeys.data()}, history, 2);

        std::vector<float> first = attend(shape, batch, ragged.q, apart, 2);
        const double tolerance = dtype == TENON_F32 ? 1e-5 : dtype == TENON_BF16 ? 6e-2 : 0.15;
        expectNear(first, want, tolerance);
        shape.values_in_keys = 1;
        for (int context : {0, 800}) {
          shape.context = context;
          std::vector<float> second = attend(shape, batch, ragged.q, inKeys, 3);
          if (dtype != TENON_I8) // whose groups and sums are others
            expectAlike(second, first);
          else
            expectNear(second, want, tolerance);
        }
      }
}

TEST_P(AttentionTest, PrefillRowIgnoresNeighbours) {
  // The last 33 tokens of a sequence alone, after a longer cached part, and beside another
  // sequence.
  Heads h = {9, 3, 24};
  Ragged ragged(h, {103}, {0});
  tk_attention_shape shape = attentionShape(h);
  shape.window = 50;
  Batch whole(103);
  std::vector<char> pool = fill(h, TENON_F32, {103}, ragged.k, ragged.v, whole);
  std::vector<float> all = attend(shape, whole, ragged.q, pool, 2);
  for (int32_t count : {33, 32, 1}) {
    Batch tail({count}, {103 - count});
    std::vector<float> q(ragged.q.end() - count * h.width(), ragged.q.end());
    EXPECT_EQ(attend(shape, tail, q, pool),
              std::vector<float>(all.end() - count * h.width(), all.end()));
  }
}

// Keys and values that are wider than what a register file holds of a block's.
TEST_P(AttentionTest, WideHeads) {
  for (auto [heads, dim, width] : {std::tuple{20, 576, 512}, {3, 256, 192}, {9, 320, 320}})
    for (int decode : {0, 1}) {
      SCOPED_TRACE(dim);
      Heads h = {heads, 1, dim};
      Ragged ragged(h, decode ? std::vector<int32_t>{1, 1} : std::vector<int32_t>{7, 2}, {60, 9});
      ragged.v = ragged.k;
      tk_attention_shape shape = attentionShape(h, TENON_BF16);
      shape.decode = decode;
      shape.context = 300;
      std::vector<double> whole = ragged.answer(shape), want;
      for (size_t row = 0; row < whole.size() / dim; ++row)
        want.insert(want.end(), whole.begin() + row * dim, whole.begin() + row * dim + width);
      shape.value_dim = width;
      shape.values_in_keys = 1;
      shape.out_stride = heads * width;
      Batch batch(ragged.counts, ragged.cached);
      std::vector<char> pool =
          fill(h, TENON_BF16, ragged.lengths, ragged.k, ragged.v, batch); // keys come first
      expectNear(attend(shape, batch, ragged.q, pool), want, 6e-2);
    }
}

TEST_P(AttentionTest, DecodeRowIgnoresNeighbours) {
  constexpr int32_t Rows = 18;
  Heads h = {4, 2, 32};
  std::vector<int32_t> cached;
  for (int32_t row = 0; row < Rows; ++row)
    cached.push_back(row * 71 % 600);
  Ragged ragged(h, std::vector<int32_t>(Rows, 1), cached);
  Batch batch(ragged.counts, cached);
  for (int32_t dtype : {TENON_F32, TENON_BF16}) {
    std::vector<char> pool = fill(h, dtype, ragged.lengths, ragged.k, ragged.v, batch);
    tk_attention_shape shape = attentionShape(h, dtype);
    shape.decode = 1;
    shape.context = 600;
    std::vector<float> all = attend(shape, batch, ragged.q, pool);
    for (int32_t row : {3, 8, Rows - 1}) {
      auto part = [](const std::vector<float> &all, int64_t first, int64_t count) {
        return std::vector<float>(all.begin() + first, all.begin() + first + count);
      };
      int32_t length = ragged.lengths[row];
      int64_t first = std::accumulate(ragged.lengths.begin(), ragged.lengths.begin() + row, 0);
      Batch alone({1}, {cached[row]});
      std::vector<char> own =
          fill(h, dtype, {length}, part(ragged.k, first * h.kvWidth(), length * h.kvWidth()),
               part(ragged.v, first * h.kvWidth(), length * h.kvWidth()), alone);
      EXPECT_EQ(attend(shape, alone, part(ragged.q, row * h.width(), h.width()), own),
                part(all, row * h.width(), h.width()));
    }
  }
}

TEST_P(AttentionTest, RaggedDecode) {
  for (const Heads &h : oddHeads) {
    SCOPED_TRACE(h.dim);
    Ragged ragged(h, {1, 1, 1, 1, 1}, {0, 15, 16, 255, 700});
    Batch batch(ragged.counts, ragged.cached);
    std::vector<char> pool = fill(h, TENON_F32, ragged.lengths, ragged.k, ragged.v, batch);
    for (auto [window, softcap] : {std::pair{0, 0.0f}, {300, 0.0f}, {0, 3.0f}}) {
      tk_attention_shape shape = attentionShape(h);
      shape.window = window;
      shape.softcap = softcap;
      shape.decode = 1;
      std::vector<float> one = attend(shape, batch, ragged.q, pool);
      expectNear(one, ragged.answer(shape), 1e-5);
      for (int threads : teams({1, 2, 3, 8}))
        for (int context : {0, 800}) {
          shape.context = context;
          expectAlike(attend(shape, batch, ragged.q, pool, threads), one, context == 0);
        }
    }
  }
}

// Tables that end before the first key and before the last, as T5's do.
TEST_P(AttentionTest, ScoreBias) {
  for (const Heads &h : oddHeads) {
    SCOPED_TRACE(h.dim);
    for (auto [by, length, origin] : {std::tuple{TK_BIAS_DISTANCE, 40, 39},
                                      {TK_BIAS_DISTANCE, 900, 880},
                                      {TK_BIAS_DISTANCE, 61, 30},
                                      {TK_BIAS_KEY, 800, 0},
                                      {TK_BIAS_KEY, 50, 3}}) {
      std::vector<float> bias = randomFloats(int64_t(h.heads) * length, 17, 3);
      tk_attention_shape shape = attentionShape(h);
      shape.bias = by;
      shape.bias_length = length;
      shape.bias_origin = origin;
      Ragged prefill(h, {5, 1, 70, 33}, {0, 300, 63, 15});
      Batch batch(prefill.counts, prefill.cached);
      std::vector<char> pool = fill(h, TENON_F32, prefill.lengths, prefill.k, prefill.v, batch);
      std::vector<float> one = attend(shape, batch, prefill.q, pool, 1, bias);
      expectNear(one, prefill.answer(shape, bias), 1e-5);
      EXPECT_EQ(attend(shape, batch, prefill.q, pool, 3, bias), one);

      Ragged decode(h, {1, 1, 1, 1}, {0, 16, 255, 700});
      Batch steps(decode.counts, decode.cached);
      pool = fill(h, TENON_F32, decode.lengths, decode.k, decode.v, steps);
      shape.decode = 1;
      one = attend(shape, steps, decode.q, pool, 1, bias);
      expectNear(one, decode.answer(shape, bias), 1e-5);
      shape.context = 800;
      expectAlike(attend(shape, steps, decode.q, pool, 3, bias), one);
    }
  }
}

TEST_P(AttentionTest, SmallCacheElements) {
  // Inputs that the cache holds exactly: with bf16 instructions probabilities are rounded, nothing
  // else is; by tensor cores those of prefill are rounded to either. In int8 each group has a
  // largest element of 127 sixteenths.
  double half = level().emulated ? 1e-3 : 1e-5;
  for (auto [dtype, tolerance] :
       {std::pair{TENON_BF16, 1e-2}, {TENON_F16, half}, {TENON_I8, 3e-2}}) {
    for (const Heads &h : oddHeads) {
      Ragged ragged(h, {1, 70}, {300, 63});
      for (std::vector<float> *values : {&ragged.q, &ragged.k, &ragged.v})
        for (size_t i = 0; i < values->size(); ++i) {
          float &x = (*values)[i];
          x = std::nearbyint(x * 16) / 16;
          if (dtype == TENON_I8 && values != &ragged.q && i % h.dim % TENON_CACHE_GROUP == 5)
            x = std::copysign(127.0f / 16, x);
        }
      Batch batch(ragged.counts, ragged.cached);
      std::vector<char> pool = fill(h, dtype, ragged.lengths, ragged.k, ragged.v, batch);
      tk_attention_shape shape = attentionShape(h, dtype);
      shape.scale = 0.125f;
      std::vector<double> want = ragged.answer(shape);
      expectNear(attend(shape, batch, ragged.q, pool, 2), want, tolerance);
      // The same rows one by one, as decode does.
      Ragged last(h, {1, 1}, {300, 132});
      Batch lastBatch(last.counts, last.cached);
      std::vector<float> q(ragged.q.begin(), ragged.q.begin() + h.width());
      q.insert(q.end(), ragged.q.end() - h.width(), ragged.q.end());
      std::vector<double> lastWant(want.begin(), want.begin() + h.width());
      lastWant.insert(lastWant.end(), want.end() - h.width(), want.end());
      shape.decode = 1;
      shape.context = 400;
      std::vector<float> one = attend(shape, lastBatch, q, pool, 1);
      expectNear(one, lastWant, tolerance);
      EXPECT_EQ(attend(shape, lastBatch, q, pool, 3), one);
    }
  }
}

// Each 32 elements, and what is left of a row, have a scale; codes are the nearest multiples of it.
// Keys lie by element, and on CUDA by position like values.
TEST_P(AttentionTest, QuantisedRows) {
  const float step = 3.0f / 256; // bf16 holds it
  Heads h = {2, 2, 40};
  std::vector<float> k = randomFloats(3 * h.kvWidth(), 1), v(k.size());
  k[0] = 127 * step;  // the largest of its group
  k[1] = 2.5f * step; // a tie
  k[2] = -3.49f * step;
  for (int i = 0; i < 32; ++i)
    k[i] = i < 3 ? k[i] : step * float(i - 16);
  v[3] = NAN;
  v[40] = -INFINITY;
  v[80] = 1e-38f;
  Batch batch(3);
  std::vector<char> pool = fill(h, TENON_I8, {3}, k, v, batch);
  const int64_t block = batch.blockTable[0], blocks = batch.blocks();
  const int64_t bytes = TENON_BLOCK_TOKENS * (40 + 2 * 2);
  auto at = [&](bool values, int head) {
    return pool.data() + ((values * h.kvHeads + head) * blocks + block) * bytes;
  };
  auto byRow = [&](bool values) { return values || level().emulated; };
  auto code = [&](bool values, int head, int slot, int d) {
    const char *codes = at(values, head) + 2 * 2 * TENON_BLOCK_TOKENS;
    return int(int8_t(codes[byRow(values) ? slot * 40 + d : d * TENON_BLOCK_TOKENS + slot]));
  };
  auto scale = [&](bool values, int head, int slot, int d) {
    uint16_t bits;
    std::memcpy(&bits, at(values, head) + d / 32 * 32 + 2 * slot, 2);
    uint32_t wide = uint32_t(bits) << 16;
    float result;
    std::memcpy(&result, &wide, 4);
    return result;
  };

  EXPECT_EQ(scale(false, 0, 0, 0), step);
  EXPECT_EQ(code(false, 0, 0, 0), 127);
  EXPECT_EQ(code(false, 0, 0, 1), 2);
  EXPECT_EQ(code(false, 0, 0, 2), -3);
  for (int i = 3; i < 32; ++i)
    EXPECT_EQ(code(false, 0, 0, i), i - 16);
  for (int slot = 0; slot < 3; ++slot)
    for (int head = 0; head < 2; ++head)
      for (int d = 0; d < 40; ++d) {
        float unit = scale(false, head, slot, d), x = k[(slot * 2 + head) * 40 + d];
        EXPECT_LE(std::abs(float(code(false, head, slot, d)) * unit - x), unit * 0.5001f);
      }
  EXPECT_TRUE(std::isnan(scale(true, 0, 0, 0)));
  EXPECT_EQ(scale(true, 0, 0, 32), 0);
  EXPECT_EQ(scale(true, 1, 0, 0), INFINITY);
  EXPECT_EQ(code(true, 0, 1, 0), 0);  // too small for a scale
  EXPECT_EQ(code(true, 1, 2, 39), 0); // zeros
  // Nothing else was written.
  int64_t written = 0;
  for (bool values : {false, true})
    for (int head = 0; head < 2; ++head)
      for (int64_t i = 0; i < bytes; ++i)
        if (at(values, head)[i] != char(0xff)) {
          EXPECT_TRUE(i < 64 ? i % 32 < 6 : byRow(values) ? i - 64 < 3 * 40 : i % 16 < 3) << i;
        }
  for (char byte : pool)
    written += byte != char(0xff);
  EXPECT_LE(written, 3 * 4 * 44);
}

TEST_P(AttentionTest, NotANumberStaysOne) {
  for (int32_t dtype : {TENON_F32, TENON_BF16, TENON_I8})
    for (int decode : {0, 1}) {
      Heads h = {4, 2, 24};
      Ragged ragged(h, {1}, {40});
      ragged.k[7 * h.kvWidth() + 3] = NAN;              // head 0
      ragged.v[9 * h.kvWidth() + h.dim + 3] = INFINITY; // head 1
      Batch batch(ragged.counts, ragged.cached);
      std::vector<char> pool = fill(h, dtype, ragged.lengths, ragged.k, ragged.v, batch);
      tk_attention_shape shape = attentionShape(h, dtype);
      shape.decode = decode;
      std::vector<float> out = attend(shape, batch, ragged.q, pool);
      EXPECT_FALSE(std::isfinite(out[3])) << dtype;
      EXPECT_FALSE(std::isfinite(out[3 * h.dim + 3])) << dtype;
    }
}

TEST_P(AttentionTest, WhatIsOutOfSightMayBeAnything) {
  // The window begins at an odd position; what lies before it is replaced by NaN.
  constexpr int32_t Length = 100, Window = 33;
  Heads h = {4, 2, 32};
  Ragged ragged(h, {1}, {Length - 1});
  Ragged poisoned = ragged;
  int64_t hidden = int64_t(Length - Window) * h.kvWidth();
  std::fill_n(poisoned.k.begin(), hidden, NAN);
  std::fill_n(poisoned.v.begin(), hidden, NAN);
  Batch batch(ragged.counts, ragged.cached);
  for (int32_t dtype : {TENON_F32, TENON_BF16, TENON_F16, TENON_I8}) {
    std::vector<char> pool = fill(h, dtype, ragged.lengths, ragged.k, ragged.v, batch);
    std::vector<char> other = fill(h, dtype, ragged.lengths, poisoned.k, poisoned.v, batch);
    tk_attention_shape shape = attentionShape(h, dtype);
    shape.window = Window;
    for (int decode : {0, 1}) {
      shape.decode = decode;
      EXPECT_EQ(attend(shape, batch, ragged.q, other), attend(shape, batch, ragged.q, pool));
    }
  }
}

TEST_P(AttentionTest, RopeAttentionIsItsParts) {
  for (auto [dtype, style] : {std::pair{TENON_F32, TK_ROPE_HALF},
                              {TENON_BF16, TK_ROPE_INTERLEAVED},
                              {TENON_F16, TK_ROPE_HALF},
                              {TENON_I8, TK_ROPE_INTERLEAVED}}) {
    for (Heads h : {Heads{9, 3, 24}, Heads{4, 4, 64}, Heads{12, 1, 10}}) {
      int32_t rotary = h.dim / 4 * 2, width = h.width() + 2 * h.kvWidth();
      std::vector<int32_t> cached = {0, 16, 300, 31, 511};
      Ragged history(h, {1, 1, 1, 1, 1}, cached);
      Batch batch(history.counts, cached);
      // q, k and v of the new tokens are views of one wide row.
      std::vector<float> qkv = randomFloats(5 * width, 5), angles(5 * rotary);
      std::vector<double> frequencies(rotary / 2);
      for (int32_t i = 0; i < rotary / 2; ++i)
        frequencies[i] = std::pow(1e4, -2.0 * i / rotary);
      tk_rope_angles_shape angleShape = {rotary, rotary, 1, 0, 0};
      runKernel(level().tk_rope_angles, &angleShape, {frequencies.data(), angles.data()}, batch);
      float *q = qkv.data(), *k = q + h.width(), *v = k + h.kvWidth();

      std::vector<char> pool = fill(h, dtype, history.lengths, history.k, history.v, batch);
      std::vector<char> fused = pool;
      std::vector<float> rotated(5 * h.width()), keys(5 * h.kvWidth());
      tk_rope_shape ropeQ = {h.heads, h.dim, rotary, style, width, rotary, h.width(), 0};
      tk_rope_shape ropeK = {h.kvHeads, h.dim, rotary, style, width, rotary, h.kvWidth(), 0};
      runKernel(level().tk_rope, &ropeQ, {q, angles.data(), rotated.data()}, batch);
      runKernel(level().tk_rope, &ropeK, {k, angles.data(), keys.data()}, batch);
      tk_kv_append_shape append = {h.kvHeads, h.dim, h.kvWidth(), width, dtype, 0, 0, 0};
      runKernel(level().tk_kv_append, &append, {keys.data(), v, pool.data()}, batch);
      tk_rope_attention_shape shape = {
          attentionShape(h, dtype), width, width, rotary, style, rotary};
      shape.attention.decode = 1;
      std::vector<float> bias = randomFloats(h.heads * 20, 6);
      if (h.heads != 9) {
        shape.attention.bias = TK_BIAS_DISTANCE;
        shape.attention.bias_length = 20;
        shape.attention.bias_origin = 19;
      }
      std::vector<float> want = attend(shape.attention, batch, rotated, pool, 1, bias);

      shape.attention.q_stride = width;
      for (int threads : teams({1, 2, 5}))
        for (int context : {0, 512}) {
          shape.attention.context = context;
          std::vector<char> cache = fused;
          std::vector<float> out(5 * h.width());
          std::vector<const void *> io{q, k, v, angles.data(), cache.data()};
          if (shape.attention.bias)
            io.push_back(bias.data());
          io.push_back(out.data());
          runKernel(level().tk_rope_attention, &shape, io, batch, threads,
                    tk_rope_attention_scratch(&shape));
          expectAlike(out, want, context == 0);
          EXPECT_EQ(cache, pool);
        }
    }
  }
}

TENON_KERNEL_TEST_SUITE(AttentionTest);

} // namespace
