// Ragged batches against the toy model: whatever is batched, cut into waves or forked, each
// sequence is answered as if it were alone.
#include "runtime/Engine.h"
#include "runtime/CpuExecutor.h"

#include "Toy.h"
#include "runtime/Compiled.h"
#include "runtime/Error.h"
#include "runtime/RowMath.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

using namespace tenon::rt;

namespace {
class EngineTest : public testing::TestWithParam<int> {
protected:
  static Artefact artefact() {
    const std::string path = toy::scratchFolder() + "/engine";
    toy::writeFile(path, toy::append("", toy::sections()));
    return Artefact::open(path, path, tenonCompiled);
  }
  EngineOptions options(int64_t sequences = 4) {
    EngineOptions options;
    options.threads = GetParam();
    options.cacheBlocks = sequences * KvPool::blocksFor(toy::context);
    return options;
  }

  // The next tokens that a step answers, by (work, token).
  static std::map<std::pair<int, int>, int> step(Engine &engine, const std::vector<Work> &works) {
    std::map<std::pair<int, int>, int> answers;
    engine.step(works, [&](const Row &row) {
      EXPECT_TRUE(
          answers.emplace(std::pair(row.work, row.token), argmax(row.logits, toy::vocab)).second);
      EXPECT_EQ(row.hiddens.size(), 3u);
      EXPECT_EQ(row.hiddens[1][0], works[row.work].ids[row.token]);
      EXPECT_EQ(row.hiddens[2][2], 2);
    });
    return answers;
  }

  static std::vector<int32_t> ramp(int count, int seed) {
    std::vector<int32_t> ids(count);
    for (int i = 0; i < count; ++i)
      ids[i] = (i * 13 + seed * 7 + i * i) % toy::vocab;
    return ids;
  }
  static int expected(const std::vector<int32_t> &ids, size_t count) {
    return toy::next({ids.begin(), ids.begin() + static_cast<ptrdiff_t>(count)});
  }

  Artefact file = artefact();
};
} // namespace

TEST_P(EngineTest, ChoosesTheVariantThatRuns) {
  Engine engine(tenonCompiled, file, options());
  EXPECT_EQ(engine.machine().name(), "toy");
  EXPECT_EQ(engine.machine().threads(), GetParam());
}

TEST_P(EngineTest, PrefillThenDecode) {
  Engine engine(tenonCompiled, file, options());
  std::vector<int32_t> ids = ramp(37, 1);
  KvSequence sequence(engine.pool());
  EXPECT_EQ(step(engine, {{&sequence, ids.data(), 37, Score::Last}}).at({0, 36}),
            expected(ids, 37));
  for (int i = 0; i < 20; ++i) {
    ids.push_back(toy::next(ids));
    EXPECT_EQ(step(engine, {{&sequence, &ids.back(), 1, Score::Last}}).at({0, 0}), toy::next(ids));
  }
}

TEST_P(EngineTest, RaggedBatchAnswersEachSequenceAsIfAlone) {
  Engine engine(tenonCompiled, file, options());
  std::vector<std::vector<int32_t>> prompts = {ramp(5, 1), ramp(90, 2), ramp(1, 3), ramp(33, 4)};
  std::vector<KvSequence> sequences;
  std::vector<Work> works;
  for (int i = 0; i < 4; ++i)
    sequences.emplace_back(engine.pool());
  const Score scores[] = {Score::All, Score::All, Score::Last, Score::None};
  for (int i = 0; i < 4; ++i)
    works.push_back(
        {&sequences[i], prompts[i].data(), static_cast<int>(prompts[i].size()), scores[i]});
  auto answers = step(engine, works);
  EXPECT_EQ(answers.size(), 5u + 90 + 1);
  for (int i = 0; i < 2; ++i)
    for (int t = 0; t < static_cast<int>(prompts[i].size()); ++t)
      EXPECT_EQ(answers.at({i, t}), expected(prompts[i], t + 1)) << i << ", " << t;
  EXPECT_EQ(answers.at({2, 0}), expected(prompts[2], 1));

  // All decode together, at different depths.
  std::vector<int32_t> next(4);
  works.clear();
  for (int i = 0; i < 4; ++i) {
    next[i] = toy::next(prompts[i]);
    prompts[i].push_back(next[i]);
    works.push_back({&sequences[i], &next[i], 1, Score::Last});
  }
  answers = step(engine, works);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(answers.at({i, 0}), toy::next(prompts[i]));
}

