// Differences in operations.
#include "test/unit/view/Support.h"
#include "tools/diff/ModuleDiff.h"
#include "tools/diff/UnitDiff.h"
#include "llvm/Support/raw_ostream.h"

using namespace tenon;
using testing::ElementsAre;
using testing::Pair;

namespace {

class DiffTest : public ViewTest {
protected:
  std::string compare(const std::string &before, const std::string &after) {
    auto a = parse(before), b = parse(after);
    std::string text;
    llvm::raw_string_ostream out(text);
    llvm::Expected<bool> differs = diff::compareModules(*a, *b, out);
    EXPECT_TRUE(bool(differs));
    EXPECT_EQ(*differs, !text.empty());
    return text;
  }

  static std::string replace(std::string text, const std::string &from, const std::string &to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
    return text;
  }
};

TEST_F(DiffTest, equalModulesDoNotDiffer) {
  EXPECT_EQ(compare(makeModel(3), makeModel(3)), "");
  // Names of values and tensors don't count.
  EXPECT_EQ(compare(makeModel(3), replace(makeModel(3), "layers.", "blocks.")), "");
}

TEST_F(DiffTest, layersAreToldOnce) {
  EXPECT_EQ(compare(makeModel(3), replace(makeModel(3), "1.0e-5", "2.0e-5")),
            "@main\n"
            "  in each of 3 layers:\n"
            "    ~ llm.rms_norm: eps 1e-05 → 2e-05\n");
}

TEST_F(DiffTest, removedLayers) {
  EXPECT_EQ(compare(makeModel(4), makeModel(2)),
            "@main\n"
            "  in each of 2 layers:\n"
            "    - llm.rms_norm\n"
            "    - llm.linear\n"
            "    - llm.add\n"
            "  operations                          before   after\n"
            "    llm.add                                4       2\n"
            "    llm.linear                             5       3\n"
            "    llm.rms_norm                           4       2\n"
            "    total                                 14       8\n");
}

TEST_F(DiffTest, otherWiring) {
  EXPECT_EQ(compare(makeModel(1), replace(makeModel(1), "llm.linear %y0", "llm.linear %x0")),
            "@main\n  ~ the same operations, connected differently\n");
}

TEST_F(DiffTest, weightsByTheirTensors) {
  std::string after = replace(makeModel(1), "4x4xf32", "4x4xbf16");
  EXPECT_EQ(compare(makeModel(1), after),
            "@main\n  ~ llm.linear: weight up_proj 4×4 f32 → 4×4 bf16\n");
}

TEST_F(DiffTest, functionsThatComeAndGo) {
  std::string twice =
      replace(makeModel(1), "@main", "@prefill") + replace(makeModel(1), "@main", "@decode");
  EXPECT_EQ(compare(makeModel(1), twice), "@main → @prefill\n@main → @decode\n");
  EXPECT_EQ(compare(twice, replace(makeModel(1), "@main", "@decode")), "- @prefill\n");
}

TEST_F(DiffTest, alignsByWhatUnitsHaveInCommon) {
  auto a = parse(makeModel(2)), b = parse(makeModel(3));
  EXPECT_THAT(diff::alignUnits(makeGraph(*a), makeGraph(*b)),
              ElementsAre(Pair(0, 0), Pair(1, 1), Pair(2, 2), Pair(-1, 3), Pair(3, 4)));
}

} // namespace
