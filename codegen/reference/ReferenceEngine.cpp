// See ReferenceEngine.h.
#include "codegen/reference/ReferenceEngine.h"
#include "codegen/Error.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace tenon::llm;

namespace tenon {

//===----------------------------------------------------------------------===//
// The shape of a function
//===----------------------------------------------------------------------===//

static std::string getText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

// What a batch of a few dozen tokens may need for one value, a cache or an arena.
static constexpr int64_t mostBytes = int64_t(1) << 30;

static llvm::Error tooLarge(const llvm::Twine &what) {
  return refused(what + " would take more than " + llvm::Twine(mostBytes >> 20) + " MiB");
}

// Whether rows of so many columns fit; no batch has more than 100 rows.
static bool fits(int64_t columns) { return columns <= mostBytes / int64_t(sizeof(float)) / 100; }

static bool fits(CacheType cache) {
  int64_t layer = 2 * TENON_BLOCK_TOKENS * int64_t(sizeof(float)) * 10; // no pool has more blocks
  int64_t dim = std::max(cache.getHeadDim(), cache.getValueDim());
  return cache.getHeads() <= mostBytes && dim <= mostBytes / cache.getHeads() &&
         cache.getLayers() <= mostBytes &&
         cache.getHeads() * dim <= mostBytes / layer / cache.getLayers();
}

static llvm::Expected<FunctionShape> getFunctionShape(func::FuncOp function) {
  FunctionShape shape;
  if (!function.getBody().hasOneBlock())
    return refused("it has more than one block");
  for (Type type : function.getArgumentTypes()) {
    if (auto cache = dyn_cast<CacheType>(type)) {
      CacheType &known = cache.getMemory() ? shape.memory : shape.cache;
      if (known)
        return refused("it takes two caches");
      if (!fits(cache))
        return tooLarge("its cache");
      known = cache;
    } else if (auto rows = dyn_cast<RankedTensorType>(type);
               rows && rows.getRank() == 2 && rows.getElementType().isF32() &&
               rows.isDynamicDim(0) && !rows.isDynamicDim(1)) {
      if (!fits(rows.getDimSize(1)))
        return tooLarge("an argument");
      shape.rows.push_back(rows.getDimSize(1));
    } else if (!isa<BatchType, WeightType>(type)) {
      return refused("it takes an argument of type " + getText(type));
    }
  }
  for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
    if (isa<CacheType>(type))
      continue;
    if (!isa<RankedTensorType>(type))
      return refused("it gives a result of type " + getText(type));
    auto name = function.getResultAttrOfType<StringAttr>(i, "llm.result");
    shape.results.push_back(name ? name.str() : "result");
  }
  function.walk([&](AttentionOp op) {
    shape.readsMemory |= op.getKeys() == KeyRows::memory && !shape.memory;
  });
  if (shape.readsMemory && shape.rows.empty())
    return refused("it attends to a memory that it does not take");
  auto phase = function->getAttrOfType<StringAttr>("llm.phase");
  shape.isDecode = phase && phase.getValue() == "decode";
  return shape;
}

static llvm::Expected<FunctionShape> getProgramShape(sched::ProgramOp program) {
  FunctionShape shape;
  if (!fits(program.getTokenBytes() + program.getScoredBytes()))
    return tooLarge("its arena");
  for (auto buffer : program.getOps<sched::BufferOp>())
    if (!fits(sched::getRowStride(buffer.getType())))
      return tooLarge("a buffer");
  for (auto output : program.getOps<sched::OutputOp>())
    shape.results.push_back(output.getName().str());
  // Each operand is a layer of the whole.
  for (auto layer : program.getOps<sched::CacheOp>()) {
    CacheType type = layer.getType();
    CacheType &known = type.getMemory() ? shape.memory : shape.cache;
    known = type.withLayers(std::max<int64_t>(known ? known.getLayers() : 0, layer.getLayer() + 1));
  }
  for (CacheType cache : {shape.cache, shape.memory})
    if (cache && !fits(cache))
      return tooLarge("its cache");
  shape.isDecode = program.getSymName() == "decode";
  return shape;
}

