// Generates by beam search: one prompt, several texts. The beams share the blocks of their common
// past in the cache; a block that two of them would write to is copied then (KvPool.h).
//
//   prompt ─ prefill ─▶ beam            a step: each new beam forks the sequence of the beam that
//              ├─ fork ─▶ beam          it continues, the old ones go, all feed their last id in
//              └─ fork ─▶ beam          one batch
#ifndef TENON_RUNTIME_GENERATEBEAMS_H
#define TENON_RUNTIME_GENERATEBEAMS_H

#include "runtime/BeamSearch.h"
#include "runtime/Generate.h"

namespace tenon::rt {

// `result.text`, `result.ids` and the others as Generate.h says, but the times.
struct ScoredGeneration {
  Generation result;
  double score;
};

struct BeamGeneration {
  std::vector<ScoredGeneration> beams; // best first
  double promptMs = 0, decodeMs = 0;
};

// Blocks that the cache must have for it.
int64_t beamBlocks(int64_t promptTokens, int64_t maxTokens, int beams);

// `options.sampling` is left aside: nothing is drawn.
BeamGeneration generateBeams(Program &program, Engine &engine, const std::vector<int32_t> &prompt,
                             const GenerateOptions &options, const BeamOptions &beamOptions);

} // namespace tenon::rt

#endif // TENON_RUNTIME_GENERATEBEAMS_H
