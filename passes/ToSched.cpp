// llm-to-sched: phases become programs of stages.
//
//   func @decode                          sched.weight @w0 { recipe }
//     %q = llm.fused @norm_qkv {...}      sched.kernel @norm_qkv (...) { body }
//     %k = llm.slice %q                   sched.program @decode {
//     %y = llm.linear %k, %w        ─▶      sched.stage @norm_qkv(%x, %w0) into(%q)
//                                           sched.barrier
//                                           sched.stage @linear(%view, %w1) into(%y) }
#include "passes/Graph.h"
#include "passes/Passes.h"
#include "llvm/ADT/StringMap.h"

namespace tenon {
#define GEN_PASS_DEF_LLMTOSCHED
#include "passes/Passes.h.inc"

using namespace mlir;
using namespace tenon::llm;

namespace {

// Text of an operation that does not depend on what surrounds it.
std::string getText(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream, OpPrintingFlags().useLocalScope());
  return text;
}

//===----------------------------------------------------------------------===//
// Weights and kernels: made once, shared by phases and layers
//===----------------------------------------------------------------------===//

// Symbols whose text decides whether they are the same.
class Interner {
public:
  explicit Interner(ModuleOp module) : module(module) {}

  // `op` was made without a parent, under any symbol name; returns the one that stays, named after
  // `hint`.
  template <typename Op> Op intern(Op op, StringRef hint) {
    op.setSymName("");
    auto [entry, isNew] = known.try_emplace(getText(op), nullptr);
    if (!isNew) {
      op->erase();
      return cast<Op>(entry->second);
    }
    unsigned &count = names[hint];
    op.setSymName(count ? (hint + "_" + Twine(count)).str() : hint.str());
    ++count;
    entry->second = op;
    // Before the programs, in the order of first use.
    module.getBody()->getOperations().insert(end(), op);
    return op;
  }

private:
  // Where the next symbol goes: before the first program or function.
  Block::iterator end() {
    return llvm::find_if(*module.getBody(),
                         [](Operation &op) { return isa<func::FuncOp, sched::ProgramOp>(op); });
  }

  ModuleOp module;
  llvm::StringMap<Operation *> known;
  llvm::StringMap<unsigned> names;
};

class WeightTable {
public:
  WeightTable(ModuleOp module) : symbols(module) {}

  // The section's symbol for a weight value.
  sched::WeightOp get(Value weight) {
    auto [entry, isNew] = byValue.try_emplace(weight, nullptr);
    if (!isNew)
      return entry->second;
    auto type = cast<WeightType>(weight.getType());
    OpBuilder builder(weight.getContext());
    auto op = sched::WeightOp::create(builder, weight.getLoc(), "", 0, type.getByteSize(), type);
    Block &block = op.getRecipe().emplaceBlock();
    builder.setInsertionPointToStart(&block);
    IRMapping mapping;
    Value result = cloneRecipe(builder, weight, mapping);
    sched::YieldOp::create(builder, weight.getLoc(), result);

    op = symbols.intern(op, ("w" + Twine(placed)).str());
    if (op.getSymName() == ("w" + Twine(placed)).str()) {
      ++placed;
      offsets[op] = offset;
      offset = llvm::alignTo(offset + op.getBytes(), 64);
    }
    return byValue[weight] = op;
  }

  // Offsets are set last: equal recipes have equal text only without them.
  void place() {
    for (auto [op, offset] : offsets)
      sched::WeightOp(op).setOffset(offset);
  }

private:
  static Value cloneRecipe(OpBuilder &builder, Value weight, IRMapping &mapping) {
    if (mapping.contains(weight))
      return mapping.lookup(weight);
    Operation *op = weight.getDefiningOp();
    for (Value operand : op->getOperands())
      cloneRecipe(builder, operand, mapping);
    return builder.clone(*op, mapping)->getResult(0);
  }

