// Plans of CUDA launches: every number of rows is computed in one way and one only, with the library
// and without; and what the model of a device chooses.
#include "codegen/cuda/kernels/plan_attention.h"
#include "codegen/cuda/kernels/plan_products.h"
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace {

tk_linear_shape makeLinear(int32_t format, int32_t cols, int32_t outputs, int32_t mayRound) {
  tk_linear_shape s = {};
  s.format = format;
  s.cols = s.x_stride = cols;
  s.out_cols = s.out_stride = outputs;
  s.norm = TK_NORM_RMS;
  s.may_round = mayRound;
  return s;
}

struct Plan {
  explicit Plan(const tk_linear_shape &s) : launches(TK_MAX_LAUNCHES) {
    launches.resize(size_t(tk_plan_linear(s, 0, launches.data())));
  }

  // "prepare few", for so many rows.
  std::string of(int64_t rows, bool hasLibrary) const {
    std::string names;
    for (const tk_launch &launch : launches)
      if (tenon_is_launched(&launch, rows, hasLibrary))
        names += (names.empty() ? "" : " ") +
                 std::string(launch.function).substr(std::string("tk_linear_").size());
    return names;
  }
  // Of many rows.
  const tk_launch *tile(int64_t rows) const {
    for (const tk_launch &launch : launches)
      if (launch.least_rows > TK_MOST_FEW_ROWS && tenon_is_launched(&launch, rows, 0))
        return &launch;
    return nullptr;
  }
  int32_t libraryRows() const { return launches[0].library_rows; }

  std::vector<tk_launch> launches;
};

TEST(Plan, EveryNumberOfRowsHasOneWay) {
  for (int32_t format : {TK_F32, TK_BF16_ROWS, TK_F16_ROWS, TK_U4M, TK_U8M, TK_S8, TK_U4MG16})
    for (auto [cols, outputs] :
         {std::pair{576, 960}, {4096, 6144}, {14336, 4096}, {24, 8}, {70000, 300}})
      for (int32_t mayRound : {0, 1}) {
        Plan plan(makeLinear(format, cols, outputs, mayRound));
        for (int64_t rows = 1; rows <= 3000; ++rows) {
          std::string with = plan.of(rows, true), without = plan.of(rows, false);
          if (plan.libraryRows() && rows >= plan.libraryRows())
            EXPECT_EQ(with, format == TK_BF16_ROWS ? "round library" : "round library finish");
          else
            EXPECT_EQ(with, without);
          if (rows == 1)
            EXPECT_TRUE(without == "one" || without == "prepare few") << without;
          else if (rows <= TK_MOST_FEW_ROWS || format == TK_F32)
            EXPECT_EQ(without, "prepare few");
          else
            EXPECT_TRUE(without == "prepare many" || without == "prepare many_tall") << without;
          ASSERT_FALSE(HasFailure()) << format << " " << cols << "x" << outputs << " " << rows;
        }
      }
}

// Only prefill may round, only 16-bit matrices are a library's, and of scored rows there are few.
TEST(Plan, LibraryTakesLargeProducts) {
  tk_linear_shape head = makeLinear(TK_BF16_ROWS, 4096, 128256, 1);
  head.rows = TK_ROWS_SCORED;
  EXPECT_EQ(Plan(head).libraryRows(), 0);
  EXPECT_EQ(Plan(makeLinear(TK_BF16_ROWS, 4096, 6144, 0)).libraryRows(), 0);
  EXPECT_EQ(Plan(makeLinear(TK_U4M, 4096, 6144, 1)).libraryRows(), 0);
  EXPECT_EQ(Plan(makeLinear(TK_BF16_ROWS, 576, 960, 1)).libraryRows(), 0);
  for (int32_t format : {TK_BF16_ROWS, TK_F16_ROWS}) {
    int32_t rows = Plan(makeLinear(format, 4096, 4096, 1)).libraryRows();
    EXPECT_GT(rows, TK_MOST_FEW_ROWS);
    EXPECT_LT(rows, 512);
  }
}

// Without a library, too, a long prompt gets the tile that is the best for it.
TEST(Plan, LongPromptsHaveTheBestTile) {
  for (int32_t format : {TK_BF16_ROWS, TK_F16_ROWS, TK_U4M, TK_S8})
    for (auto [cols, outputs] : {std::pair{4096, 6144}, {4096, 4096}, {14336, 4096}, {576, 960}}) {
      Plan plan(makeLinear(format, cols, outputs, 1));
      const tk_launch *tile = plan.tile(2048);
      ASSERT_TRUE(tile);
      tk_work work = {format, tk_parts(format, 1), 2048, (outputs + 31) / 32, cols};
      tk_tile_choice best = tk_choose_tile(tk_h200(), work);
      EXPECT_EQ(tile->threads, 64 * best.pairs) << format << " " << cols << "x" << outputs;
      EXPECT_EQ(tile->rows_per_block, best.rows) << format << " " << cols << "x" << outputs;
    }
}

// A short prompt has few tiles: smaller ones keep more processors at work.
TEST(Plan, TilesFollowTheRows) {
  Plan plan(makeLinear(TK_U4M, 576, 1536, 1));
  const tk_launch *brief = plan.tile(100), *large = plan.tile(2000);
  ASSERT_TRUE(brief && large);
  EXPECT_LT(brief->threads, large->threads);
  EXPECT_GT(brief->columns, large->columns);
  tk_work work = {TK_U4M, 1, 100, 48, 576};
  EXPECT_LT(tk_tile_seconds(tk_h200(), work, brief->threads / 64, brief->rows_per_block),
            tk_tile_seconds(tk_h200(), work, large->threads / 64, large->rows_per_block));
}

TEST(Plan, SharesFillTheDevice) {
  tk_attention_shape s = {};
  s.heads = 32;
  s.kv_heads = 8;
  s.head_dim = 128;
  s.kv_dtype = TENON_BF16;
  s.decode = 1;
  s.keys = TK_KEYS_CONTEXT;
  s.context = 8192;
  EXPECT_EQ(tk_choose_splits(s, 1), 16); // 128 blocks
  s.heads = s.kv_heads = 1;
  EXPECT_EQ(tk_choose_splits(s, 1), 32); // one for each span
  s.context = 200;
  EXPECT_EQ(tk_choose_splits(s, 1), 1);
  s.heads = s.kv_heads = 64;
  s.context = 8192;
  EXPECT_LT(tk_choose_splits(s, 1), 8);
  s.decode = 0;
  EXPECT_EQ(tk_choose_splits(s, 1), 1);
}

} // namespace
