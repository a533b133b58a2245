// The conformance table: a row for each model, backend and precision, a column for each
// computation.
//
//   largest error        backend   precision     logits   hidden   cached    batch   greedy
//   llama                cpu       f32          1.2e-06  8.1e-07  1.4e-06  9.8e-07    16/16
#ifndef TENON_TEST_CONFORMANCE_TABLE_H
#define TENON_TEST_CONFORMANCE_TABLE_H

#include "Support.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace conformance {

class Table {
public:
  // Measured against what is allowed; a cell of two measurements shows the larger. Returns whether
  // it is within bounds.
  bool add(const std::string &row, const std::string &column, double error, double allowed);
  // Equal elements of `expected`, in order from the first.
  bool addIds(const std::string &row, const std::string &column, const std::vector<int64_t> &ids,
              const std::vector<int64_t> &expected);

  // Prints all rows and forgets them. Cells out of bounds have a "!" behind them.
  void print();

private:
  struct Cell {
    std::string text;
    double error;
    bool passes;
  };
  std::vector<std::string> rows; // in the order they came
  std::map<std::pair<std::string, std::string>, Cell> cells;
};

inline const double tolerance = 2e-4; // f32; see the oracle's README

// A test of one model of the oracle, whose measurements become cells.
class ModelTest : public testing::TestWithParam<std::string> {
protected:
  static Table &table();
  static void TearDownTestSuite() { table().print(); }

  void SetUp() override { golden = goldenOf(GetParam()); }

  void check(const std::string &column, double error, double allowed = tolerance) {
    EXPECT_TRUE(table().add(row, column, error, allowed))
        << column << ": error " << error << ", allowed " << allowed;
  }
  // What weights, activations and cache in bf16 gave: as far from f32 as transformers' own bf16
  // run. Of a model with experts only the median row is looked at.
  void checkBf16(const std::string &column, const std::vector<double> &logits,
                 const Tensor &wanted);
  // Of 8-bit weights and activations, in units of the golden logits' deviation: 5 %, or what a
  // model as sensitive as transformers' own bf16 run shows it to be makes of them.
  double getInt8Bound() const;
  // Generates as many ids as there are.
  void checkGreedy(const std::string &executable, const std::vector<int64_t> &expected);

  Tensors golden;
  std::string row;
};

std::string nameOf(const testing::TestParamInfo<std::string> &info);

} // namespace conformance

#endif // TENON_TEST_CONFORMANCE_TABLE_H