  Interner symbols;
  llvm::DenseMap<Value, sched::WeightOp> byValue;
  llvm::DenseMap<sched::WeightOp, int64_t> offsets;
  int64_t offset = 0;
  unsigned placed = 0;
};

//===----------------------------------------------------------------------===//
// One phase
//===----------------------------------------------------------------------===//

class PhaseLowering {
public:
  PhaseLowering(func::FuncOp function, WeightTable &weights, Interner &kernels)
      : function(function), weights(weights), kernels(kernels), builder(function),
        decode(isDecode(function)), logits(getNamedResult(function, "logits")) {}

  LogicalResult run() {
    TypeRange inputs = function.getArgumentTypes();
    if (!function.getBody().hasOneBlock() || inputs.empty() || !isa<BatchType>(inputs.front()) ||
        !llvm::all_of(inputs.drop_front(), [](Type type) { return isa<CacheType>(type); }))
      return function.emitError() << "cannot become a program: a phase has one block, which takes "
                                     "the batch and the cache";
    joinContextReads();
    program = sched::ProgramOp::create(builder, function.getLoc(), function.getSymName());
    builder.setInsertionPointToStart(&program.getBody().emplaceBlock());
    for (Operation &op : function.getBody().front())
      if (failed(lower(&op)))
        return failure();
    return success();
  }

private:
  // Rows of the whole context have no place in the arena, whose rows are tokens. So what reads them
  // from the cache becomes one stage with the attention that they are for:
  //
  //   kv_read ─▶ (repeat_kv) ─▶ attention      llm.fused @attention { kv_read, repeat_kv, attention
  //   }
  void joinContextReads() {
    SmallVector<AttentionOp> attentions(function.getOps<AttentionOp>());
    for (AttentionOp attention : attentions) {
      llvm::SetVector<Operation *> parts;
      SmallVector<Value> work{attention.getKey(), attention.getValue()};
      while (!work.empty()) {
        Operation *op = work.pop_back_val().getDefiningOp();
        if (!isa_and_nonnull<RepeatKVOp, KVReadOp>(op) || !parts.insert(op))
          continue;
        if (auto repeat = dyn_cast<RepeatKVOp>(op))
          work.push_back(repeat.getInput());
      }
      if (attention.getKeys() == KeyRows::tokens || parts.empty())
        continue;
      SmallVector<Operation *> ordered = parts.takeVector();
      llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      OpBuilder before(attention);
      FusedOp fused = createFused(before, attention.getLoc(), "attention", [&](OpBuilder &body) {
        IRMapping mapping;
        for (Operation *op : ordered)
          body.clone(*op, mapping);
        return SmallVector<Value>{body.clone(*attention, mapping)->getResult(0)};
      });
      attention.replaceAllUsesWith(fused.getResult(0));
      attention.erase();
      for (Operation *op : llvm::reverse(ordered))
        if (op->use_empty())
          op->erase();
    }
  }

  LogicalResult lower(Operation *op) {
    if (isa<WeightOpInterface>(op))
      return success(); // evaluated while compiling
    if (auto slice = dyn_cast<SliceOp>(op))
      return lowerSlice(slice), success();
    if (auto ret = dyn_cast<func::ReturnOp>(op))
      return lowerReturn(ret), success();
    if (isa<KVReadOp>(op))
      return op->emitError() << "reads rows of the whole context, which only an attention may use";
    if (!isa<ReferenceOpInterface, FusedOp>(op))
      return op->emitError() << "'" << op->getName()
                             << "' cannot become a stage: it has no reference decomposition";
    return lowerStage(op);
  }

  void lowerSlice(SliceOp slice) {
    Value source = buffers.lookup(slice.getInput());
    auto type = cast<MemRefType>(source.getType());
    auto view = sched::getBufferType(builder.getContext(), slice.getEnd() - slice.getBegin(),
                                     sched::getRowStride(type));
    define(slice.getResult(),
           sched::ViewOp::create(builder, slice.getLoc(), view, source, slice.getBegin()),
           roots.lookup(source), spaces.lookup(slice.getInput()));
  }

  void lowerReturn(func::ReturnOp op) {
    for (auto [i, value] : llvm::enumerate(op.getOperands()))
      if (Value buffer = buffers.lookup(value)) {
        auto name = function.getResultAttrOfType<StringAttr>(i, "llm.result");
        sched::OutputOp::create(builder, op.getLoc(), name ? name.getValue() : StringRef("result"),
                                buffer);
      }
  }

