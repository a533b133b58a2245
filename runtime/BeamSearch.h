// Beam search: which continuations are kept, step by step. Knows logits and ids; the model, its
// cache and the text are the caller's (GenerateBeams).
//
//              score                        ┌─ ended, among the first B ─▶ finished: the B best
//   running ───logits──▶ candidates, best ──┤                              by sum / length^penalty
//   up to B              first              └─ the first B that go on ───▶ running
//      ▲                                                                      │
//      └──────────────────────────────────────────────────────────────────────┘
//
// Candidates are the max(2, 1 + ending ids) * B likeliest by the sum of their log-probabilities, so
// that B are left to go on even if every ending id is among them. The rules, to the choice of which
// ended beams count and of when to give up, are those of transformers 4.57, whose results the tests
// compare with.
#ifndef TENON_RUNTIME_BEAMSEARCH_H
#define TENON_RUNTIME_BEAMSEARCH_H

#include <cstdint>
#include <functional>
#include <vector>

namespace tenon::rt {

// When B beams are finished and others still run:
enum class EarlyStopping {
  No,    // end once the best running beam, taken as it is now, is no better than the worst finished
  Yes,   // end at once
  Never, // as No, but a penalty above 0 takes the running beam as if it were of full length
};

struct BeamOptions {
  int beams = 1;
  double lengthPenalty = 1; // above 0 favours long texts, below 0 short ones
  EarlyStopping earlyStopping = EarlyStopping::No;
};

inline constexpr int maxBeams = 256;

// Refuses options that have no meaning, and more beams than a vocabulary has candidates for.
void checkBeams(const BeamOptions &options, int vocab, int endingIds);

struct Beam {
  std::vector<int32_t> ids;     // generated, an ending id too
  std::vector<double> logprobs; // of each
  double sum = 0;               // of them
  int parent = 0;   // running: which beam of the step before it continues, cache and all
  double score = 0; // finished: sum / length^penalty
};

class BeamSearch {
public:
  // Whether a text ends with these ids, whose last is new.
  using Ends = std::function<bool(const std::vector<int32_t> &ids)>;

  // `limit`: ids in the longest beam; every beam ends there. `endingIds`: how many ids may end one.
  BeamSearch(const BeamOptions &options, int vocab, int limit, int endingIds, Ends ends);

  // What is to be continued, best first: a single beam without ids at first. Empty when done.
  const std::vector<Beam> &running() const { return runningBeams; }
  // Best first. At the end there are B, unless the limit is 0.
  const std::vector<Beam> &finished() const { return finishedBeams; }

  // The logits behind running()[beam], [vocab].
  void score(int beam, const float *logits);
  // After every running beam was scored.
  void advance();

private:
  struct Candidate {
    double sum;
    int beam;
    int32_t id;
  };
  static bool isBetter(const Candidate &a, const Candidate &b);
  Beam extend(const Candidate &candidate) const;
  void finish(Beam beam);
  bool canImprove() const;
  double penalised(double sum, size_t length) const;

  const BeamOptions options;
  const int vocab;
  const size_t limit, candidateCount;
  const Ends ends;
  std::vector<Beam> runningBeams, finishedBeams;
  std::vector<Candidate> candidates; // a heap, the worst on top
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_BEAMSEARCH_H
