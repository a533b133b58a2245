// Beams on the engine: each is answered as if its text had been fed alone, and they share the
// blocks of their past.
#include "runtime/GenerateBeams.h"

#include "Toy.h"
#include "runtime/Compiled.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace tenon::rt;

namespace {
class GenerateBeams : public testing::TestWithParam<int> {
protected:
  static std::string path() {
    const std::string path = toy::scratchFolder() + "/beams";
    toy::writeFile(path, toy::append("", toy::sections(R"("generation": {"eos": [5, 77]})")));
    return path;
  }
  static std::vector<int32_t> prompt(int length) {
    std::vector<int32_t> ids(length);
    std::iota(ids.begin(), ids.end(), 3);
    return ids;
  }

  // The same search without a cache.
  static BeamSearch plain(std::vector<int32_t> prompt, const BeamOptions &options, int limit) {
    BeamSearch search(options, toy::vocab, limit, 2, [](const std::vector<int32_t> &ids) {
      return ids.back() == 5 || ids.back() == 77;
    });
    for (; !search.running().empty(); search.advance())
      for (size_t i = 0; i < search.running().size(); ++i) {
        std::vector<int32_t> text = prompt;
        const std::vector<int32_t> &ids = search.running()[i].ids;
        text.insert(text.end(), ids.begin(), ids.end());
        std::vector<float> logits(toy::vocab);
        for (int v = 0; v < toy::vocab; ++v)
          logits[v] = -0.25f * static_cast<float>(std::abs(v - toy::next(text)));
        search.score(static_cast<int>(i), logits.data());
      }
    return search;
  }

  Program program{tenonCompiled, path(), "beams"};
};
} // namespace

TEST_P(GenerateBeams, EachAsIfAlone) {
  // Prompts that end within a block and at its border; texts that cross borders.
  for (int length : {1, 15, 16, 31, 90})
    for (BeamOptions options : {BeamOptions{2, 1, {}}, {5, 0, EarlyStopping::Yes}, {4, 2, {}}}) {
      SCOPED_TRACE(testing::Message() << length << " tokens, " << options.beams << " beams");
      const int limit = 37;
      EngineOptions engineOptions;
      engineOptions.threads = GetParam();
      engineOptions.cacheBlocks = beamBlocks(length, limit, options.beams);
      Engine engine(tenonCompiled, program.artefact(), engineOptions);
      GenerateOptions generateOptions;
      generateOptions.maxTokens = limit;
      const BeamGeneration got =
          generateBeams(program, engine, prompt(length), generateOptions, options);
      const BeamSearch want = plain(prompt(length), options, limit);
      ASSERT_EQ(got.beams.size(), want.finished().size());
      for (size_t i = 0; i < got.beams.size(); ++i) {
        EXPECT_EQ(got.beams[i].result.ids, want.finished()[i].ids);
        EXPECT_EQ(got.beams[i].score, want.finished()[i].score);
      }
      EXPECT_EQ(engine.pool().freeBlocks(), engine.pool().blocks());
    }
}

TEST_P(GenerateBeams, ShareTheirPrompt) {
  EngineOptions engineOptions;
  engineOptions.threads = GetParam();
  engineOptions.cacheBlocks = beamBlocks(100, 5, 8);
  ASSERT_LT(engineOptions.cacheBlocks, 8 * KvPool::blocksFor(100)) << "no test of sharing";
  Engine engine(tenonCompiled, program.artefact(), engineOptions);
  GenerateOptions options;
  options.maxTokens = 5;
  EXPECT_EQ(generateBeams(program, engine, prompt(100), options, {8, 1, {}}).beams.size(), 8u);
  EXPECT_EQ(engine.pool().freeBlocks(), engine.pool().blocks());
}

INSTANTIATE_TEST_SUITE_P(Threads, GenerateBeams, testing::Values(1, 3));
