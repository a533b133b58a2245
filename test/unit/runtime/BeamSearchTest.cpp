// Beam search against all sequences there are, and against a second, literal reading of
// transformers' rules on fixed slots with scores of -1e9 for what is out.
#include "runtime/BeamSearch.h"

#include "runtime/Error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace tenon::rt;

namespace {

using Ids = std::vector<int32_t>;

// Log-probabilities behind a text: arbitrary, but the same each time.
std::vector<double> logProbabilities(const Ids &ids, int vocab, uint64_t seed) {
  uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
  for (int32_t id : ids)
    state = (state ^ uint64_t(id + 1)) * 0xbf58476d1ce4e5b9;
  std::vector<double> values(vocab);
  double mass = 0;
  for (double &value : values) {
    state = state * 6364136223846793005 + 1442695040888963407;
    value = double(state >> 40) / (1 << 24) * 4;
    mass += std::exp(value);
  }
  for (double &value : values)
    value -= std::log(mass);
  return values;
}

BeamSearch search(const BeamOptions &options, int vocab, int limit, const Ids &ending,
                  uint64_t seed, int *steps = nullptr) {
  auto isEnding = [&](const Ids &ids) {
    return std::find(ending.begin(), ending.end(), ids.back()) != ending.end();
  };
  BeamSearch search(options, vocab, limit, static_cast<int>(ending.size()), isEnding);
  for (; !search.running().empty(); search.advance()) {
    for (size_t beam = 0; beam < search.running().size(); ++beam) {
      std::vector<float> logits;
      for (double value : logProbabilities(search.running()[beam].ids, vocab, seed))
        logits.push_back(static_cast<float>(value + 7)); // a constant changes nothing
      search.score(static_cast<int>(beam), logits.data());
    }
    if (steps)
      ++*steps;
  }
  return search;
}

struct Slot {
  Ids ids;
  double score = -1e9;
  bool finished = false;
};

// The indices of the k largest.
std::vector<size_t> topK(const std::vector<Slot> &slots, size_t k) {
  std::vector<size_t> order(slots.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return slots[a].score != slots[b].score ? slots[a].score > slots[b].score : a < b;
  });
  order.resize(k);
  return order;
}

std::vector<Slot> transformers(const BeamOptions &options, int vocab, int limit, const Ids &ending,
                               uint64_t seed) {
  const size_t B = options.beams, keep = std::max<size_t>(2, 1 + ending.size()) * B;
  std::vector<Slot> running(B), finished(B);
  running[0].score = 0;
  for (int length = 1;; ++length) {
    std::vector<Slot> all, top;
    for (const Slot &beam : running) {
      std::vector<double> next = logProbabilities(beam.ids, vocab, seed);
      for (int32_t id = 0; id < vocab; ++id) {
        all.push_back({beam.ids, beam.score + next[id]});
        all.back().ids.push_back(id);
      }
    }
    bool allHit = true;
    for (size_t i : topK(all, keep)) {
      top.push_back(all[i]);
      int32_t id = all[i].ids.back();
      top.back().finished =
          length == limit || std::find(ending.begin(), ending.end(), id) != ending.end();
      allHit &= top.back().finished;
    }
    std::vector<Slot> open = top, merged = finished;
    for (Slot &slot : open)
      slot.score += slot.finished ? -1e9 : 0;
    for (size_t i = 0; i < B; ++i)
      running[i] = open[topK(open, B)[i]];
    for (size_t i = 0; i < top.size(); ++i) {
      merged.push_back(top[i]);
      merged.back().finished &= i < B;
      merged.back().score /= std::pow(length, options.lengthPenalty);
      merged.back().score += merged.back().finished ? 0 : -1e9;
    }
    finished.clear();
    for (size_t i : topK(merged, B))
      finished.push_back(merged[i]);
    const bool full = std::all_of(finished.begin(), finished.end(),
                                  [](const Slot &slot) { return slot.finished; });
    const bool hopeful = options.earlyStopping == EarlyStopping::Never && options.lengthPenalty > 0;
    const double best =
        running[0].score / std::pow(hopeful ? limit : length, options.lengthPenalty);
    const bool improvable = best > (full ? finished.back().score : -1e9);
    if (allHit || !improvable || (full && options.earlyStopping == EarlyStopping::Yes))
      return finished;
  }
}

} // namespace

