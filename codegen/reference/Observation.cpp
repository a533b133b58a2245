// See Observation.h.
#include "codegen/reference/Observation.h"
#include "codegen/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

using namespace mlir;
using namespace tenon::llm;

namespace tenon {

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

// `steps` single tokens after a prefix of each sequence.
struct Observer::Schedule {
  std::vector<int32_t> prefix;
  int32_t steps;

  int32_t getLongest() const { return *std::max_element(prefix.begin(), prefix.end()) + steps; }
  std::string describe(int32_t step) const {
    std::string text = prefix.size() == 1 ? "sequence " : "sequences ";
    text += llvm::join(llvm::map_range(prefix, [](int32_t n) { return std::to_string(n); }), "+");
    return step ? text + (step == 1 ? " and 1 step" : " and " + std::to_string(step) + " steps")
                : text;
  }
};

// What an encoder has left for each sequence.
struct Observer::Source {
  HostBatch batch; // its own
  HostRows rows;   // as it gives them, in place of a cache
  HostCache memory;

  // Lets a decoder's batch see it.
  void show(HostBatch &decoder, ArrayRef<SequenceShare> shares) const {
    decoder.memoryMaxBlocks = batch.maxBlocks;
    decoder.memoryBlocks = batch.blocks;
    for (const SequenceShare &share : shares) {
      decoder.memoryLengths.push_back(batch.lengths[share.sequence]);
      auto blocks = batch.blockTable.begin() + share.sequence * batch.maxBlocks;
      decoder.memoryTable.insert(decoder.memoryTable.end(), blocks, blocks + batch.maxBlocks);
    }
  }
};

// A number that follows from all that is given.
template <typename... Parts> static uint64_t mix(Parts... parts) {
  uint64_t values[] = {uint64_t(parts)...};
  return llvm::xxh3_64bits(
      llvm::ArrayRef(reinterpret_cast<const uint8_t *>(values), sizeof values));
}

// Uniform with a deviation of 1.
static float toFloat(uint64_t bits) {
  return float(int32_t(bits >> 32)) * (1.7320508f / 2147483648.0f);
}

HostBatch Observer::makeBatch(ArrayRef<SequenceShare> shares, const Schedule &schedule,
                              bool scoreAll) const {
  HostBatch batch;
  batch.starts.push_back(0);
  batch.maxBlocks = llvm::divideCeil(schedule.getLongest(), TENON_BLOCK_TOKENS);
  batch.blocks = int64_t(schedule.prefix.size()) * batch.maxBlocks + 1; // one is nobody's
  batch.memoryBlocks = batch.blocks;                                    // of an encoder's own batch
  std::vector<int32_t> pool(batch.blocks);
  std::iota(pool.begin(), pool.end(), 0);
  std::shuffle(pool.begin(), pool.end(), std::mt19937(7));
  for (auto [s, share] : llvm::enumerate(shares)) {
    for (int32_t i = 0; i < share.count; ++i) {
      int32_t position = share.cached + i;
      batch.ids.push_back(
          int32_t(mix(seed, 1, share.sequence, position) % uint64_t(vocabulary.value_or(1))));
      batch.types.push_back(
          int32_t(mix(seed, 4, share.sequence, position) % uint64_t(types.value_or(1))));
      batch.positions.push_back(position);
      batch.sequenceOf.push_back(int32_t(s));
      batch.sequences.push_back(share.sequence);
      bool isLast = i + 1 == share.count, isSecond = i == 1;
      if (scoreAll || isLast || isSecond)
        batch.scoredRows.push_back(int32_t(batch.positions.size()) - 1);
    }
    batch.starts.push_back(int32_t(batch.getTokens()));
    batch.lengths.push_back(share.cached + share.count);
    auto blocks = pool.begin() + share.sequence * batch.maxBlocks;
    batch.blockTable.insert(batch.blockTable.end(), blocks, blocks + batch.maxBlocks);
  }
  return batch;
}

// Rows that depend on the token alone, whatever batch it comes in.
std::vector<HostRows> Observer::makeRows(const FunctionShape &shape, const HostBatch &batch,
                                         const Source *source) const {
  std::vector<HostRows> arguments;
  for (auto [argument, columns] : llvm::enumerate(shape.rows)) {
    if (shape.readsMemory && argument + 1 == shape.rows.size()) {
      // Sequences that are not in the batch have no rows there either.
      HostRows rows{RowKind::memory, batch.getMemory(), columns, {}};
      for (size_t s = 0; s + 1 < batch.starts.size(); ++s) {
        int32_t sequence = batch.sequences[batch.starts[s]];
        auto begin = source->rows.data.begin();
        rows.data.insert(rows.data.end(), begin + source->batch.starts[sequence] * columns,
                         begin + source->batch.starts[sequence + 1] * columns);
      }
      arguments.push_back(std::move(rows));
      continue;
    }
    HostRows rows{RowKind::tokens, batch.getTokens(), columns, {}};
    for (int64_t t = 0; t < rows.count; ++t)
      for (int64_t c = 0; c < columns; ++c)
        rows.data.push_back(
            toFloat(mix(seed, 2, argument, batch.sequences[t], batch.positions[t], c)));
    arguments.push_back(std::move(rows));
  }
  return arguments;
}

// What was never written is random, too: whoever reads it gives other numbers. Of i8 elements two
// are made at a time, which may as well be a scale.
HostCache Observer::makeCache(CacheType type, const HostBatch &batch) const {
  HostCache cache;
  cache.type = type;
  if (!type)
    return cache;
  Type element = type.isQuantised() ? type.getScaleType(type.getContext()) : type.getElementType();
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  int64_t count = batch.blocks * type.getPositionBytes() * TENON_BLOCK_TOKENS / bytes;
  for (int64_t layer = 0; layer < type.getLayers(); ++layer) {
    auto data = std::make_shared<std::vector<char>>(count * bytes);
    for (int64_t i = 0; i < count; ++i) {
      float value = toFloat(mix(seed, 3, layer, i));
      uint16_t half = element.isBF16() ? floatToBfloat(value) : floatToHalf(value);
      std::memcpy(data->data() + i * bytes, bytes == 4 ? (const void *)&value : &half, bytes);
    }
    cache.layers.push_back(std::move(data));
  }
  return cache;
}

//===----------------------------------------------------------------------===//
// Functions and models
//===----------------------------------------------------------------------===//

namespace {

// An operation of no module.
struct Eraser {
  void operator()(Operation *op) const { op->erase(); }
};

std::string print(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream, OpPrintingFlags().useLocalScope());
  return text;
}

std::string print(Type type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  type.print(stream);
  return text;
}

} // namespace

