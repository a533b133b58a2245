// See KernelMatch.h. One matcher for each kernel of kernels/shapes.h, in its order.
#include "codegen/kernels/KernelMatch.h"
#include "codegen/kernels/shapes.h"
#include "runtime/kernel_abi.h"

using namespace mlir;
using namespace tenon::llm;

namespace tenon {

namespace {

int32_t getFormat(WeightType type) {
  const StorageInfo &info = getStorageInfo(type.getStorage());
  switch (type.getLayout()) {
  case Layout::plain:
    return type.getStorage() == Storage::F64 ? TK_PLAIN_F64 : TK_PLAIN_F32;
  case Layout::x16k1:
    return TK_F32;
  case Layout::x16k2:
    return type.getStorage() == Storage::BF16 ? TK_BF16 : TK_F16;
  case Layout::x1k8:
    return type.getStorage() == Storage::BF16 ? TK_BF16_ROWS : TK_F16_ROWS;
  case Layout::x16k4:
    if (info.bits == 4)
      return info.groupSize == 16 ? TK_U4MG16 : TK_U4M;
    if (info.hasMin)
      return TK_U8M;
    return info.groupSize == 16 ? TK_S8G16 : TK_S8;
  }
  llvm_unreachable("all layouts");
}

int32_t getActivation(ActivationKind kind) {
  switch (kind) {
  case ActivationKind::silu:
    return TK_ACT_SILU;
  case ActivationKind::gelu:
    return TK_ACT_GELU_ERF;
  case ActivationKind::gelu_tanh:
    return TK_ACT_GELU_TANH;
  case ActivationKind::quick_gelu:
    return TK_ACT_QUICK_GELU;
  case ActivationKind::relu:
    return TK_ACT_RELU;
  case ActivationKind::sigmoid:
    return TK_ACT_SIGMOID;
  }
  llvm_unreachable("all activations");
}

// Nothing when no kernel has the norm.
std::optional<int32_t> getNorm(RMSNormOp norm) {
  if (norm.getOffset().isZero())
    return TK_NORM_RMS;
  if (norm.getOffset().isExactlyValue(1.0))
    return TK_NORM_RMS_PLUS_ONE;
  return std::nullopt;
}

int32_t getStyle(RopeStyle style) {
  return style == RopeStyle::half ? TK_ROPE_HALF : TK_ROPE_INTERLEAVED;
}

int32_t getCacheDtype(CacheType cache) {
  Type element = cache.getElementType();
  return element.isF32()    ? TENON_F32
         : element.isBF16() ? TENON_BF16
         : element.isF16()  ? TENON_F16
                            : TENON_I8;
}

// A stage and the body of its kernel.
class Matcher {
public:
  Matcher(sched::StageOp stage, sched::KernelOp kernel, bool isDecode)
      : stage(stage), body(kernel.getBody().front()), isDecode(isDecode) {
    for (Operation &op : body.without_terminator())
      ops.push_back(&op);
  }

  std::optional<KernelMatch> run() {
    using Match = std::optional<KernelMatch> (Matcher::*)();
    for (Match match :
         {&Matcher::embedding, &Matcher::linear, &Matcher::gatedMLP, &Matcher::expertLinear,
          &Matcher::headLinear, &Matcher::gatedExperts, &Matcher::topK, &Matcher::slots,
          &Matcher::heads, &Matcher::norm, &Matcher::ropeAngles, &Matcher::rope, &Matcher::append,
          &Matcher::attention, &Matcher::ropeAttention, &Matcher::unary, &Matcher::clamp,
          &Matcher::binary})
      if (std::optional<KernelMatch> found = (this->*match)())
        return found;
    return std::nullopt;
  }

private:
  // The operation at `next` if it is an `Op`, which is then passed over.
  template <typename Op> Op take(size_t &next) {
    auto op = next < ops.size() ? dyn_cast<Op>(ops[next]) : Op();
    next += bool(op);
    return op;
  }