  LogicalResult lowerStage(Operation *op) {
    SmallVector<Value> captures = getCaptures(op);
    SmallVector<Value> inputs;
    std::optional<int64_t> layer;
    if (failed(getLayer(op, layer)))
      return failure();
    for (Value capture : captures) {
      if (isa<WeightType>(capture.getType()))
        inputs.push_back(getConstant(capture));
      else if (auto cache = dyn_cast<CacheType>(capture.getType()))
        inputs.push_back(
            sched::CacheOp::create(builder, op->getLoc(), getLayerType(cache), *layer));
      else
        inputs.push_back(buffers.lookup(capture));
    }

    std::optional<sched::Space> space = getSpace(op, captures);
    if (!space)
      return op->emitError() << "the logits have a row for each token, not for each row to be "
                                "scored; llm-gather-scored-rows has to run before";
    SmallVector<Value> outputs;
    auto stageSlice = getSlice(op);
    for (Value result : op->getResults())
      if (isa<RankedTensorType>(result.getType())) {
        int64_t columns = getColumns(result);
        auto type = sched::getBufferType(builder.getContext(), columns, columns);
        Value buffer = sched::BufferOp::create(builder, op->getLoc(), type, *space, IntegerAttr());
        define(result, buffer, buffer, *space);
        outputs.push_back(buffer);
      }

    sched::KernelOp kernel = getKernel(op, captures);
    if (readsUnsynchronised(inputs, layer)) {
      sched::BarrierOp::create(builder, op->getLoc());
      written.clear();
      writtenLayers.clear();
    }
    written.insert(outputs.begin(), outputs.end());
    if (layer && writesCache(op))
      writtenLayers.insert(*layer);
    sched::StageOp::create(builder, op->getLoc(), kernel.getSymName(), inputs, outputs, stageSlice);
    return success();
  }

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

