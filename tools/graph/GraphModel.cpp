// Reads a function of the llm dialect, or a sched.program, into a Graph. Units.cpp cuts it.
#include "tools/graph/GraphModel.h"
#include "codegen/Error.h"
#include "ir/LLM.h"
#include "ir/Sched.h"
#include "mlir/Support/DebugStringHelper.h"
#include "tools/graph/Units.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tenon::llm;

namespace tenon::graph {

namespace {

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

std::string toText(Attribute attribute) {
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return std::to_string(integer.getInt());
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return llvm::formatv("{0}", llvm::format("%.9g", number.getValueAsDouble()));
  if (auto string = dyn_cast<StringAttr>(attribute))
    return string.getValue().str();
  // An enum's value without its name: `half` of `#llm<rope_style half>`.
  std::string text = debugString(attribute);
  auto [dialect, name] = attribute.getAbstractAttribute().getName().split('.');
  StringRef brief = text;
  if (brief.consume_front(("#" + dialect + "<" + name + " ").str()) && brief.consume_back(">"))
    return brief.str();
  return text;
}

std::string toText(WeightType type) {
  std::string text;
  for (int64_t size : type.getShape())
    text += (text.empty() ? "" : "×") + std::to_string(size);
  text += " " + getStorageInfo(type.getStorage()).name.str();
  if (type.getLayout() != Layout::plain)
    text += ", " + stringifyLayout(type.getLayout()).str();
  return text;
}

// The attributes that an operation has of which nobody has said anything.
NamedAttrList getDefaults(Operation &op) {
  OperationState nothing(op.getLoc(), op.getName());
  Operation *made = Operation::create(nothing);
  NamedAttrList defaults(made->getAttrDictionary());
  made->destroy();
  return defaults;
}

void describeRecipe(Value weight, WeightUse &use) {
  Operation *op = weight.getDefiningOp();
  if (!op)
    return;
  if (auto tensor = dyn_cast<WeightOp>(op)) {
    use.tensors.push_back(tensor.getTensor().str());
    return;
  }
  for (Value operand : op->getOperands())
    describeRecipe(operand, use);
  StringRef step = op->getName().stripDialect();
  step.consume_front("weight_");
  // What happens to each of several tensors is told once.
  SmallVector<StringRef> steps;
  StringRef(use.recipe).split(steps, ", ", -1, false);
  if (!llvm::is_contained(steps, step))
    use.recipe += (use.recipe.empty() ? "" : ", ") + step.str();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

class GraphBuilder {
public:
  explicit GraphBuilder(Graph &graph) : graph(graph) {}

  void addFunction(func::FuncOp function) {
    setRowSymbol(isDecode(function) ? "S" : "T");
    for (Operation &op : function.getBody().front()) {
      if (op.hasTrait<OpTrait::IsTerminator>())
        addOutputs(function, op);
      else if (!isa<WeightOpInterface>(op))
        addOperation(op);
    }
  }

  void addProgram(sched::ProgramOp program, ModuleOp module) {
    setRowSymbol(program.getSymName() == "decode" ? "S" : "T");
    bool barrier = false;
    for (Operation &op : program.getBody().front()) {
      if (isa<sched::BarrierOp>(op))
        barrier = true;
      else if (auto output = dyn_cast<sched::OutputOp>(op))
        addOutput(output.getBuffer(), output.getName());
      else if (auto stage = dyn_cast<sched::StageOp>(op))
        addStage(stage, module, std::exchange(barrier, false));
    }
  }

private:
  static bool isDecode(func::FuncOp function) {
    auto phase = function->getAttrOfType<StringAttr>("llm.phase");
    return phase && phase.getValue() == "decode";
  }

  void setRowSymbol(StringRef symbol) { rows = symbol.str(); }

  //===--------------------------------------------------------------------===//
  // What is known of an operation by itself
  //===--------------------------------------------------------------------===//

  WeightUse describeWeight(Value value) {
    WeightUse use;
    auto type = cast<WeightType>(value.getType());
    use.type = toText(type);
    use.bytes = type.getByteSize();
    auto known = recipes.find(value);
    describeRecipe(known == recipes.end() ? value : known->second, use);
    return use;
  }

  // Rows keep their symbol from operand to result, but for operations that choose rows.
  std::string getRowSymbol(Operation &op) {
    StringRef name = op.getName().stripDialect();
    if (name == "gather_rows")
      return "R";
    if (name == "kv_read")
      return "C";
    for (Value operand : op.getOperands())
      if (auto it = symbols.find(operand); it != symbols.end())
        return it->second;
    return rows;
  }

  ResultInfo describeResult(Type type, StringRef symbol) {
    auto shaped = dyn_cast<ShapedType>(type);
    if (isa<CacheType>(type))
      return {"KV cache", 0};
    if (!shaped || shaped.getRank() != 2 || shaped.isDynamicDim(1))
      return {debugString(type), 0};
    int64_t columns = shaped.getDimSize(1);
    int64_t bits = shaped.getElementType().isIntOrFloat() ? shaped.getElementTypeBitWidth() : 0;
    return {symbol.str() + "×" + std::to_string(columns), columns * bits / 8};
  }

  OpInfo describe(Operation &op) {
    OpInfo info;
    info.mnemonic = op.getName().getStringRef().str();
    info.label = op.getName().stripDialect().str();
    info.family = getFamily(info.label);
    if (auto fused = dyn_cast<FusedOp>(op))
      info.label = fused.getKind().str();
    if (auto activation = dyn_cast<ActivationOp>(op))
      info.label = stringifyActivationKind(activation.getKind()).str();
    NamedAttrList defaults = getDefaults(op);
    for (NamedAttribute attribute : op.getAttrs()) {
      StringRef name = attribute.getName();
      if (name == "layer" && isa<CachedOpInterface>(op))
        info.layer = cast<CachedOpInterface>(op).getCacheLayer();
      else if (name != "kind" && name != "operandSegmentSizes" &&
               defaults.get(name) != attribute.getValue())
        info.attributes.push_back({name.str(), toText(attribute.getValue())});
    }
    for (Value operand : op.getOperands())
      if (isa<WeightType>(operand.getType()))
        info.weights.push_back(describeWeight(operand));
    std::string symbol = getRowSymbol(op);
    for (Value result : op.getResults()) {
      info.results.push_back(describeResult(result.getType(), symbol));
      if (info.results.back().rowBytes)
        symbols[result] = symbol;
    }
    info.detail = getDetail(op, info);
    return info;
  }

  static std::string getDetail(Operation &op, const OpInfo &info) {
    if (auto slice = dyn_cast<SliceOp>(op))
      return llvm::formatv("{0} : {1}", slice.getBegin(), slice.getEnd());
    if (!info.weights.empty()) {
      const WeightUse &weight = info.weights.front();
      std::string name = getShortName(weight.tensors);
      // How it is packed is for the tooltip.
      return (name.empty() ? "" : name + " ") + StringRef(weight.type).split(',').first.str();
    }
    std::string text;
    for (const auto &[name, value] : info.attributes) {
      StringRef brief = name;
      brief.consume_front("num_");
      if (brief == "kv_heads")
        brief = "kv";
      if (brief == "scale" || brief == "keys")
        continue;
      text += (text.empty() ? "" : " · ") + (brief == "style" ? value : brief.str() + " " + value);
    }
    return text;
  }

  //===--------------------------------------------------------------------===//
  // Functions
  //===--------------------------------------------------------------------===//

  void addOperation(Operation &op) {
    Node node;
    // The body first: the symbols of its values are those of the results.
    for (Region &region : op.getRegions())
      for (Operation &inner : region.getOps())
        if (!inner.hasTrait<OpTrait::IsTerminator>() && !isa<WeightOpInterface>(inner))
          node.body.push_back(describe(inner));
        else if (inner.hasTrait<OpTrait::IsTerminator>())
          for (auto [result, value] : llvm::zip(op.getResults(), inner.getOperands()))
            if (auto it = symbols.find(value); it != symbols.end())
              symbols[result] = it->second;
    static_cast<OpInfo &>(node) = describe(op);
    if (!node.body.empty()) {
      node.isFused = true;
      for (auto [result, info] : llvm::zip(op.getResults(), node.results))
        if (auto it = symbols.find(result); it != symbols.end())
          info = describeResult(result.getType(), it->second);
    }
    addInputs(op, node);
    for (Region &region : op.getRegions())
      for (Operation &inner : region.getOps())
        addInputs(inner, node);
    finish(std::move(node), op.getResults());
  }

  // Operands that come from other nodes or from the caller, each once.
  void addInputs(Operation &op, Node &node) {
    for (Value operand : op.getOperands()) {
      if (isa<WeightType, BatchType>(operand.getType()))
        continue;
      auto it = producers.find(operand);
      if (it == producers.end() && operand.getDefiningOp())
        continue; // of the same body
      bool isRows = !isa<CacheType>(operand.getType());
      Input input = it == producers.end() ? Input{-1, 0, isRows}
                                          : Input{it->second.first, it->second.second, isRows};
      addInput(node, input);
    }
  }

  static void addInput(Node &node, Input input) {
    if (llvm::none_of(node.inputs, [&](const Input &known) {
          return known.node == input.node && known.result == input.result;
        }))
      node.inputs.push_back(input);
  }

  void finish(Node node, ValueRange results) {
    for (auto [index, result] : llvm::enumerate(results))
      producers[result] = {int(graph.nodes.size()), int(index)};
    graph.nodes.push_back(std::move(node));
  }

  void addOutputs(func::FuncOp function, Operation &terminator) {
    for (auto [index, value] : llvm::enumerate(terminator.getOperands())) {
      auto name = function.getResultAttrOfType<StringAttr>(index, "llm.result");
      if (!isa<CacheType>(value.getType()))
        addOutput(value, name ? name.getValue() : StringRef("result"));
    }
  }

  void addOutput(Value value, StringRef name) {
    if (auto it = producers.find(getRoot(value)); it != producers.end())
      graph.nodes[it->second.first].outputs.push_back(name.str());
  }

  //===--------------------------------------------------------------------===//
  // Programs: values are buffers, written by one stage and read by others
  //===--------------------------------------------------------------------===//

  static Value getRoot(Value buffer) {
    while (auto view = buffer.getDefiningOp<sched::ViewOp>())
      buffer = view.getSource();
    return buffer;
  }

  void addStage(sched::StageOp stage, ModuleOp module, bool barrier) {
    auto kernel = module.lookupSymbol<sched::KernelOp>(stage.getKernel());
    Node node;
    if (kernel) {
      // The batch is argument 0, then the stage's inputs.
      auto arguments = kernel.getBody().front().getArguments().drop_front();
      for (auto [argument, input] : llvm::zip(arguments, stage.getInputs()))
        if (isa<WeightType>(input.getType()))
          recipes[argument] = getRecipe(input, module);
      for (Operation &inner : kernel.getBody().front().without_terminator()) {
        OpInfo info = describe(inner);
        if (info.layer)
          info.layer = getLayer(stage);
        node.body.push_back(std::move(info));
      }
    }
    node.isFused = node.body.size() > 1;
    OpInfo &info = node;
    if (node.body.size() == 1)
      info = node.body.front();
    info.mnemonic = "sched.stage @" + stage.getKernel().str();
    if (node.body.size() != 1) {
      info.label = kernel ? kernel.getKind().str() : stage.getKernel().str();
      info.family = getFamily(info.label);
    } else {
      node.body.clear();
    }
    info.attributes.push_back({"slice", stringifySlice(stage.getSlice()).str()});
    info.layer = getLayer(stage);
    info.results.clear();
    for (Value output : stage.getOutputs())
      info.results.push_back(describeResult(output.getType(), getBufferSymbol(output)));
    for (Value input : stage.getInputs())
      if (auto it = producers.find(getRoot(input)); it != producers.end())
        addInput(node, {it->second.first, it->second.second, true});
    node.afterBarrier = barrier;
    SmallVector<Value> roots = llvm::map_to_vector(stage.getOutputs(), getRoot);
    finish(std::move(node), roots);
  }

  static std::optional<int64_t> getLayer(sched::StageOp stage) {
    for (Value input : stage.getInputs())
      if (auto cache = input.getDefiningOp<sched::CacheOp>())
        return cache.getLayer();
    return std::nullopt;
  }

  static Value getRecipe(Value constant, ModuleOp module) {
    auto op = constant.getDefiningOp<sched::ConstantOp>();
    auto weight = op ? module.lookupSymbol<sched::WeightOp>(op.getWeight()) : nullptr;
    if (!weight)
      return constant;
    return weight.getRecipe().front().getTerminator()->getOperand(0);
  }

  std::string getBufferSymbol(Value buffer) {
    auto op = getRoot(buffer).getDefiningOp<sched::BufferOp>();
    return op && op.getSpace() == sched::Space::scored && rows == "T" ? "R" : rows;
  }

  Graph &graph;
  std::string rows;                                     // how many rows an activation has
  llvm::DenseMap<Value, std::pair<int, int>> producers; // node and result
  llvm::DenseMap<Value, std::string> symbols;
  llvm::DenseMap<Value, Value> recipes; // of a kernel's weight arguments
};

void describeBody(const std::vector<OpInfo> &body, std::string &text) {
  for (const OpInfo &op : body)
    text += "\n  " + op.getSignature();
}

} // namespace

//===----------------------------------------------------------------------===//
// Signatures
//===----------------------------------------------------------------------===//

std::string OpInfo::getSignature() const {
  std::string text = mnemonic + " " + label;
  for (const auto &[name, value] : attributes)
    text += " " + name + "=" + value;
  for (const WeightUse &weight : weights)
    text += " w(" + std::to_string(weight.tensors.size()) + "; " + weight.recipe + "; " +
            weight.type + ")";
  for (const ResultInfo &result : results)
    text += " -> " + result.type;
  return text;
}

std::string Node::getFullSignature() const {
  std::string text = OpInfo::getSignature();
  describeBody(body, text);
  return text;
}

std::vector<const OpInfo *> Node::getOps() const {
  std::vector<const OpInfo *> ops;
  for (const OpInfo &op : body)
    ops.push_back(&op);
  if (ops.empty())
    ops.push_back(this);
  return ops;
}

int64_t Node::getWeightBytes() const {
  int64_t bytes = 0;
  for (const OpInfo *op : getOps())
    for (const WeightUse &weight : op->weights)
      bytes += weight.bytes;
  return bytes;
}

std::string Graph::getSignature(int index) const {
  const Unit &unit = units[index];
  std::vector<int> members = unit.block;
  members.push_back(unit.stream);
  std::string text;
  for (int member : members) {
    const Node &node = nodes[member];
    text += node.getFullSignature() + "(";
    for (const Input &input : node.inputs) {
      // Inside the unit by place, the stream by distance, shared nodes by number; the cache of
      // another unit is only that.
      if (!input.isRows && (input.node < 0 || unitOf[input.node] != index)) {
        text += "cache ";
        continue;
      }
      if (input.node < 0)
        text += "outside";
      else if (unitOf[input.node] == index)
        text += "%" + std::to_string(llvm::find(members, input.node) - members.begin());
      else if (unitOf[input.node] < 0)
        text += "shared " + std::to_string(input.node);
      else
        text += "-" + std::to_string(index - unitOf[input.node]) +
                (units[unitOf[input.node]].stream == input.node ? "" : "block");
      text += "#" + std::to_string(input.result) + " ";
    }
    text += ")\n";
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

std::vector<std::string> getFunctionNames(ModuleOp module) {
  std::vector<std::string> names;
  for (Operation &op : *module.getBody()) {
    if (auto function = dyn_cast<func::FuncOp>(op); function && !function.isExternal())
      names.push_back(function.getSymName().str());
    if (auto program = dyn_cast<sched::ProgramOp>(op))
      names.push_back(program.getSymName().str());
  }
  return names;
}

llvm::Expected<Graph> buildGraph(ModuleOp module, StringRef name) {
  Graph graph;
  if (auto model = module->getAttrOfType<StringAttr>("llm.model"))
    graph.model = model.getValue().str();
  graph.function = name.str();
  GraphBuilder builder(graph);
  if (auto function = module.lookupSymbol<func::FuncOp>(name)) {
    if (!function.getBody().hasOneBlock())
      return refused("@" + name + ": has branches; only a function of one block can be drawn");
    builder.addFunction(function);
  } else if (auto program = module.lookupSymbol<sched::ProgramOp>(name)) {
    builder.addProgram(program, module);
  } else {
    return refused("@" + name + ": no such function");
  }
  if (graph.nodes.empty())
    return refused("@" + name + ": has no operations to draw");
  cutIntoUnits(graph);
  return graph;
}

} // namespace tenon::graph
