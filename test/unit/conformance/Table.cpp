#include "Table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace conformance {

static const char *const columns[] = {"import", "logits", "hidden", "cached",
                                      "batch",  "greedy", "beams",  "long"};

bool Table::add(const std::string &row, const std::string &column, double error, double allowed) {
  if (std::find(rows.begin(), rows.end(), row) == rows.end())
    rows.push_back(row);
  char text[16];
  std::snprintf(text, sizeof text, "%.1e", error);
  const bool passes = error <= allowed;
  const auto [entry, isNew] = cells.try_emplace({row, column}, Cell{text, error, passes});
  if (!isNew && !(error <= entry->second.error))
    entry->second = {text, error, passes};
  return passes;
}

bool Table::addIds(const std::string &row, const std::string &column,
                   const std::vector<int64_t> &ids, const std::vector<int64_t> &expected) {
  const auto same = std::mismatch(expected.begin(), expected.end(), ids.begin(), ids.end()).first -
                    expected.begin();
  const bool passes = ids == expected;
  add(row, column, passes ? 0 : INFINITY, 0);
  cells[{row, column}].text = std::to_string(same) + "/" + std::to_string(expected.size());
  return passes;
}

void Table::print() {
  if (rows.empty())
    return;
  std::printf("%-40s", "largest error");
  for (const char *column : columns)
    std::printf(" %8s", column);
  std::printf("\n");
  for (const std::string &row : rows) {
    std::printf("%-40s", row.c_str());
    for (const char *column : columns) {
      const auto cell = cells.find({row, column});
      const bool exists = cell != cells.end();
      std::printf(" %8s%s", exists ? cell->second.text.c_str() : "-",
                  exists && !cell->second.passes ? "!" : "");
    }
    std::printf("\n");
  }
  rows.clear();
  cells.clear();
}

Table &ModelTest::table() {
  static Table table;
  return table;
}

void ModelTest::checkBf16(const std::string &column, const std::vector<double> &logits,
                          const Tensor &wanted) {
  const nlohmann::json json = readJson(folderOf(GetParam()) + "/golden.json");
  const double rms = json["bf16_rms_diff"], largest = json["bf16_maxdiff"];
  const Difference error = compare(logits, wanted.values);
  const bool chooses = choosesExperts(GetParam());
  check(column, chooses ? medianRowError(logits, wanted.values, wanted.shape[0]) : error.rms,
        2 * rms);
  if (!chooses) {
    EXPECT_LE(error.max, std::max(6 * rms, 1.5 * largest));
  }
  EXPECT_GT(error.rms, 1e-4) << "this was computed in f32";
}

double ModelTest::getInt8Bound() const {
  const double bf16 = readJson(folderOf(GetParam()) + "/golden.json")["bf16_rms_diff"];
  return std::max(0.05, 3 * bf16 / deviation(golden.at("logits").values));
}

void ModelTest::checkGreedy(const std::string &executable, const std::vector<int64_t> &expected) {
  const std::vector<int64_t> ids =
      generate(executable, golden["input_ids"].integers(), expected.size());
  EXPECT_TRUE(table().addIds(row, "greedy", ids, expected)) << join(ids);
}

std::string nameOf(const testing::TestParamInfo<std::string> &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

} // namespace conformance