  // The layer of the cache that an operation or its parts touch.
  static LogicalResult getLayer(Operation *op, std::optional<int64_t> &layer) {
    WalkResult result = op->walk([&](CachedOpInterface cached) {
      if (layer && *layer != cached.getCacheLayer()) {
        op->emitError() << "a stage touches one layer of the cache, not " << *layer << " and "
                        << cached.getCacheLayer();
        return WalkResult::interrupt();
      }
      layer = cached.getCacheLayer();
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  static CacheType getLayerType(CacheType cache) { return cache.withLayers(1); }

  static bool writesCache(Operation *op) {
    return llvm::any_of(op->getResultTypes(), [](Type type) { return isa<CacheType>(type); });
  }

  // The logits have a row for each row to be scored, also in @decode, where that is every row.
  bool isLogits(Value result) {
    Operation *terminator = function.getBody().front().getTerminator();
    return logits && terminator->getOperand(*logits) == result;
  }

  // The space of the results; nothing for logits that would have a row for each token.
  std::optional<sched::Space> getSpace(Operation *op, ArrayRef<Value> captures) {
    if (isa<GatherRowsOp>(op))
      return sched::Space::scored;
    sched::Space space = getOperandSpace(captures);
    if (llvm::none_of(op->getResults(), [&](Value result) { return isLogits(result); }))
      return space;
    if (space == sched::Space::scored || decode)
      return sched::Space::scored;
    return std::nullopt;
  }

  sched::Space getOperandSpace(ArrayRef<Value> captures) {
    for (Value capture : captures)
      if (spaces.contains(capture))
        return spaces.lookup(capture);
    return sched::Space::tokens;
  }

  // Few rows are cut by columns, so that each weight is streamed once; many by rows.
  sched::Slice getSlice(Operation *op) {
    sched::Slice slice = decode ? sched::Slice::columns : sched::Slice::rows;
    bool hasMatrix = false;
    op->walk([&](Operation *inner) {
      if (isa<PagedAttentionOp, AttentionOp>(inner))
        slice = sched::Slice::heads;
      hasMatrix |= isa<LinearOp, HeadLinearOp, ExpertLinearOp>(inner);
    });
    return slice == sched::Slice::columns && !hasMatrix ? sched::Slice::rows : slice;
  }

  Value getConstant(Value weight) {
    sched::WeightOp symbol = weights.get(weight);
    Value &constant = constants[symbol];
    if (!constant)
      constant = sched::ConstantOp::create(builder, weight.getLoc(), symbol.getType(),
                                           symbol.getSymName());
    return constant;
  }

  sched::KernelOp getKernel(Operation *op, ArrayRef<Value> captures) {
    MLIRContext *context = op->getContext();
    auto fused = dyn_cast<FusedOp>(op);
    StringRef kind = fused ? fused.getKind() : op->getName().stripDialect();
    SmallVector<Type> inputs{BatchType::get(context)}, results;
    for (Value capture : captures) {
      auto cache = dyn_cast<CacheType>(capture.getType());
      inputs.push_back(cache ? Type(getLayerType(cache)) : capture.getType());
    }
    for (Type type : op->getResultTypes())
      if (!isa<CacheType>(type))
        results.push_back(type);

    OpBuilder body(context);
    auto kernel = sched::KernelOp::create(body, op->getLoc(), "", kind,
                                          FunctionType::get(context, inputs, results));
    Block &block = kernel.getBody().emplaceBlock();
    IRMapping mapping;
    block.addArguments(inputs, SmallVector<Location>(inputs.size(), op->getLoc()));
    mapping.map(function.getArgument(0), block.getArgument(0));
    for (auto [capture, argument] : llvm::zip_equal(captures, block.getArguments().drop_front()))
      mapping.map(capture, argument);

    body.setInsertionPointToStart(&block);
    SmallVector<Value> yielded;
    auto yield = [&](ValueRange values) {
      for (Value value : values)
        if (!isa<CacheType>(value.getType()))
          yielded.push_back(mapping.lookup(value));
    };
    if (fused) {
      for (Operation &inner : fused.getBody().front().without_terminator())
        body.clone(inner, mapping);
      yield(fused.getBody().front().getTerminator()->getOperands());
    } else {
      body.clone(*op, mapping);
      yield(op->getResults());
    }
    sched::YieldOp::create(body, op->getLoc(), yielded);
    // Every layer shares the kernel: seen from it, its layer is the only one.
    kernel.walk([](CachedOpInterface cached) {
      cached.setCacheLayer(0);
      for (Value result : cached->getResults())
        if (auto cache = dyn_cast<CacheType>(result.getType()))
          result.setType(getLayerType(cache));
    });
    return kernels.intern(kernel, kind);
  }

  bool readsUnsynchronised(ArrayRef<Value> inputs, std::optional<int64_t> layer) {
    if (layer && writtenLayers.contains(*layer))
      return true;
    return llvm::any_of(inputs, [&](Value input) { return written.contains(roots.lookup(input)); });
  }

  void define(Value rows, Value buffer, Value root, sched::Space space) {
    buffers[rows] = buffer;
    roots[buffer] = root;
    spaces[rows] = space;
  }

  func::FuncOp function;
  WeightTable &weights;
  Interner &kernels;
  OpBuilder builder;
  bool decode;
  std::optional<unsigned> logits; // which result
  sched::ProgramOp program;

  llvm::DenseMap<Value, Value> buffers;         // rows → buffer or view
  llvm::DenseMap<Value, Value> roots;           // buffer or view → buffer
  llvm::DenseMap<Value, sched::Space> spaces;   // of rows
  llvm::DenseMap<Operation *, Value> constants; // sched.weight → operand
  llvm::DenseSet<Value> written;                // buffers since the last barrier
  llvm::DenseSet<int64_t> writtenLayers;        // of the cache, likewise
};

struct ToSched : impl::LLMToSchedBase<ToSched> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    WeightTable weights(module);
    Interner kernels(module);
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    for (func::FuncOp function : functions) {
      if (failed(PhaseLowering(function, weights, kernels).run()))
        return signalPassFailure();
      function.erase();
    }
    weights.place();
  }
};

} // namespace
} // namespace tenon
