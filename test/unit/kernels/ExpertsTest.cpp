// Mixture of experts against double precision: every format, shared and split rows, gates, biases,
// and bit-equality under every cut of the work; the choice of experts against a sorted list.
#include "Kernels.h"
#include "Packed.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace {

using tenon::PackedFormat;
using ExpertsTest = KernelTest;

// A stack of packed matrices, and its elements.
struct Stack {
  PackedFormat format;
  int64_t experts, rows, cols;
  std::vector<uint8_t> packed;

  Stack(PackedFormat format, int64_t experts, int64_t rows, int64_t cols, unsigned seed)
      : format(format), experts(experts), rows(rows), cols(cols) {
    for (int64_t e = 0; e < experts; ++e) {
      std::vector<uint8_t> one =
          packMatrix(format, rows, cols, randomFloats(rows * cols, seed + unsigned(e)));
      packed.insert(packed.end(), one.begin(), one.end());
    }
  }
  double at(int64_t e, int64_t row, int64_t column) const {
    return packedElement(format, cols, packed.data() + e * int64_t(packed.size()) / experts, row,
                         column);
  }
};

// Choices of distinct experts, most of them the first ones, as routers tend to do.
std::vector<float> choose(int64_t tokens, int64_t slots, int64_t experts) {
  std::vector<float> choice;
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t k = 0; k < slots; ++k)
      choice.push_back(float((k + (t * t) % 3) % experts));
  return choice;
}

TEST_P(ExpertsTest, Linear) {
  const int64_t experts = 5, slots = 3, rows = 40, cols = 64;
  for (PackedFormat stored : {PackedFormat::F32, PackedFormat::BF16, PackedFormat::F16,
                              PackedFormat::U4M, PackedFormat::S8, PackedFormat::U4MG16}) {
    PackedFormat format = formatOn(level(), stored);
    SCOPED_TRACE(getPackedFormatName(format).str());
    Stack gate(format, experts, rows, cols, 10), up(format, experts, rows, cols, 20);
    std::vector<float> bias = randomFloats(experts * rows, 3),
                       upBias = randomFloats(experts * rows, 4);
    for (int32_t tokens : {1, 2, 100})
      for (bool shared : {true, false})
        for (bool gated : {false, true}) {
          int64_t width = shared ? cols : slots * cols;
          std::vector<float> x = randomFloats(tokens * width, 5),
                             choice = choose(tokens, slots, experts);
          tk_expert_linear_shape s = {};
          s.experts = experts;
          s.slots = slots;
          s.cols = cols;
          s.out_cols = rows;
          s.format = int32_t(format);
          s.x_stride = int32_t(width);
          s.shared = shared;
          s.choice = 1;
          s.choice_stride = slots;
          s.out_stride = slots * rows;
          s.bias = 1;
          s.gated = gated;
          s.activation = TK_ACT_RELU;
          std::vector<double> want;
          for (int64_t t = 0; t < tokens; ++t)
            for (int64_t k = 0; k < slots; ++k) {
              auto e = int64_t(choice[t * slots + k]);
              const float *row = x.data() + t * width + (shared ? 0 : k * cols);
              auto product = [&](const Stack &w, const std::vector<float> &b, int64_t n) {
                double sum = b[e * rows + n];
                for (int64_t c = 0; c < cols; ++c)
                  sum += w.at(e, n, c) * row[c];
                return sum;
              };
              for (int64_t n = 0; n < rows; ++n) {
                double value = product(gate, bias, n);
                want.push_back(gated ? std::max(value, 0.0) * product(up, upBias, n) : value);
              }
            }
          std::vector<float> first;
          for (int threads : teams({1, 2, 3, 7})) {
            std::vector<float> out(tokens * slots * rows, -9);
            std::vector<const void *> io = {x.data(), choice.data(), gate.packed.data(),
                                            bias.data()};
            if (gated)
              io.insert(io.end(), {up.packed.data(), upBias.data()});
            io.push_back(out.data());
            runKernel(level().tk_expert_linear, &s, io, Batch(tokens), threads,
                      tk_expert_linear_scratch(&s));
            // Activations are rounded to 8 bits beside quantised weights; where two such products
            // are multiplied, a small one carries the error of a large one.
            const double rounded = gated ? 1e-1 : 3e-2;
            expectNear(out, want, tk_is_quantised(int32_t(format)) ? rounded : 1e-5);
            if (first.empty())
              first = out;
            EXPECT_EQ(out, first) << threads << " threads";
          }
        }
  }
}