struct Observer::Function {
  std::string name;
  Operation *op;
  std::shared_ptr<Operation> copy; // when weights were arguments
  FunctionShape shape;
  uint64_t digest; // of its text but its name
  std::string signature;
  std::string unchecked;
};

struct Observer::Model {
  std::string name;
  const Function *first, *step; // for many tokens, and for one of each sequence
  const Function *encoder = nullptr;
};

// Weight arguments become tensors, so that every weight has a recipe.
static std::shared_ptr<Operation> bindWeights(func::FuncOp function) {
  if (llvm::none_of(function.getArgumentTypes(), llvm::IsaPred<WeightType>))
    return nullptr;
  func::FuncOp copy = function.clone();
  std::shared_ptr<Operation> owner(copy.getOperation(), Eraser());
  OpBuilder builder = OpBuilder::atBlockBegin(&copy.getBody().front());
  for (BlockArgument argument : copy.getArguments())
    if (isa<WeightType>(argument.getType())) {
      std::string name = "argument " + std::to_string(argument.getArgNumber());
      argument.replaceAllUsesWith(
          WeightOp::create(builder, copy.getLoc(), argument.getType(), name));
    }
  return owner;
}

// Token ids that every embedding can look up.
static std::optional<int64_t> getVocabulary(ModuleOp module) {
  std::optional<int64_t> least;
  module.walk([&](EmbeddingOp op) {
    int64_t rows = op.getTable().getType().getRows();
    least = std::min(least.value_or(rows), rows);
  });
  return least;
}

static std::optional<int64_t> getTokenTypes(ModuleOp module) {
  std::optional<int64_t> least;
  module.walk([&](TypeEmbeddingOp op) {
    int64_t rows = op.getTable().getType().getRows();
    least = std::min(least.value_or(rows), rows);
  });
  return least;
}