llvm::Expected<FunctionShape> ReferenceEngine::getShape(Operation *function) {
  if (auto program = dyn_cast<sched::ProgramOp>(function))
    return getProgramShape(program);
  return getFunctionShape(cast<func::FuncOp>(function));
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

// Weights are read as plain f32 or f64, whatever they are stored as.
static Type getPlainType(Type type) {
  auto weight = dyn_cast<WeightType>(type);
  if (!weight)
    return type;
  Storage storage = weight.getStorage() == Storage::F64 ? Storage::F64 : Storage::F32;
  return WeightType::get(type.getContext(), weight.getShape(), storage);
}

static CacheType getLayerType(CacheType cache) { return cache.withLayers(1); }

// What an operation uses from outside, in the order of first use, without the batch.
static SmallVector<Value> getCaptures(Operation *op) {
  llvm::SetVector<Value> captures;
  op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!isa<BatchType>(operand.getType()) &&
          !op->isAncestor(operand.getParentBlock()->getParentOp()))
        captures.insert(operand);
  });
  return captures.takeVector();
}

namespace {

// A kernel that belongs to no module.
struct OwnedKernel {
  sched::KernelOp op;

  explicit OwnedKernel(sched::KernelOp op) : op(op) {}
  OwnedKernel(const OwnedKernel &) = delete;
  ~OwnedKernel() { op->erase(); }
};

} // namespace

// The kernel that computes one operation: its operands are `captures`. llm-to-sched makes kernels
// in its own way, and is checked against this one.
static sched::KernelOp makeKernel(Operation *op, ArrayRef<Value> captures) {
  MLIRContext *context = op->getContext();
  SmallVector<Type> inputs{BatchType::get(context)}, results;
  for (Value capture : captures) {
    auto cache = dyn_cast<CacheType>(capture.getType());
    inputs.push_back(cache ? Type(getLayerType(cache)) : getPlainType(capture.getType()));
  }
  for (Type type : op->getResultTypes())
    if (!isa<CacheType>(type))
      results.push_back(type);

  OpBuilder builder(context);
  auto kernel = sched::KernelOp::create(builder, op->getLoc(), "", "",
                                        FunctionType::get(context, inputs, results));
  Block &block = kernel.getBody().emplaceBlock();
  block.addArguments(inputs, SmallVector<Location>(inputs.size(), op->getLoc()));
  IRMapping mapping;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (isa<BatchType>(operand.getType()))
        mapping.map(operand, block.getArgument(0));
  });
  for (auto [capture, argument] : llvm::zip_equal(captures, block.getArguments().drop_front()))
    mapping.map(capture, argument);

  builder.setInsertionPointToStart(&block);
  SmallVector<Value> yielded;
  auto yield = [&](ValueRange values) {
    for (Value value : values)
      if (!isa<CacheType>(value.getType()))
        yielded.push_back(mapping.lookupOrDefault(value));
  };
  if (auto fused = dyn_cast<FusedOp>(op)) {
    for (Operation &inner : fused.getBody().front().without_terminator())
      builder.clone(inner, mapping);
    yield(fused.getBody().front().getTerminator()->getOperands());
  } else {
    builder.clone(*op, mapping);
    yield(op->getResults());
  }
  sched::YieldOp::create(builder, op->getLoc(), yielded);
  kernel.walk([](CachedOpInterface cached) {
    cached.setCacheLayer(0);
    for (Value result : cached->getResults())
      if (auto cache = dyn_cast<CacheType>(result.getType()))
        result.setType(getLayerType(cache));
  });
  return kernel;
}

// A copy of a stage's kernel that reads plain weights.
static sched::KernelOp copyKernel(sched::KernelOp kernel) {
  auto copy = cast<sched::KernelOp>(kernel->clone());
  SmallVector<Type> inputs;
  for (BlockArgument argument : copy.getBody().getArguments()) {
    argument.setType(getPlainType(argument.getType()));
    inputs.push_back(argument.getType());
  }
  copy.setFunctionType(
      FunctionType::get(kernel.getContext(), inputs, kernel.getType().getResults()));
  return copy;
}