// What is cached is spoilt where it must not be read any more.
TEST_P(EngineTest, ComputesAnewWhatOutgrowsItsCache) {
  tenon_compiled compiled = tenonCompiled;
  compiled.recompute_beyond = 40;
  Engine engine(compiled, file, options());
  auto spoil = [&](const KvSequence &sequence) {
    for (int64_t layer = 0; layer < toy::layers; ++layer)
      for (int32_t block : sequence.blocks())
        for (int64_t half : {0, 1}) // one head, whose keys are as wide as its values
          std::memset(engine.pool().base() + ((2 * layer + half) * engine.pool().blocks() + block) *
                                                 compiled.cache.key_bytes,
                      0x41, compiled.cache.key_bytes);
  };
  std::vector<int32_t> crossing = ramp(41, 1), shorter = ramp(11, 2), many = ramp(50, 3);
  KvSequence a(engine.pool()), b(engine.pool()), c(engine.pool());
  step(engine, {{&a, crossing.data(), 39, Score::Last},
                {&b, shorter.data(), 10, Score::Last},
                {&c, many.data(), 30, Score::None}});
  EXPECT_EQ(step(engine, {{&a, &crossing[39], 1, Score::Last}}).at({0, 0}), expected(crossing, 40));
  spoil(a);
  auto answers =
      step(engine, {{&b, &shorter[10], 1, Score::Last}, {&a, &crossing[40], 1, Score::Last}});
  EXPECT_EQ(answers.at({0, 0}), expected(shorter, 11));
  EXPECT_EQ(answers.at({1, 0}), expected(crossing, 41));
  EXPECT_EQ(a.length(), 41);

  spoil(c);
  answers = step(engine, {{&c, &many[30], 20, Score::All}});
  EXPECT_EQ(answers.size(), 20u);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(answers.at({0, i}), expected(many, 31 + i));
}

TEST_P(EngineTest, ManySequencesSplitIntoWaves) {
  // 12 x 100 tokens: more than a wave holds; the cuts fall inside prompts.
  Engine engine(tenonCompiled, file, options(12));
  std::vector<std::vector<int32_t>> prompts;
  std::vector<KvSequence> sequences;
  std::vector<Work> works;
  for (int i = 0; i < 12; ++i) {
    prompts.push_back(ramp(100, i));
    sequences.emplace_back(engine.pool());
  }
  for (int i = 0; i < 12; ++i)
    works.push_back({&sequences[i], prompts[i].data(), 100, Score::Last});
  auto answers = step(engine, works);
  EXPECT_EQ(answers.size(), 12u);
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(answers.at({i, 99}), expected(prompts[i], 100));
}

TEST_P(EngineTest, MoreScoredRowsThanAWaveHolds) {
  Engine engine(tenonCompiled, file, options(70));
  std::vector<std::vector<int32_t>> prompts;
  std::vector<KvSequence> sequences;
  std::vector<Work> works;
  for (int i = 0; i < 70; ++i) {
    prompts.push_back(ramp(2, i));
    sequences.emplace_back(engine.pool());
  }
  for (int i = 0; i < 70; ++i)
    works.push_back({&sequences[i], prompts[i].data(), 2, Score::Last});
  auto answers = step(engine, works);
  ASSERT_EQ(answers.size(), 70u);
  for (int i = 0; i < 70; ++i)
    EXPECT_EQ(answers.at({i, 1}), expected(prompts[i], 2));
}

TEST_P(EngineTest, ForksGoTheirOwnWays) {
  Engine engine(tenonCompiled, file, options());
  std::vector<int32_t> ids = ramp(21, 5);
  KvSequence parent(engine.pool());
  step(engine, {{&parent, ids.data(), 21, Score::None}});
  KvSequence child = parent.fork();
  std::vector<int32_t> left = ids, right = ids;
  for (int i = 0; i < 30; ++i) {
    left.push_back((i * 3) % toy::vocab);
    right.push_back((i * 5 + 1) % toy::vocab);
    auto answers = step(
        engine, {{&parent, &left.back(), 1, Score::Last}, {&child, &right.back(), 1, Score::Last}});
    EXPECT_EQ(answers.at({0, 0}), toy::next(left));
    EXPECT_EQ(answers.at({1, 0}), toy::next(right));
  }
}