  // Where a value of the body comes from in the stage, if it is an argument.
  std::optional<unsigned> input(Value value) const {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != &body || argument.getArgNumber() == 0)
      return std::nullopt;
    return argument.getArgNumber() - 1;
  }
  bool isInput(Value value) const { return input(value).has_value(); }
  bool areInputs(ArrayRef<Value> values) const {
    return llvm::all_of(values, [&](Value value) { return isInput(value); });
  }
  unsigned output(unsigned result = 0) { return stage.getInputs().size() + result; }
  bool yields(Value value, unsigned result = 0) const {
    Operation *yield = body.getTerminator();
    return yield->getNumOperands() > result && yield->getOperand(result) == value;
  }
  bool yieldsOnly(Value value) const {
    return body.getTerminator()->getNumOperands() == 1 && yields(value);
  }

  // Inputs, then the result.
  SmallVector<unsigned> getOperands(ArrayRef<Value> inputs) {
    SmallVector<unsigned> io;
    for (Value value : inputs)
      io.push_back(*input(value));
    io.push_back(output());
    return io;
  }

  int32_t stride(Value value) {
    return sched::getRowStride(cast<MemRefType>(stage.getOperand(*input(value)).getType()));
  }
  int32_t outputStride(unsigned result = 0) {
    return sched::getRowStride(cast<MemRefType>(stage.getOperand(output(result)).getType()));
  }
  // Whether the kernel may round more than in @decode. Said only where a kernel then does, so that
  // elsewhere both programs share one.
  int32_t mayRound(int32_t format) {
    return !isDecode &&
           (!tk_is_quantised(format) || (format == TK_U4M && rows() == TK_ROWS_TOKENS));
  }