// Scalings that go by the length of the sequence: beyond it, cached keys are those of the step that
// wrote them, and a prefix that is run again has others.
static int64_t getSteadyLength(ModuleOp module) {
  int64_t least = std::numeric_limits<int32_t>::max();
  module.walk([&](RopeAnglesOp op) {
    if (op.getOriginal())
      least = std::min(least, int64_t(op.getOriginal()));
  });
  return least;
}

const ObservedModel *Observation::find(StringRef name) const {
  auto found =
      llvm::find_if(models, [&](const ObservedModel &model) { return model.name == name; });
  return found == models.end() ? nullptr : &*found;
}

Observation Observer::observe(ModuleOp module) {
  ++generation;
  // Ids stay what they were for the first module.
  std::string tooLarge;
  if (std::optional<int64_t> rows = getVocabulary(module)) {
    if (!vocabulary)
      vocabulary = rows;
    else if (*rows < *vocabulary)
      tooLarge = "an embedding has " + std::to_string(*rows) + " rows, fewer than before";
  }

  if (!types)
    types = getTokenTypes(module);
  if (!steady)
    steady = getSteadyLength(module);

  std::vector<std::unique_ptr<Function>> functions;
  std::string wholeText; // programs use the module's kernels and weights
  for (Operation &op : *module.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    auto program = dyn_cast<sched::ProgramOp>(op);
    if (!program && (!function || function.isExternal()))
      continue;
    auto made = std::make_unique<Function>();
    made->op = &op;
    made->name = SymbolTable::getSymbolName(&op).str();
    if (function && function.getBody().hasOneBlock())
      if ((made->copy = bindWeights(function)))
        made->op = made->copy.get();
    if (program && wholeText.empty())
      wholeText = print(module);
    std::string text = print(&op);
    made->digest =
        llvm::xxh3_64bits(StringRef(text).substr(text.find('('))) + llvm::xxh3_64bits(wholeText);
    made->signature = program ? "program" : print(function.getFunctionType());
    llvm::Expected<FunctionShape> shape = ReferenceEngine::getShape(made->op);
    if (shape)
      made->shape = std::move(*shape);
    else
      made->unchecked = llvm::toString(shape.takeError());
    functions.push_back(std::move(made));
  }

  auto find = [&](StringRef name) -> const Function * {
    for (const auto &function : functions)
      if (function->name == name)
        return function.get();
    return nullptr;
  };
  std::vector<Model> models;
  const Function *prefill = find("prefill"), *decode = find("decode");
  bool isPair = prefill && decode && !find("main") && prefill->shape.rows == decode->shape.rows &&
                prefill->shape.cache == decode->shape.cache;
  // An encoder is run with the decoder that takes what it leaves.
  const Function *encoder = find("encode") ? find("encode") : find("encoder");
  const Function *decoder = prefill ? prefill : find("main");
  if (!encoder || !decoder || (!decoder->shape.readsMemory && !decoder->shape.memory) ||
      decoder->shape.memory != encoder->shape.memory)
    decoder = nullptr;
  for (const auto &function : functions) {
    bool isAlone = !isPair || (function.get() != prefill && function.get() != decode);
    if (function.get() == encoder && decoder)
      continue;
    bool attends = function->shape.readsMemory || function->shape.memory;
    if (attends && (!decoder || (isAlone && function.get() != decoder)))
      function->unchecked = "it attends to a memory that no encoder makes";
    if (!isAlone && function.get() == decode)
      continue;
    bool isMain = !isAlone || (function->name == "encode" && !find("main"));
    models.push_back({isMain ? "main" : function->name, function.get(),
                      isAlone ? function.get() : decode, attends ? encoder : nullptr});
  }

  SmallVector<Operation *> ops;
  for (const auto &function : functions)
    if (function->unchecked.empty())
      ops.push_back(function->op);
  if (llvm::Error error = engine.begin(ops))
    tooLarge = llvm::toString(std::move(error));

  Observation observation;
  for (const Model &model : models) {
    ObservedModel &observed = observation.models.emplace_back();
    observed.name = model.name;
    observed.signature = model.first->signature;
    if (model.step != model.first)
      observed.signature += ", " + model.step->signature;
    if (model.encoder)
      observed.signature += ", " + model.encoder->signature;
    const std::string none;
    for (const std::string &reason : {model.first->unchecked, model.step->unchecked,
                                      model.encoder ? model.encoder->unchecked : none, tooLarge})
      if (observed.unchecked.empty())
        observed.unchecked = reason;
    if (!observed.unchecked.empty())
      continue;
    if (llvm::Error error = observeModel(model, observed))
      llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &info) {
        observed.unchecked = info.message();
        observed.isWrong = info.convertToErrorCode() == std::errc::result_out_of_range;
      });
  }
  for (auto entry = steps.begin(); entry != steps.end();)
    entry = entry->second.generation + 1 < generation ? steps.erase(entry) : std::next(entry);
  return observation;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

