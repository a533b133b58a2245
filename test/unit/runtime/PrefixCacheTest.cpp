// Beginnings of prompts that are known are not computed again, and the answers are those of an
// engine that knows nothing.
#include "runtime/PrefixCache.h"

#include "Toy.h"
#include "runtime/Compiled.h"
#include "runtime/Generate.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace tenon::rt;

namespace {
class PrefixCacheTest : public testing::Test {
protected:
  static std::string path() {
    const std::string path = toy::scratchFolder() + "/prefixes";
    toy::writeFile(path, toy::append("", toy::sections()));
    return path;
  }
  static EngineOptions options(int64_t blocks) {
    EngineOptions options;
    options.threads = 2;
    options.cacheBlocks = blocks;
    return options;
  }
  static std::vector<int32_t> ramp(int length, int first = 3) {
    std::vector<int32_t> ids(length);
    std::iota(ids.begin(), ids.end(), first);
    return ids;
  }
  std::vector<int32_t> answer(const std::vector<int32_t> &prompt, int tokens = 9) {
    GenerateOptions generateOptions;
    generateOptions.maxTokens = tokens;
    return generate(
               program, engine, prompt, generateOptions,
               [](int32_t, std::string_view) { return true; }, &prefixes)
        .ids;
  }

  Program program{tenonCompiled, path(), "prefixes"};
  Engine engine{tenonCompiled, program.artefact(), options(24)};
  PrefixCache prefixes{engine};
};
} // namespace

TEST_F(PrefixCacheTest, HitsAnswerTheSame) {
  for (const std::vector<int32_t> &prompt :
       {ramp(40), ramp(40), ramp(90), ramp(35), ramp(33), ramp(34, 4), ramp(5), ramp(90)})
    for (int again = 0; again < 2; ++again)
      EXPECT_EQ(answer(prompt), toy::greedy(prompt, 9)) << prompt.size() << " tokens";
}

TEST_F(PrefixCacheTest, OnlyWholeBlocksOfEqualTokens) {
  EXPECT_EQ(prefixes.begin(ramp(40)).length(), 0);
  answer(ramp(40));
  EXPECT_EQ(prefixes.begin(ramp(40)).length(), 32);
  EXPECT_EQ(prefixes.begin(ramp(100)).length(), 32);
  EXPECT_EQ(prefixes.begin(ramp(34)).length(), 32);
  EXPECT_EQ(prefixes.begin(ramp(33)).length(), 16); // two tokens are left to compute
  EXPECT_EQ(prefixes.begin(ramp(32)).length(), 16);
  EXPECT_EQ(prefixes.begin({}).length(), 0);
  std::vector<int32_t> other = ramp(40);
  other[20] = 0;
  EXPECT_EQ(prefixes.begin(other).length(), 16);
  other[0] = 0;
  EXPECT_EQ(prefixes.begin(other).length(), 0);
  // What was generated is not kept: it was decoded.
  std::vector<int32_t> longer = ramp(40);
  for (int32_t id : toy::greedy(longer, 9))
    longer.push_back(id);
  EXPECT_EQ(prefixes.begin(longer).length(), 32);
}

TEST_F(PrefixCacheTest, BlocksAreShared) {
  answer(ramp(100));
  EXPECT_EQ(engine.pool().freeBlocks(), 24 - 6); // 96 positions
  KvSequence a = prefixes.begin(ramp(100)), b = prefixes.begin(ramp(70));
  EXPECT_EQ(engine.pool().freeBlocks(), 24 - 6);
  EXPECT_EQ(engine.pool().owners(a.blocks()[0]), 3);
  EXPECT_EQ(b.length(), 64);
}

TEST_F(PrefixCacheTest, MakesRoom) {
  answer(ramp(100));
  answer(ramp(100, 50));
  answer(ramp(100, 100));                            // each keeps 6 blocks and needs 7
  EXPECT_EQ(prefixes.begin(ramp(100)).length(), 96); // used last from now on
  answer(ramp(100, 150));
  answer(ramp(100, 200));
  EXPECT_EQ(prefixes.begin(ramp(100, 50)).length(), 0);
  EXPECT_EQ(prefixes.begin(ramp(100)).length(), 96);
  prefixes.makeRoom(24);
  EXPECT_EQ(engine.pool().freeBlocks(), 24);
}

TEST_F(PrefixCacheTest, LongerPromptsReplaceTheirBeginnings) {
  answer(ramp(40));
  answer(ramp(60));
  answer(ramp(50));
  EXPECT_EQ(engine.pool().freeBlocks(), 24 - 3);
  EXPECT_EQ(prefixes.begin(ramp(60)).length(), 48);
}