//===----------------------------------------------------------------------===//
// What both runners do
//===----------------------------------------------------------------------===//

namespace {

// A pointer of a kernel's `io`.
struct Operand {
  void *data;
  bool isRows = false;
  RowKind kind = RowKind::tokens;
  int64_t stride = 0; // rows only
};

class Runner {
public:
  Runner(KernelJit &kernels, WeightValues &weights, const HostBatch &batch)
      : kernels(kernels), weights(weights), batch(batch) {}

protected:
  int64_t getCount(RowKind kind) const {
    return kind == RowKind::tokens   ? batch.getTokens()
           : kind == RowKind::scored ? batch.getScored()
           : kind == RowKind::memory ? batch.getMemory()
                                     : batch.getContext();
  }

  // As many rows of both.
  bool isSame(RowKind a, RowKind b) const { return a == b || getCount(a) == getCount(b); }

  // What the rows of an operation's results are; refuses operations that mix rows.
  llvm::Error inferKinds(Operation *op) {
    if (auto fused = dyn_cast<FusedOp>(op)) {
      Block &body = fused.getBody().front();
      for (Operation &inner : body.without_terminator())
        if (llvm::Error error = inferKinds(&inner))
          return error;
      for (auto [result, yielded] :
           llvm::zip_equal(op->getResults(), body.getTerminator()->getOperands()))
        kinds[result] = kinds.lookup(yielded);
      return llvm::Error::success();
    }

    std::optional<RowKind> kind;
    bool isMixed = false;
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType())) {
        isMixed |= kind && !isSame(*kind, kinds.lookup(operand));
        kind = kind.value_or(kinds.lookup(operand));
      }
    RowKind result = kind.value_or(RowKind::tokens);
    if (auto attention = dyn_cast<AttentionOp>(op);
        attention && attention.getKeys() != KeyRows::tokens) {
      RowKind keys = attention.getKeys() == KeyRows::memory ? RowKind::memory : RowKind::context;
      isMixed = !isSame(kinds.lookup(attention.getKey()), keys) ||
                !isSame(kinds.lookup(attention.getValue()), keys);
      result = kinds.lookup(attention.getQuery());
    }
    // What knows its token by the batch has a row for each token.
    if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<BatchType>))
      isMixed |= !isSame(result, RowKind::tokens);
    if (isMixed)
      return wrong("'" + op->getName().getStringRef() + "' reads " + getName(result) +
                   " where it needs others");
    if (isa<GatherRowsOp>(op))
      result = RowKind::scored;
    if (auto read = dyn_cast<KVReadOp>(op))
      result = read.getCache().getType().getMemory() ? RowKind::memory : RowKind::context;
    for (Value value : op->getResults())
      kinds[value] = result;
    return llvm::Error::success();
  }

  static StringRef getName(RowKind kind) {
    return kind == RowKind::tokens   ? "a row for each token"
           : kind == RowKind::scored ? "a row for each row to be scored"
           : kind == RowKind::memory ? "a row for each row of the memory"
                                     : "a row for each cached position";
  }

  // The function cannot be right.
  static llvm::Error wrong(const llvm::Twine &what) {
    return llvm::createStringError(std::make_error_code(std::errc::result_out_of_range), what);
  }

  llvm::Error call(sched::KernelOp kernel, ArrayRef<Operand> operands, RowKind kind) {
    SmallVector<sched::Space> spaces;
    SmallVector<void *> io;
    SmallVector<int64_t> strides;
    for (const Operand &operand : operands) {
      spaces.push_back(operand.isRows && operand.kind == RowKind::scored ? sched::Space::scored
                                                                         : sched::Space::tokens);
      io.push_back(operand.data);
      if (operand.isRows)
        strides.push_back(operand.stride);
    }
    llvm::Expected<tenon_kernel *> code = kernels.get(kernel, spaces);
    if (!code)
      return code.takeError();
    // Kernels know two counts of rows. Where rows are those of a context, the batch says so.
    tenon_batch view = batch.get();
    if (kind == RowKind::context || kind == RowKind::memory)
      view.tokens = int32_t(getCount(kind));
    tenon_env env{&view, nullptr, nullptr, 0, 1, batch.blocks, nullptr, nullptr, batch.memoryBlocks,
                  0};
    (*code)(strides.data(), io.data(), &env);
    return llvm::Error::success();
  }

  llvm::Expected<Operand> getWeight(Value weight) {
    llvm::Expected<const void *> values = weights.get(weight);
    if (!values)
      return values.takeError();
    return Operand{const_cast<void *>(*values)};
  }

  KernelJit &kernels;
  WeightValues &weights;
  const HostBatch &batch;
  llvm::DenseMap<Value, RowKind> kinds; // also of values inside fusions and kernels
};