// More pairs than are sorted at a time; a token's result does not depend on the others.
TEST_P(ExpertsTest, ManyTokens) {
  const int64_t experts = 4, slots = 2, rows = 16, cols = 32;
  const int32_t tokens = TK_EXPERT_PAIRS / slots + 77;
  Stack weight(PackedFormat::F32, experts, rows, cols, 1);
  std::vector<float> x = randomFloats(tokens * cols, 2), choice = choose(tokens, slots, experts);
  tk_expert_linear_shape s = {};
  s.experts = experts;
  s.slots = slots;
  s.cols = cols;
  s.out_cols = rows;
  s.x_stride = cols;
  s.shared = 1;
  s.choice = 1;
  s.choice_stride = slots;
  s.out_stride = slots * rows;
  std::vector<float> all(tokens * slots * rows), one(slots * rows);
  runKernel(level().tk_expert_linear, &s,
            {x.data(), choice.data(), weight.packed.data(), all.data()}, Batch(tokens), 2,
            tk_expert_linear_scratch(&s));
  for (int32_t t : {0, 1, tokens / 2, tokens - 1}) {
    runKernel(level().tk_expert_linear, &s,
              {x.data() + t * cols, choice.data() + t * slots, weight.packed.data(), one.data()},
              Batch(1), 1, tk_expert_linear_scratch(&s));
    EXPECT_EQ(one, std::vector<float>(all.begin() + t * slots * rows,
                                      all.begin() + (t + 1) * slots * rows));
  }
}

// Every head its own matrix, without a choice.
TEST_P(ExpertsTest, Heads) {
  const int64_t heads = 3, rows = 20, cols = 12;
  Stack weight(PackedFormat::F32, heads, rows, cols, 1);
  std::vector<float> x = randomFloats(5 * heads * cols, 2), out(5 * heads * rows);
  tk_expert_linear_shape s = {};
  s.experts = s.slots = heads;
  s.cols = cols;
  s.out_cols = rows;
  s.x_stride = heads * cols;
  s.out_stride = heads * rows;
  runKernel(level().tk_expert_linear, &s, {x.data(), weight.packed.data(), out.data()}, Batch(5), 2,
            tk_expert_linear_scratch(&s));
  std::vector<double> want;
  for (int64_t t = 0; t < 5; ++t)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t n = 0; n < rows; ++n) {
        double sum = 0;
        for (int64_t c = 0; c < cols; ++c)
          sum += weight.at(h, n, c) * x[(t * heads + h) * cols + c];
        want.push_back(sum);
      }
  expectNear(out, want, 1e-5);
}

TEST_P(ExpertsTest, TopK) {
  struct Case {
    int32_t cols, count, groups, top, score;
  };
  for (Case c : {Case{4, 2, 1, 1, 0},
                 {60, 4, 1, 1, 0},
                 {256, 8, 8, 4, TK_GROUP_LARGEST_TWO},
                 {160, 6, 8, 3, TK_GROUP_LARGEST},
                 {6, 6, 1, 1, 0}}) {
    SCOPED_TRACE(c.cols);
    const int32_t rows = 9, size = c.cols / c.groups;
    std::vector<float> x = randomFloats(rows * c.cols, 7), bias = randomFloats(c.cols, 8);
    x[1] = x[0], bias[1] = bias[0]; // the left one comes first
    tk_top_k_shape s = {TK_ROWS_TOKENS, c.cols, c.count, c.groups, c.top,
                        c.score,        1,      c.cols,  c.count};
    std::vector<float> want;
    for (int32_t r = 0; r < rows; ++r) {
      std::vector<float> scores(c.cols);
      for (int32_t i = 0; i < c.cols; ++i)
        scores[i] = x[r * c.cols + i] + bias[i];
      std::vector<std::pair<float, int>> groups;
      for (int32_t g = 0; g < c.groups; ++g) {
        std::vector<float> sorted(scores.begin() + g * size, scores.begin() + (g + 1) * size);
        std::sort(sorted.rbegin(), sorted.rend());
        groups.emplace_back(-(sorted[0] + (c.score == TK_GROUP_LARGEST_TWO ? sorted[1] : 0)), g);
      }
      std::sort(groups.begin(), groups.end());
      std::vector<std::pair<float, int>> candidates;
      for (int32_t g = 0; g < c.top; ++g)
        for (int32_t i = 0; i < size; ++i)
          candidates.emplace_back(-scores[groups[g].second * size + i],
                                  groups[g].second * size + i);
      std::sort(candidates.begin(), candidates.end());
      for (int32_t k = 0; k < c.count; ++k)
        want.push_back(float(candidates[k].second));
    }
    for (int threads : teams({1, 2, 5})) {
      std::vector<float> out(rows * c.count, -1);
      runKernel(level().tk_top_k, &s, {x.data(), bias.data(), out.data()}, Batch(rows), threads,
                tk_top_k_scratch(&s));
      EXPECT_EQ(out, want);
    }
  }
}

