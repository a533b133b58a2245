#include "runtime/BeamSearch.h"

#include "runtime/Error.h"
#include "runtime/RowMath.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::rt {

static int64_t countCandidates(int beams, int endingIds) {
  return int64_t(std::max(2, 1 + endingIds)) * beams;
}

void checkBeams(const BeamOptions &options, int vocab, int endingIds) {
  if (options.beams < 1 || options.beams > maxBeams)
    refuse("{} beams; accepted: 1 to {}", options.beams, maxBeams);
  if (int64_t needed = countCandidates(options.beams, endingIds); needed > vocab)
    refuse("{} beams choose among {} tokens, the vocabulary has {}", options.beams, needed, vocab);
  if (!std::isfinite(options.lengthPenalty))
    refuse("length penalty {} is not a number", options.lengthPenalty);
}

BeamSearch::BeamSearch(const BeamOptions &options, int vocab, int limit, int endingIds, Ends ends)
    : options(options), vocab(vocab), limit(static_cast<size_t>(std::max(limit, 0))),
      candidateCount(static_cast<size_t>(countCandidates(options.beams, endingIds))),
      ends(std::move(ends)) {
  if (limit > 0)
    runningBeams.emplace_back();
}

bool BeamSearch::isBetter(const Candidate &a, const Candidate &b) {
  if (a.sum != b.sum)
    return a.sum > b.sum;
  return a.beam != b.beam ? a.beam < b.beam : a.id < b.id;
}

void BeamSearch::score(int beam, const float *logits) {
  // Only logits above `least` can be candidates; what is no number never is.
  const double base = runningBeams[beam].sum - logSumExp(logits, vocab);
  double least = -std::numeric_limits<double>::infinity();
  auto raise = [&] {
    if (candidates.size() == candidateCount)
      least = candidates.front().sum - base;
  };
  raise();
  for (int32_t id = 0; id < vocab; ++id) {
    if (!(logits[id] > least))
      continue;
    candidates.push_back({base + logits[id], beam, id});
    std::push_heap(candidates.begin(), candidates.end(), isBetter);
    if (candidates.size() > candidateCount) {
      std::pop_heap(candidates.begin(), candidates.end(), isBetter);
      candidates.pop_back();
    }
    raise();
  }
}

void BeamSearch::advance() {
  std::sort_heap(candidates.begin(), candidates.end(), isBetter);
  std::vector<Beam> next;
  const size_t beams = static_cast<size_t>(options.beams);
  for (size_t i = 0; i < candidates.size() && next.size() < beams; ++i) {
    Beam beam = extend(candidates[i]);
    if (beam.ids.size() < limit && !ends(beam.ids))
      next.push_back(std::move(beam));
    else if (i < beams)
      finish(std::move(beam));
  }
  candidates.clear();
  runningBeams = std::move(next);
  if (!runningBeams.empty() && finishedBeams.size() == beams &&
      (options.earlyStopping == EarlyStopping::Yes || !canImprove()))
    runningBeams.clear();
}

Beam BeamSearch::extend(const Candidate &candidate) const {
  Beam beam = runningBeams[candidate.beam];
  beam.ids.push_back(candidate.id);
  beam.logprobs.push_back(candidate.sum - beam.sum);
  beam.sum = candidate.sum;
  beam.parent = candidate.beam;
  return beam;
}

void BeamSearch::finish(Beam beam) {
  beam.score = penalised(beam.sum, beam.ids.size());
  auto place = std::upper_bound(finishedBeams.begin(), finishedBeams.end(), beam,
                                [](const Beam &a, const Beam &b) { return a.score > b.score; });
  finishedBeams.insert(place, std::move(beam));
  if (finishedBeams.size() > static_cast<size_t>(options.beams))
    finishedBeams.pop_back();
}

bool BeamSearch::canImprove() const {
  const Beam &best = runningBeams.front();
  const bool full = options.earlyStopping == EarlyStopping::Never && options.lengthPenalty > 0;
  return penalised(best.sum, full ? limit : best.ids.size()) > finishedBeams.back().score;
}

double BeamSearch::penalised(double sum, size_t length) const {
  return sum / std::pow(static_cast<double>(length), options.lengthPenalty);
}

} // namespace tenon::rt