//===----------------------------------------------------------------------===//
// func.func
//===----------------------------------------------------------------------===//

class FunctionRunner : Runner {
public:
  using Runner::Runner;

  llvm::Expected<ReferenceEngine::Outcome> run(func::FuncOp function,
                                               const std::vector<HostRows> &arguments,
                                               const HostCache &cache, const HostCache &memory) {
    auto next = arguments.begin();
    for (BlockArgument argument : function.getArguments()) {
      if (isa<RankedTensorType>(argument.getType()))
        define(argument, *next++);
      else if (auto type = dyn_cast<CacheType>(argument.getType()))
        caches[argument] = type.getMemory() ? memory : cache;
    }
    for (Operation &op : function.getBody().front().without_terminator())
      if (!isa<WeightOpInterface>(op))
        if (llvm::Error error = evaluate(&op))
          return error;

    ReferenceEngine::Outcome outcome;
    outcome.cache = cache;
    outcome.memory = memory;
    for (Value value : function.getBody().front().getTerminator()->getOperands()) {
      if (auto type = dyn_cast<CacheType>(value.getType()))
        (type.getMemory() ? outcome.memory : outcome.cache) = caches.lookup(value);
      else
        outcome.results.push_back(*rows.lookup(value));
    }
    return outcome;
  }

private:
  void define(Value value, HostRows made) {
    kinds[value] = made.kind;
    rows[value] = std::make_shared<HostRows>(std::move(made));
  }

  llvm::Error evaluate(Operation *op) {
    if (llvm::Error error = inferKinds(op))
      return error;
    SmallVector<Value> captures = getCaptures(op);
    int64_t layer = 0;
    op->walk([&](CachedOpInterface cached) { layer = cached.getCacheLayer(); });
    Value updated; // the cache that the operation gives
    for (Value result : op->getResults())
      if (isa<CacheType>(result.getType()))
        updated = result;

    SmallVector<Operand> operands;
    RowKind kind = RowKind::tokens;
    for (Value capture : captures) {
      if (isa<WeightType>(capture.getType())) {
        llvm::Expected<Operand> weight = getWeight(capture);
        if (!weight)
          return weight.takeError();
        operands.push_back(*weight);
      } else if (isa<CacheType>(capture.getType())) {
        HostCache before = caches.lookup(capture);
        HostCache &cache = caches[updated ? updated : capture];
        cache = std::move(before);
        if (layer >= int64_t(cache.layers.size()))
          return refused("it touches layer " + llvm::Twine(layer) + " of a cache that has " +
                         llvm::Twine(cache.layers.size()));
        operands.push_back({updated ? cache.own(layer) : cache.layers[layer]->data()});
      } else {
        HostRows &value = *rows[capture];
        operands.push_back({value.data.data(), true, value.kind, value.columns});
        if (value.kind == RowKind::context || value.kind == RowKind::memory)
          kind = value.kind;
      }
    }
    for (Value result : op->getResults()) {
      if (isa<CacheType>(result.getType()))
        continue;
      kind = kinds.lookup(result);
      int64_t count = getCount(kind), columns = getColumns(result);
      if (!fits(columns))
        return tooLarge("a result of '" + op->getName().getStringRef() + "'");
      define(result, {kind, count, columns, std::vector<float>(count * columns, NAN)});
      operands.push_back({rows[result]->data.data(), true, kind, columns});
    }
    OwnedKernel kernel(makeKernel(op, captures));
    return call(kernel.op, operands, kind);
  }