TEST_P(ExpertsTest, Rows) {
  const int32_t rows = 4, cols = 37, slots = 3;
  std::vector<float> x = randomFloats(rows * cols * slots, 1, 3), out(rows * cols * slots);
  tk_unary_shape unary = {TK_ROWS_TOKENS, cols, cols, cols, 0, 0};
  std::vector<double> softmax, normalised;
  std::vector<float> positive(rows * cols);
  for (int32_t r = 0; r < rows; ++r) {
    const float *row = x.data() + r * cols;
    double sum = 0, total = 0;
    for (int32_t c = 0; c < cols; ++c) {
      positive[r * cols + c] = std::fabs(row[c]);
      sum += std::exp(double(row[c]));
      total += std::fabs(row[c]);
    }
    for (int32_t c = 0; c < cols; ++c) {
      softmax.push_back(std::exp(double(row[c])) / sum);
      normalised.push_back(std::fabs(row[c]) / total);
    }
  }
  out.resize(rows * cols);
  runKernel(level().tk_softmax, &unary, {x.data(), out.data()}, Batch(rows), 2);
  expectNear(out, softmax, 1e-6);
  runKernel(level().tk_normalise, &unary, {positive.data(), out.data()}, Batch(rows), 2);
  expectNear(out, normalised, 1e-6);

  std::vector<float> weights = randomFloats(rows * slots, 2), picked(rows * slots);
  tk_slots_shape combine = {TK_ROWS_TOKENS, slots, cols, slots * cols, slots, cols};
  std::vector<double> want;
  for (int32_t r = 0; r < rows; ++r)
    for (int32_t c = 0; c < cols; ++c) {
      double sum = 0;
      for (int32_t k = 0; k < slots; ++k)
        sum += double(weights[r * slots + k]) * x[(r * slots + k) * cols + c];
      want.push_back(sum);
    }
  runKernel(level().tk_combine, &combine, {x.data(), weights.data(), out.data()}, Batch(rows), 3);
  expectNear(out, want, 1e-6);

  std::vector<float> columns = {36, 0, 5, 1, 1, 2, 7, 8, 9, 30, 20, 10};
  tk_slots_shape gather = {TK_ROWS_TOKENS, slots, cols, cols, slots, slots};
  runKernel(level().tk_gather_columns, &gather, {x.data(), columns.data(), picked.data()},
            Batch(rows), 2);
  for (int32_t i = 0; i < rows * slots; ++i)
    EXPECT_EQ(picked[i], x[i / slots * cols + int32_t(columns[i])]);
}

TEST_P(ExpertsTest, JoinAndSliceHeads) {
  const int32_t rows = 3, heads = 2, left = 18, right = 5;
  std::vector<float> a = randomFloats(rows * heads * left, 1),
                     b = randomFloats(rows * heads * right, 2);
  std::vector<float> both(rows * heads * (left + right)), back(rows * heads * right);
  tk_heads_shape join = {
      TK_ROWS_TOKENS,        heads, left, right, 0, 0, heads * left, heads * right,
      heads * (left + right)};
  runKernel(level().tk_join_heads, &join, {a.data(), b.data(), both.data()}, Batch(rows), 2);
  for (int32_t i = 0; i < rows * heads; ++i)
    for (int32_t d = 0; d < left + right; ++d)
      EXPECT_EQ(both[i * (left + right) + d], d < left ? a[i * left + d] : b[i * right + d - left]);
  tk_heads_shape slice = {TK_ROWS_TOKENS,         heads, left + right, 0, left, right,
                          heads * (left + right), 0,     heads * right};
  runKernel(level().tk_slice_heads, &slice, {both.data(), back.data()}, Batch(rows), 2);
  EXPECT_EQ(back, b);
}

} // namespace

TENON_KERNEL_TEST_SUITE(ExpertsTest);