TEST(BeamSearch, EnoughBeamsFindTheBestOfAllSequences) {
  const int vocab = 8, limit = 3;
  BeamOptions options;
  options.beams = 64;
  const BeamSearch found = search(options, vocab, limit, {}, 5);
  std::vector<std::pair<double, Ids>> all;
  for (int i = 0; i < 512; ++i) {
    const Ids ids = {i / 64, i / 8 % 8, i % 8};
    double sum = 0;
    for (int t = 0; t < limit; ++t)
      sum += logProbabilities({ids.begin(), ids.begin() + t}, vocab, 5)[ids[t]];
    all.push_back({-sum, ids});
  }
  std::sort(all.begin(), all.end());
  ASSERT_EQ(found.finished().size(), 64u);
  for (int i = 0; i < 64; ++i) {
    const Beam &beam = found.finished()[i];
    EXPECT_EQ(beam.ids, all[i].second) << i;
    EXPECT_NEAR(beam.sum, -all[i].first, 1e-5);
    EXPECT_NEAR(beam.score, beam.sum / 3, 1e-12);
    EXPECT_NEAR(std::accumulate(beam.logprobs.begin(), beam.logprobs.end(), 0.0), beam.sum, 1e-9);
  }
}

TEST(BeamSearch, FollowsTransformers) {
  int shorter = 0;
  for (int beams : {2, 3, 5})
    for (const Ids &ending : {Ids{}, {3}, {3, 7, 11}})
      for (double penalty : {1.0, 0.0, 2.0, -0.5})
        for (EarlyStopping stopping : {EarlyStopping::No, EarlyStopping::Yes, EarlyStopping::Never})
          for (uint64_t seed = 0; seed < 6; ++seed) {
            const BeamOptions options = {beams, penalty, stopping};
            SCOPED_TRACE(testing::Message()
                         << beams << " beams, " << ending.size() << " ending ids, penalty "
                         << penalty << ", stopping " << int(stopping) << ", seed " << seed);
            const BeamSearch found = search(options, 24, 9, ending, seed);
            const std::vector<Slot> want = transformers(options, 24, 9, ending, seed);
            ASSERT_EQ(found.finished().size(), want.size());
            for (size_t i = 0; i < want.size(); ++i) {
              ASSERT_EQ(found.finished()[i].ids, want[i].ids) << i;
              ASSERT_NEAR(found.finished()[i].score, want[i].score, 1e-5);
              shorter += want[i].ids.size() < 9;
            }
          }
  EXPECT_GT(shorter, 100) << "too few texts ended early for this to be a test";
}

TEST(BeamSearch, EarlyStoppingSavesSteps) {
  std::vector<int> steps;
  for (EarlyStopping stopping : {EarlyStopping::Yes, EarlyStopping::No, EarlyStopping::Never}) {
    int count = 0;
    for (uint64_t seed = 0; seed < 20; ++seed)
      search({3, 1, stopping}, 24, 30, {3, 7}, seed, &count);
    steps.push_back(count);
  }
  EXPECT_LT(steps[0], steps[1]);
  EXPECT_LT(steps[1], steps[2]);
}

TEST(BeamSearch, LimitsAndBadLogits) {
  EXPECT_TRUE(search({3, 1, {}}, 24, 0, {}, 1).finished().empty());
  EXPECT_EQ(search({3, 1, {}}, 24, 1, {}, 1).finished().size(), 3u);
  BeamSearch search({2, 1, {}}, 4, 2, 0, [](const Ids &) { return false; });
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float logits[] = {nan, nan, nan, nan};
  search.score(0, logits);
  search.advance();
  EXPECT_TRUE(search.running().empty());
  EXPECT_TRUE(search.finished().empty());
}

TEST(BeamSearch, RefusesMeaninglessOptions) {
  EXPECT_NO_THROW(checkBeams({4, 1, {}}, 8, 0));
  EXPECT_THROW(checkBeams({5, 1, {}}, 8, 0), Error);
  EXPECT_THROW(checkBeams({4, 1, {}}, 8, 2), Error);
  EXPECT_THROW(checkBeams({0, 1, {}}, 8, 0), Error);
  EXPECT_THROW(checkBeams({maxBeams + 1, 1, {}}, 100000, 0), Error);
  EXPECT_THROW(checkBeams({2, std::nan(""), {}}, 8, 0), Error);
}