  llvm::DenseMap<Value, std::shared_ptr<HostRows>> rows;
  llvm::DenseMap<Value, HostCache> caches;
};

//===----------------------------------------------------------------------===//
// sched.program
//===----------------------------------------------------------------------===//

class ProgramRunner : Runner {
public:
  using Runner::Runner;

  llvm::Expected<ReferenceEngine::Outcome> run(sched::ProgramOp program, const HostCache &cache,
                                               const HostCache &memory) {
    ReferenceEngine::Outcome outcome;
    outcome.cache = cache;
    outcome.memory = memory;
    tokenBytes = program.getTokenBytes(), scoredBytes = program.getScoredBytes();
    arena.assign((batch.getTokens() * tokenBytes + batch.getScored() * scoredBytes) / sizeof(float),
                 NAN);

    std::vector<sched::StageOp> epoch; // since the last barrier
    auto flush = [&]() -> llvm::Error {
      for (sched::StageOp stage : llvm::reverse(epoch))
        if (llvm::Error error = runStage(stage))
          return error;
      epoch.clear();
      return llvm::Error::success();
    };
    for (Operation &op : program.getBody().front()) {
      llvm::Error error =
          llvm::TypeSwitch<Operation *, llvm::Error>(&op)
              .Case([&](sched::BufferOp buffer) { return addBuffer(buffer); })
              .Case([&](sched::ViewOp view) { return addView(view); })
              .Case([&](sched::ConstantOp constant) { return addConstant(constant); })
              .Case([&](sched::CacheOp layer) {
                HostCache &whole = layer.getType().getMemory() ? outcome.memory : outcome.cache;
                operands[layer] = {whole.own(layer.getLayer())};
                return llvm::Error::success();
              })
              .Case([&](sched::StageOp stage) {
                epoch.push_back(stage);
                return llvm::Error::success();
              })
              .Case([&](sched::BarrierOp) { return flush(); })
              .Default([](Operation *) { return llvm::Error::success(); });
      if (error)
        return error;
    }
    if (llvm::Error error = flush())
      return error;
    for (auto output : program.getOps<sched::OutputOp>())
      outcome.results.push_back(read(output.getBuffer()));
    return outcome;
  }

private:
  llvm::Error addBuffer(sched::BufferOp buffer) {
    RowKind kind = buffer.getSpace() == sched::Space::scored ? RowKind::scored : RowKind::tokens;
    int64_t columns = sched::getColumns(buffer.getType()), rows = getCount(kind);
    Operand operand{nullptr, true, kind, sched::getRowStride(buffer.getType())};
    if (!buffer.getOffset()) {
      own.emplace_back(rows * operand.stride, NAN);
      operand.data = own.back().data();
    } else {
      int64_t offset = *buffer.getOffset();
      int64_t end = kind == RowKind::scored ? scoredBytes : tokenBytes;
      if (offset < 0 || offset + columns * int64_t(sizeof(float)) > end)
        return wrong("a buffer at " + llvm::Twine(offset) + " of " + llvm::Twine(columns) +
                     " columns reaches beyond the arena's " + llvm::Twine(end) + " bytes a row");
      char *base = reinterpret_cast<char *>(arena.data());
      base += kind == RowKind::scored ? batch.getTokens() * tokenBytes : 0;
      operand.data = base + rows * offset;
    }
    operands[buffer] = operand;
    return llvm::Error::success();
  }

  llvm::Error addView(sched::ViewOp view) {
    Operand operand = operands.lookup(view.getSource());
    int64_t begin = view.getBegin(), columns = sched::getColumns(view.getType());
    if (begin < 0 || begin + columns > sched::getColumns(view.getSource().getType()))
      return wrong("a view from " + llvm::Twine(begin) + " of " + llvm::Twine(columns) +
                   " columns reaches beyond its buffer");
    operand.data = static_cast<float *>(operand.data) + begin;
    operands[view] = operand;
    return llvm::Error::success();
  }