  int32_t rows() {
    Value buffer = stage.getOutputs().empty() ? Value() : stage.getOutputs()[0];
    auto op = buffer ? buffer.getDefiningOp<sched::BufferOp>() : sched::BufferOp();
    return op && op.getSpace() == sched::Space::scored ? TK_ROWS_SCORED : TK_ROWS_TOKENS;
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  std::optional<KernelMatch> embedding() {
    if (ops.size() != 1 || !isa<EmbeddingOp, PositionEmbeddingOp, TypeEmbeddingOp>(ops[0]))
      return std::nullopt;
    auto byPosition = dyn_cast<PositionEmbeddingOp>(ops[0]);
    auto rows = cast<TypedValue<WeightType>>(ops[0]->getOperand(1)); // after the batch
    WeightType table = rows.getType();
    if (!isInput(rows) || table.getLayout() == Layout::plain)
      return std::nullopt;
    tk_embedding_shape shape = {};
    shape.vocab = table.getRows();
    shape.cols = table.getColumns();
    shape.format = getFormat(table);
    shape.out_stride = outputStride();
    shape.scale = 1;
    shape.index = byPosition                     ? TK_INDEX_POSITIONS
                  : isa<TypeEmbeddingOp>(ops[0]) ? TK_INDEX_TYPES
                                                 : TK_INDEX_IDS;
    shape.offset = byPosition ? byPosition.getOffset() : 0;
    return makeMatch("tk_embedding", shape, {*input(rows), output()});
  }

  // What stands before a product: rows as they are, or normed ones.
  struct Prologue {
    Value rows;
    int32_t norm = TK_NORM_NONE;
    float eps = 0;
    Value weight, bias;
  };
  Prologue prologue(size_t &next, Value &normed) {
    Prologue result;
    auto norm = next < ops.size() ? dyn_cast<NormOpInterface>(ops[next]) : NormOpInterface();
    if (!norm || norm.getNormHeads() != 1) // a product's own norm is of whole rows
      return result;
    tk_norm_shape shape = {};
    if (!readNorm(norm, shape, result.weight, result.bias))
      return result;
    ++next;
    normed = norm->getResult(0);
    result.rows = norm.getNormInput();
    result.norm = shape.norm;
    result.eps = shape.eps;
    return result;
  }

  // [rms_norm] linear [activation] [add]
  std::optional<KernelMatch> linear() {
    size_t next = 0;
    Value normed;
    Prologue before = prologue(next, normed);
    auto op = take<LinearOp>(next);
    if (!op || (normed && op.getInput() != normed) || !isInput(op.getWeight()) ||
        op.getWeight().getType().getLayout() == Layout::plain)
      return std::nullopt;
    if (!normed)
      before.rows = op.getInput();
    Value result = op.getResult(), residual;
    int32_t activation = TK_ACT_NONE;
    if (auto act = take<ActivationOp>(next)) {
      if (act.getInput() != result)
        return std::nullopt;
      activation = getActivation(act.getKind());
      result = act.getResult();
    }
    if (auto add = take<AddOp>(next)) {
      if ((add.getLhs() != result) == (add.getRhs() != result))
        return std::nullopt;
      residual = add.getLhs() == result ? add.getRhs() : add.getLhs();
      result = add.getResult();
    }
    SmallVector<Value> needed{before.rows, op.getWeight()};
    for (Value optional : {before.weight, before.bias, Value(op.getBias()), residual})
      if (optional)
        needed.push_back(optional);
    if (next != ops.size() || !yieldsOnly(result) || !areInputs(needed))
      return std::nullopt;

    WeightType weight = op.getWeight().getType();
    tk_linear_shape shape = {};
    shape.rows = rows();
    shape.cols = weight.getColumns();
    shape.out_cols = weight.getRows();
    shape.format = getFormat(weight);
    shape.x_stride = stride(before.rows);
    shape.out_stride = outputStride();
    shape.norm = before.norm;
    shape.eps = before.eps;
    shape.norm_bias = bool(before.bias);
    shape.bias = bool(op.getBias());
    shape.activation = activation;
    shape.residual = bool(residual);
    shape.residual_stride = residual ? stride(residual) : 0;
    shape.may_round = mayRound(shape.format);
    return makeMatch("tk_linear", shape, getOperands(needed), tk_linear_scratch(&shape));
  }

  // [rms_norm] linear, slice, slice, activation, mul
  std::optional<KernelMatch> gatedMLP() {
    size_t next = 0;
    Value normed;
    Prologue before = prologue(next, normed);
    auto op = take<LinearOp>(next);
    auto gate = take<SliceOp>(next);
    auto up = take<SliceOp>(next);
    auto act = take<ActivationOp>(next);
    auto mul = take<MulOp>(next);
    if (!op || !gate || !up || !act || !mul || next != ops.size() ||
        (normed && op.getInput() != normed) || !isInput(op.getWeight()) ||
        op.getWeight().getType().getLayout() == Layout::plain)
      return std::nullopt;
    if (!normed)
      before.rows = op.getInput();
    int64_t width = getColumns(mul);
    if (gate.getInput() != op || up.getInput() != op || gate.getBegin() != 0 ||
        int64_t(gate.getEnd()) != width || int64_t(up.getBegin()) != width ||
        getColumns(op) != 2 * width || act.getInput() != gate ||
        !(mul.getLhs() == act ? mul.getRhs() == up : mul.getLhs() == up && mul.getRhs() == act) ||
        !yieldsOnly(mul))
      return std::nullopt;
    SmallVector<Value> needed{before.rows, op.getWeight()};
    for (Value optional : {before.weight, before.bias, Value(op.getBias())})
      if (optional)
        needed.push_back(optional);
    if (!areInputs(needed))
      return std::nullopt;

    tk_gated_mlp_shape shape = {};
    shape.rows = rows();
    shape.cols = op.getWeight().getType().getColumns();
    shape.out_cols = width;
    shape.format = getFormat(op.getWeight().getType());
    shape.x_stride = stride(before.rows);
    shape.out_stride = outputStride();
    shape.norm = before.norm;
    shape.eps = before.eps;
    shape.norm_bias = bool(before.bias);
    shape.bias = bool(op.getBias());
    shape.activation = getActivation(act.getKind());
    shape.may_round = mayRound(shape.format);
    return makeMatch("tk_gated_mlp", shape, getOperands(needed), tk_gated_mlp_scratch(&shape));
  }

  //===--------------------------------------------------------------------===//
  // Experts
  //===--------------------------------------------------------------------===//

  static tk_expert_linear_shape stackShape(WeightType weight) {
    tk_expert_linear_shape shape = {};
    shape.experts = weight.getShape()[0];
    shape.cols = weight.getColumns();
    shape.out_cols = weight.getMatrixRows();
    shape.format = getFormat(weight);
    return shape;
  }

  // What several linears of one choice have in common, and their operands.
  std::optional<KernelMatch> experts(ExpertLinearOp op, ExpertLinearOp up, int32_t activation) {
    SmallVector<Value> needed{op.getInput(), op.getChoice(), op.getWeight()};
    if (op.getBias())
      needed.push_back(op.getBias());
    if (up)
      needed.push_back(up.getWeight());
    if (up && up.getBias())
      needed.push_back(up.getBias());
    if (!areInputs(needed) || op.getWeight().getType().getLayout() == Layout::plain)
      return std::nullopt;
    tk_expert_linear_shape shape = stackShape(op.getWeight().getType());
    shape.rows = rows();
    shape.slots = op.getSlots();
    shape.x_stride = stride(op.getInput());
    shape.shared = op.isShared();
    shape.choice = 1;
    shape.choice_stride = stride(op.getChoice());
    shape.out_stride = outputStride();
    shape.bias = bool(op.getBias());
    shape.gated = bool(up);
    shape.activation = activation;
    return makeMatch("tk_expert_linear", shape, getOperands(needed),
                     tk_expert_linear_scratch(&shape));
  }

  std::optional<KernelMatch> expertLinear() {
    size_t next = 0;
    auto op = take<ExpertLinearOp>(next);
    if (!op || next != ops.size())
      return std::nullopt;
    return experts(op, ExpertLinearOp(), TK_ACT_NONE);
  }

  // expert_linear, activation, expert_linear, mul
  std::optional<KernelMatch> gatedExperts() {
    size_t next = 0;
    auto gate = take<ExpertLinearOp>(next);
    auto act = take<ActivationOp>(next);
    auto up = take<ExpertLinearOp>(next);
    auto mul = take<MulOp>(next);
    if (!gate || !act || !up || !mul || next != ops.size() || act.getInput() != gate ||
        gate.getInput() != up.getInput() || gate.getChoice() != up.getChoice() ||
        gate.getWeight().getType() != up.getWeight().getType() ||
        bool(gate.getBias()) != bool(up.getBias()) || !yieldsOnly(mul) ||
        !(mul.getLhs() == act ? mul.getRhs() == up : mul.getLhs() == up && mul.getRhs() == act))
      return std::nullopt;
    return experts(gate, up, getActivation(act.getKind()));
  }

  // Every head has an expert of its own.
  std::optional<KernelMatch> headLinear() {
    size_t next = 0;
    auto op = take<HeadLinearOp>(next);
    if (!op || next != ops.size() || !areInputs({op.getInput(), op.getWeight()}) ||
        op.getWeight().getType().getLayout() == Layout::plain)
      return std::nullopt;
    tk_expert_linear_shape shape = stackShape(op.getWeight().getType());
    shape.rows = rows();
    shape.slots = shape.experts;
    shape.x_stride = stride(op.getInput());
    shape.out_stride = outputStride();
    return makeMatch("tk_expert_linear", shape,
                     {*input(op.getInput()), *input(op.getWeight()), output()},
                     tk_expert_linear_scratch(&shape));
  }

  std::optional<KernelMatch> topK() {
    size_t next = 0;
    auto op = take<TopKOp>(next);
    if (!op || next != ops.size() || !isInput(op.getInput()) ||
        (op.getBias() && !isInput(op.getBias())))
      return std::nullopt;
    tk_top_k_shape shape = {};
    shape.rows = rows();
    shape.cols = getColumns(op.getInput());
    shape.count = op.getCount();
    shape.groups = op.getGroups();
    shape.top_groups = op.getTopGroups();
    shape.group_score =
        op.getGroupScore() == GroupScore::largest ? TK_GROUP_LARGEST : TK_GROUP_LARGEST_TWO;
    shape.bias = bool(op.getBias());
    shape.x_stride = stride(op.getInput());
    shape.out_stride = outputStride();
    SmallVector<unsigned> io{*input(op.getInput())};
    if (op.getBias())
      io.push_back(*input(op.getBias()));
    io.push_back(output());
    return makeMatch("tk_top_k", shape, io, tk_top_k_scratch(&shape));
  }

  // gather_columns or combine
  std::optional<KernelMatch> slots() {
    if (ops.size() != 1 || !isa<GatherColumnsOp, CombineOp>(ops[0]) ||
        !areInputs(SmallVector<Value>(ops[0]->getOperands())))
      return std::nullopt;
    Value x = ops[0]->getOperand(0), y = ops[0]->getOperand(1);
    tk_slots_shape shape = {};
    shape.rows = rows();
    shape.slots = getColumns(y);
    shape.cols = getColumns(isa<CombineOp>(ops[0]) ? ops[0]->getResult(0) : x);
    shape.x_stride = stride(x);
    shape.y_stride = stride(y);
    shape.out_stride = outputStride();
    return makeMatch(isa<CombineOp>(ops[0]) ? "tk_combine" : "tk_gather_columns", shape,
                     {*input(x), *input(y), output()});
  }

  // join_heads or slice_heads
  std::optional<KernelMatch> heads() {
    if (ops.size() != 1 || !areInputs(SmallVector<Value>(ops[0]->getOperands())))
      return std::nullopt;
    tk_heads_shape shape = {};
    shape.rows = rows();
    shape.out_stride = outputStride();
    if (auto join = dyn_cast<JoinHeadsOp>(ops[0])) {
      shape.heads = join.getHeads();
      shape.a_dim = getColumns(join.getLhs()) / shape.heads;
      shape.b_dim = getColumns(join.getRhs()) / shape.heads;
      shape.a_stride = stride(join.getLhs());
      shape.b_stride = stride(join.getRhs());
      return makeMatch("tk_join_heads", shape,
                       {*input(join.getLhs()), *input(join.getRhs()), output()});
    }
    auto slice = dyn_cast<SliceHeadsOp>(ops[0]);
    if (!slice)
      return std::nullopt;
    shape.heads = slice.getHeads();
    shape.a_dim = slice.getHeadDim();
    shape.first = slice.getBegin();
    shape.out_dim = slice.getEnd() - slice.getBegin();
    shape.a_stride = stride(slice.getInput());
    return makeMatch("tk_slice_heads", shape, {*input(slice.getInput()), output()});
  }

  //===--------------------------------------------------------------------===//
  // Norms
  //===--------------------------------------------------------------------===//

  // The kind of a norm and its weights; false if no kernel knows it.
  static bool readNorm(Operation *op, tk_norm_shape &shape, Value &weight, Value &bias) {
    if (auto rms = dyn_cast<RMSNormOp>(op)) {
      std::optional<int32_t> kind = getNorm(rms);
      shape.norm = kind.value_or(TK_NORM_NONE);
      shape.eps = rms.getEps().convertToDouble();
      weight = rms.getWeight();
      return kind.has_value();
    }
    if (auto layer = dyn_cast<LayerNormOp>(op)) {
      shape.norm = TK_NORM_LAYER;
      shape.eps = layer.getEps().convertToDouble();
      weight = layer.getWeight();
      bias = layer.getBias();
      return true;
    }
    return false;
  }

  // norm, or add and norm, whose results are then both wanted
  std::optional<KernelMatch> norm() {
    size_t next = 0;
    auto add = take<AddOp>(next);
    auto op = take<NormOpInterface>(next);
    if (!op || next != ops.size())
      return std::nullopt;
    tk_norm_shape shape = {};
    Value weight, bias;
    if (!readNorm(op, shape, weight, bias))
      return std::nullopt;
    SmallVector<Value> needed;
    if (add)
      needed.append({add.getLhs(), add.getRhs()});
    else
      needed.push_back(op.getNormInput());
    needed.push_back(weight);
    if (bias)
      needed.push_back(bias);
    Value normed = op->getResult(0);
    if (!areInputs(needed) ||
        !(add ? op.getNormInput() == add && yields(add, 0) && yields(normed, 1)
              : yieldsOnly(normed)))
      return std::nullopt;

    shape.rows = rows();
    shape.groups = op.getNormHeads();
    shape.cols = getColumns(normed) / shape.groups;
    shape.x_stride = stride(needed[0]);
    shape.y_stride = add ? stride(needed[1]) : 0;
    shape.sum_stride = add ? outputStride(0) : 0;
    shape.out_stride = outputStride(add ? 1 : 0);
    shape.bias = bool(bias);
    SmallVector<unsigned> io;
    for (Value value : needed)
      io.push_back(*input(value));
    io.push_back(output(0));
    if (add)
      io.push_back(output(1));
    return makeMatch(add ? "tk_add_norm" : "tk_norm", shape, io);
  }

  //===--------------------------------------------------------------------===//
  // Positions and attention
  //===--------------------------------------------------------------------===//

  std::optional<KernelMatch> ropeAngles() {
    size_t next = 0;
    auto op = take<RopeAnglesOp>(next);
    if (!op || next != ops.size() || !isInput(op.getFrequencies()))
      return std::nullopt;
    tk_rope_angles_shape shape = {};
    shape.rotary_dim = getColumns(op);
    shape.out_stride = outputStride();
    shape.factor = op.getFactor().convertToDouble();
    shape.original = op.getOriginal();
    shape.dynamic = op.getDynamic().convertToDouble();
    return makeMatch("tk_rope_angles", shape, {*input(op.getFrequencies()), output()});
  }

  std::optional<KernelMatch> rope() {
    size_t next = 0;
    auto op = take<RopeOp>(next);
    if (!op || next != ops.size() || !areInputs({op.getInput(), op.getAngles()}))
      return std::nullopt;
    tk_rope_shape shape = {};
    shape.heads = op.getHeads();
    shape.head_dim = op.getHeadDim();
    shape.rotary_dim = getColumns(op.getAngles());
    shape.style = getStyle(op.getStyle());
    shape.x_stride = stride(op.getInput());
    shape.angles_stride = stride(op.getAngles());
    shape.out_stride = outputStride();
    shape.first = op.getFirst();
    return makeMatch("tk_rope", shape, {*input(op.getInput()), *input(op.getAngles()), output()});
  }

  std::optional<KernelMatch> append() {
    size_t next = 0;
    auto op = take<KVAppendOp>(next);
    if (!op || next != ops.size() || !areInputs({op.getKey(), op.getValue(), op.getCache()}))
      return std::nullopt;
    CacheType cache = op.getCache().getType();
    tk_kv_append_shape shape = {};
    shape.kv_heads = cache.getHeads();
    shape.head_dim = cache.getHeadDim();
    shape.k_stride = stride(op.getKey());
    shape.v_stride = stride(op.getValue());
    shape.kv_dtype = getCacheDtype(cache);
    shape.value_dim = cache.getValueDim();
    shape.values_in_keys = cache.getValuesInKeys();
    shape.memory = cache.getMemory();
    if (cache.getValuesInKeys())
      return makeMatch("tk_kv_append", shape, {*input(op.getKey()), *input(op.getCache())});
    return makeMatch("tk_kv_append", shape,
                     {*input(op.getKey()), *input(op.getValue()), *input(op.getCache())});
  }

  tk_attention_shape attentionShape(PagedAttentionOp op, int32_t queryStride) {
    CacheType cache = op.getCache().getType();
    tk_attention_shape shape = {};
    shape.heads = op.getNumHeads();
    shape.kv_heads = cache.getHeads();
    shape.head_dim = cache.getHeadDim();
    shape.q_stride = queryStride;
    shape.out_stride = outputStride();
    shape.kv_dtype = getCacheDtype(cache);
    shape.scale = op.getScale().convertToDouble();
    shape.softcap = op.getSoftcap().convertToDouble();
    shape.window = op.getWindow();
    shape.decode = isDecode;
    if (auto context = op->getParentOfType<ModuleOp>()->getAttrOfType<IntegerAttr>("llm.context"))
      shape.context = context.getInt();
    shape.sinks = bool(op.getSinks());
    shape.value_dim = cache.getValueDim();
    shape.values_in_keys = cache.getValuesInKeys();
    shape.keys = cache.getMemory() ? TK_KEYS_MEMORY : TK_KEYS_CONTEXT;
    setBias(op, shape);
    return shape;
  }

  template <typename Op> static void setBias(Op op, tk_attention_shape &shape) {
    if (!op.getBias())
      return;
    shape.bias = op.getBiasBy() == BiasIndex::distance ? TK_BIAS_DISTANCE : TK_BIAS_KEY;
    shape.bias_length = op.getBias().getType().getColumns();
    shape.bias_origin = op.getBiasOrigin();
  }

  // What attention reads beside rows and cache, in the kernels' order.
  template <typename Op> static void appendTables(Op op, SmallVectorImpl<Value> &values) {
    for (Value table : {op.getBias(), op.getSinks()})
      if (table)
        values.push_back(table);
  }

  // An encoder's: keys and values are rows of the batch.
  std::optional<KernelMatch> encoderAttention(AttentionOp op) {
    SmallVector<Value> needed{op.getQuery(), op.getKey(), op.getValue()};
    appendTables(op, needed);
    if (!op.getBidirectional() || !areInputs(needed) ||
        getColumns(op.getValue()) != getColumns(op.getKey()))
      return std::nullopt;
    tk_attention_shape shape = {};
    shape.heads = op.getNumHeads();
    shape.kv_heads = op.getNumKvHeads();
    shape.head_dim = op.getHeadDim();
    shape.q_stride = stride(op.getQuery());
    shape.k_stride = stride(op.getKey());
    shape.v_stride = stride(op.getValue());
    shape.out_stride = outputStride();
    shape.kv_dtype = TENON_F32;
    shape.scale = op.getScale().convertToDouble();
    shape.softcap = op.getSoftcap().convertToDouble();
    shape.sinks = bool(op.getSinks());
    shape.keys = TK_KEYS_TOKENS;
    setBias(op, shape);
    return makeMatch("tk_attention", shape, getOperands(needed), tk_attention_scratch(&shape));
  }

  std::optional<KernelMatch> attention() {
    size_t next = 0;
    if (auto op = ops.size() == 1 ? dyn_cast<AttentionOp>(ops[0]) : AttentionOp())
      return encoderAttention(op);
    auto op = take<PagedAttentionOp>(next);
    if (!op || next != ops.size())
      return std::nullopt;
    SmallVector<Value> needed{op.getQuery(), op.getCache()};
    appendTables(op, needed);
    if (!areInputs(needed))
      return std::nullopt;
    tk_attention_shape shape = attentionShape(op, stride(op.getQuery()));
    return makeMatch("tk_attention", shape, getOperands(needed), tk_attention_scratch(&shape));
  }

  // rope, rope, kv_append, paged_attention
  std::optional<KernelMatch> ropeAttention() {
    size_t next = 0;
    auto query = take<RopeOp>(next);
    auto key = take<RopeOp>(next);
    auto append = take<KVAppendOp>(next);
    auto op = take<PagedAttentionOp>(next);
    if (!isDecode || !query || !key || !append || !op || next != ops.size())
      return std::nullopt;
    if (op.getQuery() != query.getResult())
      std::swap(query, key);
    if (op.getQuery() != query || append.getKey() != key || op.getCache() != append ||
        query.getAngles() != key.getAngles() || query.getStyle() != key.getStyle() ||
        query.getFirst() || key.getFirst() || !yieldsOnly(op) ||
        append.getCache().getType().getValuesInKeys())
      return std::nullopt;
    SmallVector<Value> needed{query.getInput(), key.getInput(), append.getValue(),
                              query.getAngles(), append.getCache()};
    appendTables(op, needed);
    if (!areInputs(needed))
      return std::nullopt;
    tk_rope_attention_shape shape = {};
    shape.attention = attentionShape(op, stride(query.getInput()));
    shape.k_stride = stride(key.getInput());
    shape.v_stride = stride(append.getValue());
    shape.rotary_dim = getColumns(query.getAngles());
    shape.style = getStyle(query.getStyle());
    shape.angles_stride = stride(query.getAngles());
    return makeMatch("tk_rope_attention", shape, getOperands(needed),
                     tk_rope_attention_scratch(&shape));
  }

  //===--------------------------------------------------------------------===//
  // Element by element
  //===--------------------------------------------------------------------===//

  std::optional<KernelMatch> unary() {
    if (ops.size() != 1)
      return std::nullopt;
    tk_unary_shape shape = {};
    StringRef function;
    if (isa<GatherRowsOp>(ops[0])) {
      function = "tk_gather_rows";
    } else if (auto activation = dyn_cast<ActivationOp>(ops[0])) {
      function = "tk_activation";
      shape.activation = getActivation(activation.getKind());
    } else if (auto scale = dyn_cast<ScaleOp>(ops[0])) {
      function = "tk_scale";
      shape.value = scale.getFactor().convertToDouble();
    } else if (auto softcap = dyn_cast<SoftcapOp>(ops[0])) {
      function = "tk_softcap";
      shape.value = softcap.getCap().convertToDouble();
    } else if (auto shift = dyn_cast<ShiftOp>(ops[0])) {
      function = "tk_shift";
      shape.value = shift.getValue().convertToDouble();
    } else if (isa<SoftmaxOp>(ops[0])) {
      function = "tk_softmax";
    } else if (isa<NormaliseOp>(ops[0])) {
      function = "tk_normalise";
    } else {
      return std::nullopt;
    }
    Value rowsIn = ops[0]->getOperand(0);
    if (!isInput(rowsIn))
      return std::nullopt;
    shape.rows = rows();
    shape.cols = getColumns(rowsIn);
    shape.x_stride = stride(rowsIn);
    shape.out_stride = outputStride();
    return makeMatch(function, shape, {*input(rowsIn), output()});
  }

  std::optional<KernelMatch> clamp() {
    size_t next = 0;
    auto op = take<ClampOp>(next);
    if (!op || next != ops.size() || !isInput(op.getInput()))
      return std::nullopt;
    tk_clamp_shape shape = {};
    shape.rows = rows();
    shape.cols = getColumns(op);
    shape.x_stride = stride(op.getInput());
    shape.out_stride = outputStride();
    shape.low = op.getLow().convertToDouble();
    shape.high = op.getHigh().convertToDouble();
    return makeMatch("tk_clamp", shape, {*input(op.getInput()), output()});
  }

  std::optional<KernelMatch> binary() {
    if (ops.size() != 1 || !isa<AddOp, MulOp>(ops[0]) ||
        !areInputs(SmallVector<Value>(ops[0]->getOperands())))
      return std::nullopt;
    Value lhs = ops[0]->getOperand(0), rhs = ops[0]->getOperand(1);
    tk_binary_shape shape = {};
    shape.rows = rows();
    shape.cols = getColumns(lhs);
    shape.a_stride = stride(lhs);
    shape.b_stride = stride(rhs);
    shape.out_stride = outputStride();
    return makeMatch(isa<AddOp>(ops[0]) ? "tk_add" : "tk_mul", shape,
                     {*input(lhs), *input(rhs), output()});
  }

  sched::StageOp stage;
  Block &body;
  bool isDecode;
  SmallVector<Operation *> ops;
};

} // namespace

std::optional<KernelMatch> matchKernel(sched::StageOp stage, sched::KernelOp kernel, bool isDecode,
                                       Layout halves) {
  for (Type type : kernel.getType().getInputs())
    if (auto weight = dyn_cast<WeightType>(type))
      if (Layout layout = weight.getLayout();
          (layout == Layout::x16k2 || layout == Layout::x1k8) && layout != halves)
        return std::nullopt;
  return Matcher(stage, kernel, isDecode).run();
}

} // namespace tenon
