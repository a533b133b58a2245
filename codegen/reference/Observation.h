// What a module computes, as a caller sees it: seeded ragged batches are fed to its functions and
// the rows that come out are kept.
//
//   at once         sequences of 1, 3 and 17 tokens
//   step by step    a prefix at once, then 2 steps of one token for each sequence: through the
//                   cache where there is one, else by running the longer prefix again
//
// A decoder that attends to an encoder is run behind it: each sequence has a source of 5, 18 or 2
// tokens, which is encoded first.
//
// Both forms of a model give rows for the same tokens, so that they can be compared.
#ifndef TENON_CODEGEN_REFERENCE_OBSERVATION_H
#define TENON_CODEGEN_REFERENCE_OBSERVATION_H

#include "codegen/reference/ReferenceEngine.h"
#include <map>
#include <optional>

namespace tenon {

struct ObservedRows {
  std::string name; // "logits", "keys of layer 0"
  bool isCache;     // what the function stored, not what it gave
  HostRows rows;
};

// One call of a function.
struct ObservedRun {
  std::string function;
  std::string batch; // "sequences 1+3+17", "sequences 3+1+16 and 2 steps"
  std::vector<int32_t> scoredRows;
  std::vector<ObservedRows> results;
};

// A function, or @prefill and @decode together, which are called "main" like what they come from,
// and so is an @encode that stands alone. An encoder is part of the decoder that attends to it.
struct ObservedModel {
  std::string name;
  std::string signature; // what a pass that keeps inputs and outputs must not change
  std::vector<ObservedRun> runs;
  std::string unchecked; // why it could not be run; empty: it was
  bool isWrong = false;  // ... because it cannot be right
};

struct Observation {
  std::vector<ObservedModel> models;

  const ObservedModel *find(llvm::StringRef name) const;
};

class Observer {
public:
  explicit Observer(uint64_t seed) : seed(seed), engine(seed) {}

  // Runs every function of the module that has a body. What was run for the last two observations
  // is not run again.
  Observation observe(mlir::ModuleOp module);

private:
  // What one call in a row of calls left behind.
  struct Step {
    std::vector<HostRows> results;
    HostCache cache, memory;
    HostBatch batch;
    uint64_t generation = 0;
  };
  struct Function;
  struct Model;
  struct Schedule;
  struct Source;

  llvm::Error observeModel(const Model &model, ObservedModel &observed);
  llvm::Error observeSchedule(const Model &model, const Schedule &schedule,
                              ObservedModel &observed);
  // The encoder's part of a schedule.
  llvm::Expected<Source> encode(const Model &model, size_t sequences, ObservedModel &observed,
                                uint64_t &key);
  llvm::Expected<const Step *> run(const Function &function, HostBatch batch,
                                   const HostCache &cache, const Source *source, uint64_t key);

  HostBatch makeBatch(llvm::ArrayRef<SequenceShare> shares, const Schedule &schedule,
                      bool scoreAll) const;
  HostCache makeCache(llm::CacheType type, const HostBatch &batch) const;
  std::vector<HostRows> makeRows(const FunctionShape &shape, const HostBatch &batch,
                                 const Source *source) const;

  uint64_t seed;
  ReferenceEngine engine;
  std::optional<int64_t> vocabulary; // ids that every embedding has
  std::optional<int64_t> types;      // of tokens, likewise
  std::optional<int64_t> steady;     // tokens up to which a key does not depend on how many follow
  uint64_t generation = 0;
  std::map<uint64_t, Step> steps; // by what was called, on what
};

} // namespace tenon

#endif // TENON_CODEGEN_REFERENCE_OBSERVATION_H