  llvm::Error addConstant(sched::ConstantOp constant) {
    auto weight =
        SymbolTable::lookupNearestSymbolFrom<sched::WeightOp>(constant, constant.getWeightAttr());
    if (!weight)
      return wrong("no sched.weight @" + constant.getWeight());
    llvm::Expected<Operand> operand =
        getWeight(weight.getRecipe().front().getTerminator()->getOperand(0));
    if (!operand)
      return operand.takeError();
    operands[constant] = *operand;
    return llvm::Error::success();
  }

  llvm::Error runStage(sched::StageOp stage) {
    sched::KernelOp kernel = sched::getKernel(stage);
    if (!kernel)
      return wrong("no sched.kernel @" + stage.getKernel());
    SmallVector<Operand> io;
    for (Value value : stage.getOperands())
      io.push_back(operands.lookup(value));
    OwnedKernel copy(copyKernel(kernel));
    if (llvm::Error error = checkRows(copy.op, io))
      return error;
    return call(copy.op, io, RowKind::tokens);
  }

  // Whether a kernel gives as many rows as its buffers hold.
  llvm::Error checkRows(sched::KernelOp kernel, ArrayRef<Operand> io) {
    Block &body = kernel.getBody().front();
    for (auto [argument, operand] :
         llvm::zip(body.getArguments().drop_front(), io)) // then come the results
      kinds[argument] = operand.kind;
    for (Operation &op : body.without_terminator())
      if (llvm::Error error = inferKinds(&op))
        return error;
    OperandRange yielded = kernel.getTerminator()->getOperands();
    for (auto [value, operand] : llvm::zip_equal(yielded, io.take_back(yielded.size())))
      if (!isSame(kinds.lookup(value), operand.kind))
        return wrong("a stage gives " + getName(kinds.lookup(value)) + ", its buffer holds " +
                     getName(operand.kind));
    kinds.clear();
    return llvm::Error::success();
  }

  HostRows read(Value buffer) {
    const Operand &operand = operands[buffer];
    HostRows rows{operand.kind,
                  getCount(operand.kind),
                  sched::getColumns(cast<MemRefType>(buffer.getType())),
                  {}};
    for (int64_t r = 0; r < rows.count; ++r) {
      const float *row = static_cast<float *>(operand.data) + r * operand.stride;
      rows.data.insert(rows.data.end(), row, row + rows.columns);
    }
    return rows;
  }

  int64_t tokenBytes = 0, scoredBytes = 0;
  std::vector<float> arena;
  std::vector<std::vector<float>> own; // buffers without a place yet
  llvm::DenseMap<Value, Operand> operands;
};

} // namespace

//===----------------------------------------------------------------------===//
// The engine
//===----------------------------------------------------------------------===//

llvm::Error ReferenceEngine::begin(ArrayRef<Operation *> functions) {
  llvm::SetVector<Value> read;
  for (Operation *function : functions)
    function->walk([&](Operation *op) {
      if (isa<WeightOpInterface>(op))
        return;
      for (Value operand : op->getOperands())
        if (isa<WeightType>(operand.getType()) && operand.getDefiningOp<WeightOpInterface>())
          read.insert(operand);
      if (auto constant = dyn_cast<sched::ConstantOp>(op))
        if (auto weight = SymbolTable::lookupNearestSymbolFrom<sched::WeightOp>(
                constant, constant.getWeightAttr()))
          read.insert(weight.getRecipe().front().getTerminator()->getOperand(0));
    });
  return weights.begin(read.getArrayRef());
}

llvm::Expected<ReferenceEngine::Outcome>
ReferenceEngine::run(Operation *function, const HostBatch &batch, const std::vector<HostRows> &rows,
                     const HostCache &cache, const HostCache &memory) {
  if (auto program = dyn_cast<sched::ProgramOp>(function))
    return ProgramRunner(kernels, weights, batch).run(program, cache, memory);
  return FunctionRunner(kernels, weights, batch)
      .run(cast<func::FuncOp>(function), rows, cache, memory);
}

} // namespace tenon