TEST_P(EngineTest, BadWorkIsRefusedBeforeAnythingRuns) {
  Engine engine(tenonCompiled, file, options());
  KvSequence sequence(engine.pool());
  auto refuses = [&](std::vector<int32_t> ids) {
    EXPECT_THROW(step(engine, {{&sequence, ids.data(), static_cast<int>(ids.size()), Score::Last}}),
                 Error);
    EXPECT_EQ(sequence.length(), 0);
  };
  refuses({1, -1});
  refuses({toy::vocab});
  refuses(std::vector<int32_t>(toy::context + 1, 1));
  std::vector<int32_t> full(toy::context, 1);
  EXPECT_EQ(step(engine, {{&sequence, full.data(), toy::context, Score::Last}}).size(), 1u);
  EXPECT_THROW(step(engine, {{&sequence, full.data(), 1, Score::Last}}), Error);
  EXPECT_TRUE(step(engine, {}).empty());
}

TEST_P(EngineTest, ExhaustedPoolLeavesTheBatchAsItWas) {
  EngineOptions small = options();
  small.cacheBlocks = 3;
  Engine engine(tenonCompiled, file, small);
  KvSequence first(engine.pool()), second(engine.pool());
  std::vector<int32_t> ids = ramp(32, 1);
  EXPECT_THROW(
      step(engine, {{&first, ids.data(), 32, Score::Last}, {&second, ids.data(), 32, Score::Last}}),
      KvExhausted);
  EXPECT_EQ(first.length(), 0);
  EXPECT_EQ(engine.pool().freeBlocks(), 3);
  EXPECT_EQ(step(engine, {{&first, ids.data(), 32, Score::Last}}).at({0, 31}), expected(ids, 32));
}

INSTANTIATE_TEST_SUITE_P(Threads, EngineTest, testing::Values(1, 2, 3));

TEST(Engine, ACpuWithoutAnyVariantIsToldWhatLacks) {
  tenon_compiled foreign = tenonCompiled;
  foreign.variant_count = 1; // the one that needs avx9000
  try {
    chooseVariant(foreign);
    ADD_FAILURE() << "accepted";
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitMachine);
    EXPECT_NE(std::string(error.what()).find("future needs avx9000"), std::string::npos);
  }
}

// A CPU with AMX, under an operating system that may refuse its registers.
class TileMachine : public Machine {
public:
  explicit TileMachine(bool grants) : grants(grants) {}
  bool has(std::string_view feature) const override { return feature != "avx9000"; }
  bool grantsTiles() const override { return ++asked, grants; }

  mutable int asked = 0;

private:
  bool grants;
};

TEST(Engine, TilesAreAskedForWhenTheyAreNextAndRefusalFallsBack) {
  tenon_variant variants[] = {{"future", "amx_tile,amx_int8,avx9000", nullptr, nullptr, 0, nullptr},
                              {"tiles", "avx512f,amx_tile,amx_int8", nullptr, nullptr, 0, nullptr},
                              {"plain", "avx512f", nullptr, nullptr, 0, nullptr}};
  tenon_compiled tiled = tenonCompiled;
  tiled.variants = variants;
  tiled.variant_count = 3;
  TileMachine granting(true), refusing(false);
  EXPECT_STREQ(chooseVariant(tiled, granting).name, "tiles");
  EXPECT_EQ(granting.asked, 1); // not for the variant that lacks something else
  EXPECT_STREQ(chooseVariant(tiled, refusing).name, "plain");

  tiled.variant_count = 2;
  try {
    chooseVariant(tiled, refusing);
    ADD_FAILURE() << "accepted";
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), ExitMachine);
    EXPECT_STREQ(error.what(),
                 "this CPU runs none of the compiled variants: future needs avx9000, tiles needs "
                 "amx_tile, which the operating system refuses; compile with --mcpu for this "
                 "machine");
  }

  tiled.variants = variants + 2;
  tiled.variant_count = 1;
  TileMachine unasked(true);
  chooseVariant(tiled, unasked);
  EXPECT_EQ(unasked.asked, 0);
}

TEST(Engine, MaxThreadsOfTheProgramIsKept) {
  const std::string path = toy::scratchFolder() + "/single";
  toy::writeFile(path, toy::append("", toy::sections()));
  tenon_compiled single = tenonCompiled;
  single.max_threads = 1;
  Artefact artefact = Artefact::open(path, path, single);
  EngineOptions options;
  options.threads = 4;
  EXPECT_EQ(Engine(single, artefact, options).machine().threads(), 1);
}