llvm::Error Observer::observeModel(const Model &model, ObservedModel &observed) {
  static const Schedule schedules[] = {{{1, 3, 17}, 0}, {{2}, 2}, {{3, 1, 16}, 2}};
  for (Schedule schedule : schedules) {
    schedule.steps = int32_t(std::min<int64_t>(schedule.steps, *steady - 1));
    if (schedule.steps)
      for (int32_t &length : schedule.prefix)
        length = int32_t(std::min<int64_t>(length, *steady - schedule.steps));
    if (llvm::Error error = observeSchedule(model, schedule, observed))
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<const Observer::Step *> Observer::run(const Function &function, HostBatch batch,
                                                     const HostCache &cache, const Source *source,
                                                     uint64_t key) {
  Step &step = steps[key];
  if (!step.generation) {
    HostCache memory = source ? source->memory : HostCache();
    llvm::Expected<ReferenceEngine::Outcome> outcome =
        engine.run(function.op, batch, makeRows(function.shape, batch, source), cache, memory);
    if (!outcome) {
      steps.erase(key);
      return outcome.takeError();
    }
    step = {std::move(outcome->results), std::move(outcome->cache), std::move(outcome->memory),
            std::move(batch), 0};
  }
  step.generation = generation;
  return &step;
}

// The rows of the last `count` tokens of each sequence.
static HostRows takeLast(const HostRows &rows, const HostBatch &batch, int32_t count) {
  HostRows taken{rows.kind, 0, rows.columns, {}};
  for (size_t s = 0; s + 1 < batch.starts.size(); ++s)
    for (int32_t t = std::max(batch.starts[s], batch.starts[s + 1] - count);
         t < batch.starts[s + 1]; ++t, ++taken.count)
      taken.data.insert(taken.data.end(), rows.data.begin() + t * rows.columns,
                        rows.data.begin() + (t + 1) * rows.columns);
  return taken;
}

// Keys and values that a batch's tokens have in a cache.
static void addCacheRows(const HostCache &cache, const HostBatch &batch, StringRef where,
                         ObservedRun &run) {
  for (int64_t layer = 0; layer < int64_t(cache.layers.size()); ++layer)
    for (int half : {0, 1})
      run.results.push_back(
          {((half ? "values of " : "keys of ") + where + "layer ").str() + std::to_string(layer),
           true, cache.getRows(layer, half, batch)});
}

llvm::Expected<Observer::Source> Observer::encode(const Model &model, size_t sequences,
                                                  ObservedModel &observed, uint64_t &key) {
  static const int32_t lengths[] = {5, 18, 2};
  Schedule schedule{{}, 0};
  SmallVector<SequenceShare> shares;
  for (size_t s = 0; s < sequences; ++s) {
    schedule.prefix.push_back(lengths[s % 3]);
    shares.push_back({int32_t(s), 0, lengths[s % 3]});
  }
  const Function &encoder = *model.encoder;
  Source source;
  source.batch = makeBatch(shares, schedule, /*scoreAll=*/false);
  if (encoder.shape.memory)
    source.memory = makeCache(encoder.shape.memory, source.batch);
  key = mix(key, encoder.digest, sequences);
  llvm::Expected<const Step *> done = run(encoder, source.batch, HostCache(), &source, key);
  if (!done)
    return done.takeError();
  source.memory = (*done)->memory;
  ObservedRun &observedRun = observed.runs.emplace_back();
  observedRun.function = encoder.name;
  observedRun.batch = "sources of " + schedule.describe(0);
  observedRun.scoredRows = source.batch.scoredRows;
  for (auto [name, rows] : llvm::zip_equal(encoder.shape.results, (*done)->results)) {
    bool isMemory = name == "memory"; // handed on, like a cache
    if (isMemory)
      source.rows = rows;
    observedRun.results.push_back({name, isMemory, rows});
  }
  addCacheRows(source.memory, source.batch, "the memory's ", observedRun);
  return source;
}

llvm::Error Observer::observeSchedule(const Model &model, const Schedule &schedule,
                                      ObservedModel &observed) {
  bool hasCache = bool(model.first->shape.cache);
  std::vector<int32_t> lengths(schedule.prefix.size(), 0); // done so far
  HostCache cache;
  uint64_t key = mix(seed, schedule.prefix.size(), schedule.prefix[0], vocabulary.value_or(0));
  std::optional<Source> source;
  if (model.encoder) {
    llvm::Expected<Source> encoded = encode(model, schedule.prefix.size(), observed, key);
    if (!encoded)
      return encoded.takeError();
    source = std::move(*encoded);
    const FunctionShape &shape = model.first->shape;
    if (shape.readsMemory && source->rows.columns != shape.rows.back())
      return refused("its encoder leaves rows of " + llvm::Twine(source->rows.columns) +
                     " columns, it takes " + llvm::Twine(shape.rows.back()));
  }

  // One call: as many tokens of each sequence as `next` says.
  auto call = [&](const Function &function, ArrayRef<int32_t> next, int32_t step) -> llvm::Error {
    SmallVector<SequenceShare> shares;
    bool again = !hasCache && step > 0;
    for (auto [s, count] : llvm::enumerate(next))
      if (count)
        shares.push_back(hasCache ? SequenceShare{int32_t(s), lengths[s], count}
                                  : SequenceShare{int32_t(s), 0, lengths[s] + count});
    bool scoreAll = step > 0 || function.shape.isDecode;
    HostBatch batch = makeBatch(shares, schedule, scoreAll && !again);
    if (again) { // only what is new
      batch.scoredRows.clear();
      for (size_t s = 1; s < batch.starts.size(); ++s)
        batch.scoredRows.push_back(batch.starts[s] - 1);
    }
    if (hasCache && !cache.type)
      cache = makeCache(function.shape.cache, batch);
    if (source)
      source->show(batch, shares);
    key = mix(key, function.digest, step, scoreAll, batch.getTokens());
    llvm::Expected<const Step *> done =
        run(function, std::move(batch), cache, source ? &*source : nullptr, key);
    if (!done)
      return done.takeError();
    cache = (*done)->cache;
    for (auto [length, count] : llvm::zip_equal(lengths, next))
      length += count;

    const HostBatch &used = (*done)->batch;
    ObservedRun &run = observed.runs.emplace_back();
    run.function = function.name;
    run.batch = schedule.describe(step);
    run.scoredRows = used.scoredRows;
    if (again)
      for (size_t i = 0; i < run.scoredRows.size(); ++i)
        run.scoredRows[i] = int32_t(i);
    for (auto [name, rows] : llvm::zip_equal(function.shape.results, (*done)->results))
      run.results.push_back(
          {name, false, again && rows.kind == RowKind::tokens ? takeLast(rows, used, 1) : rows});
    if (hasCache)
      addCacheRows(cache, used, "", run);
    return llvm::Error::success();
  };

  std::vector<int32_t> ones(schedule.prefix.size(), 1);
  if (!model.first->shape.isDecode) {
    if (llvm::Error error = call(*model.first, schedule.prefix, 0))
      return error;
  } else if (!hasCache) {
    return call(*model.first, ones, 0); // one token is all that it knows
  } else {
    if (!schedule.steps)
      return llvm::Error::success(); // nothing that the other schedules lack
    for (int32_t i = 0; i < schedule.getLongest() - schedule.steps; ++i) {
      std::vector<int32_t> next;
      for (int32_t length : schedule.prefix)
        next.push_back(i < length);
      if (llvm::Error error = call(*model.first, next, 0))
        return error;
    }
  }
  for (int32_t step = 1; step <= schedule.steps; ++step)
    if (llvm::Error error = call(*model.step, ones, step))
      return error;
  return llvm::Error::success();
}

} // namespace tenon
