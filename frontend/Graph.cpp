// Nodes become operations one after another on a *stream*, the value that the next node applies to:
//
//   - embedding: {...}          stream = embedding(batch)
//   - residual:                 branch = nodes on the stream; stream = stream + branch
//       - rms_norm: {...}
//       - linear: {...}
//
// `repeat`, `sequence`, `residual`, `let`, `get`, `mark`, `encoder` and `when` are the frontend's
// own. Every other mnemonic is an operation with TemplateOpInterface, of which nothing else is
// known here.
//
// An encoder becomes a function of its own, whose result is an argument of the decoder:
//
//   - encoder: [nodes]          func @encoder(%batch) -> "memory"
//   - nodes                     func @main(%batch, %memory) -> "logits"
#include "frontend/Graph.h"
#include "frontend/Expression.h"
#include "ir/LLM.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace tenon {

namespace {

constexpr int maxNodeDepth = 64;
constexpr int64_t maxNodes = 1 << 20;
// Widths are products of two sizes; a matrix of two widths still has a number of elements.
constexpr int64_t maxDimension = int64_t(1) << 31;

std::string locationText(Location location) {
  if (auto place = dyn_cast<FileLineColLoc>(location))
    return (place.getFilename().getValue() + ":" + Twine(place.getLine()) + ":" +
            Twine(place.getColumn()))
        .str();
  if (auto named = dyn_cast<NameLoc>(location))
    return locationText(named.getChildLoc());
  return "?";
}

class GraphBuilder {
public:
  GraphBuilder(MLIRContext &context, const Value &parameters, TensorResolver resolve)
      : builder(&context), scope{&parameters, {}}, resolve(resolve) {
    scratch.addArgument(llm::getRowsType(&context, 1), builder.getUnknownLoc());
  }

  llvm::Expected<Graph> build(const Architecture &architecture, const GraphOptions &options);

private:
  friend class Arguments;

  LogicalResult fail(const Place &place, const Twine &message) {
    return fail(failAt(place, message));
  }
  LogicalResult fail(llvm::Error reason) {
    std::string text = llvm::toString(std::move(reason));
    if (error.empty())
      error = text;
    return failure();
  }

  LogicalResult addNodes(const Value &nodes, StringRef what);
  LogicalResult addNode(const Value &node);
  LogicalResult addRepeat(const Value &arguments);
  LogicalResult addOperation(const Entry &node);
  LogicalResult addMark(const Value &name);
  LogicalResult addNames(const Value &branches);
  LogicalResult recall(const Value &name);
  LogicalResult addEncoder(const Value &nodes);
  // Returns the stream, as `result`, and what is marked.
  LogicalResult finish(func::FuncOp function, StringRef result, const Place &place);
  // The operation that a mnemonic names, or the error that lists all.
  FailureOr<TemplateOpInterface::Concept *> lookUp(const Entry &node);

  FailureOr<Value> evaluate(const Value &value) {
    llvm::Expected<Value> result = tenon::evaluate(value, scope);
    if (!result)
      return fail(result.takeError());
    return std::move(*result);
  }
  Location getLoc(const Place &place);

  OpBuilder builder;
  Scope scope;
  TensorResolver resolve;
  mlir::Value stream, batch, memory;
  bool emitMarks = false;
  // Stands for the stream where a graph wrongly begins with an operation that needs one.
  Block scratch;
  llvm::StringMap<mlir::Value> weights, named; // of the current function
  llvm::StringSet<> tensorNames;
  std::vector<TensorInfo> tensors;
  std::vector<std::pair<std::string, mlir::Value>> marks;
  std::string error; // the first
  int depth = 0;
  int64_t nodes = 0;
};

// The arguments of one node, evaluated when an operation asks for them.
class Arguments : public TemplateArgs {
public:
  Arguments(GraphBuilder &graph, const Entry &node)
      : graph(graph), node(node), loc(graph.getLoc(node.place)), stream(graph.stream) {}

  OpBuilder &getBuilder() override { return graph.builder; }
  Location getLoc() override { return loc; }
  mlir::Value getBatch() override { return graph.batch; }
  mlir::Value getMemory() override { return graph.memory; }
  mlir::Value getStream() override {
    if (stream)
      return stream;
    (void)error("", "applies to rows, and none are there yet; a graph begins with an embedding");
    return graph.scratch.getArgument(0);
  }

  bool has(StringRef key) override {
    graph.scope.variables.emplace_back("expert", 0); // it may name a stack
    FailureOr<std::optional<Value>> value = get(key);
    graph.scope.variables.pop_back();
    return succeeded(value) && *value;
  }

  FailureOr<int64_t> getInteger(StringRef key, std::optional<int64_t> fallback) override {
    return getScalar<int64_t>(key, fallback, "an integer within 2^31",
                              [](const Value &value) -> std::optional<int64_t> {
                                const int64_t *integer = value.asInteger();
                                if (!integer || *integer > maxDimension || *integer < -maxDimension)
                                  return std::nullopt;
                                return *integer;
                              });
  }
  FailureOr<double> getNumber(StringRef key, std::optional<double> fallback) override {
    return getScalar<double>(key, fallback, "a number", [](const Value &value) {
      return value.isNumber() ? std::optional(value.getNumber()) : std::nullopt;
    });
  }
  FailureOr<bool> getFlag(StringRef key, std::optional<bool> fallback) override {
    return getScalar<bool>(key, fallback, "true or false", [](const Value &value) {
      return value.asFlag() ? std::optional(*value.asFlag()) : std::nullopt;
    });
  }
  FailureOr<std::string> getString(StringRef key, std::optional<StringRef> fallback) override {
    std::optional<std::string> text = fallback ? std::optional(fallback->str()) : std::nullopt;
    return getScalar<std::string>(key, text, "text", [](const Value &value) {
      return value.asString() ? std::optional(*value.asString()) : std::nullopt;
    });
  }
  bool isText(StringRef key) override {
    FailureOr<std::optional<Value>> value = get(key);
    return succeeded(value) && *value && (*value)->asString();
  }
  FailureOr<DictionaryAttr> getMap(StringRef key) override;
  FailureOr<mlir::Value> getBranch(StringRef key, mlir::Value from) override;
  FailureOr<mlir::Value> getWeight(StringRef key, StringRef suffix,
                                   ArrayRef<int64_t> shape) override;
  FailureOr<mlir::Value> getStack(StringRef key, StringRef suffix, int64_t count,
                                  ArrayRef<int64_t> shape) override;

  LogicalResult error(StringRef key, const Twine &message) override {
    Place place = node.place;
    std::string name = node.key;
    if (const Value *argument = node.value.find(key)) {
      name += "." + key.str();
      // The number itself stands in the model file when the argument merely names it.
      llvm::Expected<Value> value = tenon::evaluate(*argument, graph.scope);
      place = value ? value->place : argument->place;
      llvm::consumeError(value.takeError());
    }
    return graph.fail(place, name + ": " + message);
  }

  // Refuses arguments that the operation never asked for.
  LogicalResult checkAllRead() {
    if (const Value::Map *map = node.value.asMap())
      for (const Entry &entry : *map)
        if (!llvm::is_contained(asked, entry.key))
          return graph.fail(entry.place, "'" + node.key + "' has no argument '" + entry.key +
                                             "'; accepted: " + llvm::join(asked, ", "));
    return success();
  }

private:
  // The evaluated argument; nothing when it is absent or null.
  FailureOr<std::optional<Value>> get(StringRef key) {
    note(key);
    const Value *argument = node.value.find(key);
    if (!argument)
      return std::optional<Value>();
    // A branch is a list of nodes, whose own names mean something only where they are built.
    if (argument->asList())
      return std::optional<Value>(*argument);
    FailureOr<Value> value = graph.evaluate(*argument);
    if (failed(value))
      return failure();
    if (value->isNull())
      return std::optional<Value>();
    return std::optional<Value>(std::move(*value));
  }

  template <typename T, typename Convert>
  FailureOr<T> getScalar(StringRef key, const std::optional<T> &fallback, StringRef what,
                         Convert convert) {
    FailureOr<std::optional<Value>> value = get(key);
    if (failed(value))
      return failure();
    if (!*value) {
      if (fallback)
        return *fallback;
      return error("", "'" + key + "' is missing; accepted: " + what);
    }
    if (std::optional<T> result = convert(**value))
      return *result;
    return error(key, "must be " + what + ", got " + (*value)->describe());
  }

  // The weight `stem + suffix`, which argument `key` has named.
  FailureOr<mlir::Value> findWeight(StringRef key, const std::string &stem, StringRef suffix,
                                    ArrayRef<int64_t> shape);

  void note(StringRef key) {
    if (!llvm::is_contained(asked, key))
      asked.push_back(key.str());
  }

  GraphBuilder &graph;
  const Entry &node;
  Location loc;
  mlir::Value stream;
  std::vector<std::string> asked;
};

FailureOr<DictionaryAttr> Arguments::getMap(StringRef key) {
  FailureOr<std::optional<Value>> value = get(key);
  if (failed(value))
    return failure();
  if (!*value)
    return DictionaryAttr();
  if (!(*value)->asMap())
    return error(key, "must be a map, got " + (*value)->describe());
  SmallVector<NamedAttribute> attributes;
  OpBuilder &builder = graph.builder;
  for (const Entry &entry : *(*value)->asMap()) {
    if (entry.value.isNull())
      continue;
    if (entry.value.isNumber())
      attributes.push_back(
          builder.getNamedAttr(entry.key, builder.getF64FloatAttr(entry.value.getNumber())));
    else if (const std::string *text = entry.value.asString())
      attributes.push_back(builder.getNamedAttr(entry.key, builder.getStringAttr(*text)));
    else if (const Value::List *list = entry.value.asList();
             list && llvm::all_of(*list, [](const Value &item) { return item.isNumber(); }))
      attributes.push_back(builder.getNamedAttr(
          entry.key, builder.getF64ArrayAttr(llvm::map_to_vector(
                         *list, [](const Value &item) { return item.getNumber(); }))));
    else
      return graph.fail(entry.value.place, node.key + "." + key + ": '" + entry.key +
                                               "' must be a number, text or numbers, got " +
                                               entry.value.describe());
  }
  return attributes.empty() ? DictionaryAttr() : builder.getDictionaryAttr(attributes);
}

FailureOr<mlir::Value> Arguments::getBranch(StringRef key, mlir::Value from) {
  note(key);
  const Value *nodes = node.value.find(key);
  if (!nodes || nodes->isNull())
    return error("", "'" + key + "' is missing; accepted: a list of nodes");
  llvm::SaveAndRestore saved(graph.stream, from ? from : getStream());
  if (failed(graph.addNodes(*nodes, key)))
    return failure();
  return graph.stream;
}

FailureOr<mlir::Value> Arguments::getWeight(StringRef key, StringRef suffix,
                                            ArrayRef<int64_t> shape) {
  FailureOr<std::string> stem = getString(key, std::nullopt);
  if (failed(stem))
    return failure();
  return findWeight(key, *stem, suffix, shape);
}

FailureOr<mlir::Value> Arguments::getStack(StringRef key, StringRef suffix, int64_t count,
                                           ArrayRef<int64_t> shape) {
  auto nameOf = [&](int64_t expert) {
    graph.scope.variables.emplace_back("expert", expert);
    FailureOr<std::string> name = getString(key, std::nullopt);
    graph.scope.variables.pop_back();
    return name;
  };
  FailureOr<std::string> first = nameOf(0), second = nameOf(1);
  if (failed(first) || failed(second))
    return failure();
  SmallVector<int64_t> stacked{count};
  stacked.append(shape.begin(), shape.end());
  if (*first == *second)
    return findWeight(key, *first, "", stacked);
  SmallVector<mlir::Value> parts;
  for (int64_t expert = 0; expert < count; ++expert) {
    FailureOr<std::string> stem = nameOf(expert);
    FailureOr<mlir::Value> part =
        succeeded(stem) ? findWeight(key, *stem, suffix, shape) : FailureOr<mlir::Value>();
    if (failed(part))
      return failure();
    if (!parts.empty() && part->getType() != parts.front().getType())
      return error(key, "'" + *stem + suffix + "' is not stored like that of expert 0");
    parts.push_back(*part);
  }
  OpBuilder &builder = graph.builder;
  mlir::Value all = llm::WeightConcatOp::create(builder, loc, parts);
  if (shape.size() == 1) // one vector of all
    return all;
  auto type = cast<llm::WeightType>(all.getType());
  return llm::WeightReshapeOp::create(
             builder, loc, llm::WeightType::get(builder.getContext(), stacked, type.getStorage()),
             all)
      .getResult();
}

FailureOr<mlir::Value> Arguments::findWeight(StringRef key, const std::string &stem,
                                             StringRef suffix, ArrayRef<int64_t> shape) {
  for (int64_t size : shape)
    if (size < 1 || size > maxDimension)
      return error(key, "cannot have " + Twine(size) + " rows or columns");
  std::string name = stem + suffix.str();
  auto &weight = graph.weights[name];
  if (weight) {
    if (cast<llm::WeightType>(weight.getType()).getShape() != shape)
      return error(key, "'" + name + "' is used in two shapes");
    return weight;
  }
  llvm::Expected<StoredTensor> stored = graph.resolve(stem, suffix.str(), shape, node.place);
  if (!stored)
    return graph.fail(stored.takeError());
  OpBuilder &builder = graph.builder;
  auto type = llm::WeightType::get(builder.getContext(), shape, stored->storage);
  if (stored->ofRows) {
    SmallVector<int64_t> whole(shape);
    whole[0] = stored->ofRows;
    auto all = llm::WeightOp::create(
        builder, loc, type.get(builder.getContext(), whole, stored->storage), stored->name);
    weight = llm::WeightSliceOp::create(builder, loc, all, stored->firstRow,
                                        stored->firstRow + shape[0]);
  } else {
    weight = llm::WeightOp::create(builder, loc, type, stored->name);
  }
  if (stored->deinterleaveHeads)
    weight =
        llm::WeightDeinterleaveOp::create(builder, loc, type, weight, stored->deinterleaveHeads);
  if (graph.tensorNames.insert(name).second)
    graph.tensors.push_back({name, SmallVector<int64_t, 4>(shape), stored->storage});
  return weight;
}

//===------------------------------------------------------------------------------------------===//
// Nodes
//===------------------------------------------------------------------------------------------===//

// The innermost loop's variable names the location: "layer 3".
Location GraphBuilder::getLoc(const Place &place) {
  Location location =
      FileLineColLoc::get(builder.getStringAttr(*place.file), place.line, place.column);
  if (scope.variables.empty())
    return location;
  const auto &[name, value] = scope.variables.back();
  return NameLoc::get(builder.getStringAttr(name + " " + Twine(value)), location);
}

LogicalResult GraphBuilder::addNodes(const Value &list, StringRef what) {
  if (!list.asList())
    return fail(list.place, "'" + what + "' must be a list of nodes, got " + list.describe());
  if (++depth > maxNodeDepth)
    return fail(list.place, "nodes are nested too deeply");
  for (const Value &node : *list.asList())
    if (failed(addNode(node)))
      return failure();
  --depth;
  return success();
}

LogicalResult GraphBuilder::addNode(const Value &node) {
  if (++nodes > maxNodes)
    return fail(node.place, "the graph has more than " + Twine(maxNodes) + " nodes");
  const Value::Map *map = node.asMap();
  if (!map || map->size() != (node.find("when") ? 2 : 1))
    return fail(node.place, "a node is one mnemonic with its arguments, and possibly 'when'; got " +
                                (map ? Twine(map->size()) + " keys" : Twine(node.describe())));
  if (const Value *when = node.find("when")) {
    FailureOr<Value> condition = evaluate(*when);
    if (failed(condition))
      return failure();
    if (!condition->asFlag())
      return fail(condition->place, "'when' must be true or false, got " + condition->describe());
    if (!*condition->asFlag())
      return success();
  }
  const Entry &entry = map->front().key == "when" ? map->back() : map->front();
  if (entry.key == "repeat")
    return addRepeat(entry.value);
  if (entry.key == "sequence")
    return addNodes(entry.value, entry.key);
  if (entry.key == "mark")
    return addMark(entry.value);
  if (entry.key == "let")
    return addNames(entry.value);
  if (entry.key == "get")
    return recall(entry.value);
  if (entry.key == "encoder")
    return addEncoder(entry.value);
  if (entry.key != "residual")
    return addOperation(entry);

  mlir::Value trunk = stream;
  if (!trunk)
    return fail(entry.place,
                "residual: there are no rows to add to; a graph begins with an embedding");
  if (failed(addNodes(entry.value, entry.key)))
    return failure();
  if (trunk.getType() != stream.getType())
    return fail(entry.place, "residual: the branch has " + Twine(llm::getColumns(stream)) +
                                 " columns, the stream " + Twine(llm::getColumns(trunk)));
  stream = llm::AddOp::create(builder, getLoc(entry.place), trunk.getType(), trunk, stream);
  return success();
}

// repeat: {count: $layers, as: layer, body: [...]}
LogicalResult GraphBuilder::addRepeat(const Value &arguments) {
  if (llvm::Error bad = checkKeys(arguments, "repeat", {"count", "as", "body"}))
    return fail(std::move(bad));
  for (StringRef key : {"count", "as", "body"})
    if (!arguments.find(key))
      return fail(arguments.place, "repeat: '" + key + "' is missing");
  FailureOr<Value> count = evaluate(*arguments.find("count"));
  if (failed(count))
    return failure();
  const int64_t *times = count->asInteger();
  if (!times || *times < 0 || *times > maxNodes)
    return fail(count->place, "repeat.count: must be an integer from 0 to " + Twine(maxNodes) +
                                  ", got " + count->describe());
  const Value &as = *arguments.find("as");
  if (!as.asString() || scope.parameters->find(*as.asString()) ||
      llvm::any_of(scope.variables,
                   [&](const auto &variable) { return variable.first == *as.asString(); }))
    return fail(as.place, "repeat.as: must be a name that is not in use, got " + as.describe());
  scope.variables.emplace_back(*as.asString(), 0);
  for (int64_t i = 0; i < *times; ++i) {
    scope.variables.back().second = i;
    if (failed(addNodes(*arguments.find("body"), "body")))
      return failure();
  }
  scope.variables.pop_back();
  return success();
}

LogicalResult GraphBuilder::addMark(const Value &name) {
  FailureOr<Value> text = evaluate(name);
  if (failed(text))
    return failure();
  if (!text->asString() || !stream)
    return fail(name.place, "mark: needs a name, and rows that get it; got " + text->describe());
  marks.emplace_back(*text->asString(), stream);
  return success();
}

// let: {NAME: [nodes], ...}; every branch begins with the stream, which stays what it is.
LogicalResult GraphBuilder::addNames(const Value &branches) {
  if (!branches.asMap())
    return fail(branches.place, "let: must be a map of names to nodes, got " + branches.describe());
  llvm::SaveAndRestore saved(stream);
  for (const Entry &branch : *branches.asMap()) {
    stream = saved.get();
    if (failed(addNodes(branch.value, branch.key)))
      return failure();
    if (!stream)
      return fail(branch.place, "let: '" + branch.key + "' has no rows");
    named[branch.key] = stream;
  }
  return success();
}

// get: NAME
LogicalResult GraphBuilder::recall(const Value &name) {
  auto found = name.asString() ? named.find(*name.asString()) : named.end();
  if (found == named.end()) {
    std::vector<StringRef> known(named.keys().begin(), named.keys().end());
    llvm::sort(known);
    return fail(name.place, "get: no 'let' before names " + name.describe() + "; accepted: " +
                                (known.empty() ? "nothing yet" : llvm::join(known, ", ")));
  }
  stream = found->second;
  return success();
}

LogicalResult GraphBuilder::addEncoder(const Value &nodes) {
  if (stream || memory || depth > 1)
    return fail(nodes.place, "encoder: must be the first node of the graph");
  auto main = cast<func::FuncOp>(batch.getParentBlock()->getParentOp());
  Type batchType = batch.getType();
  auto saved = builder.saveInsertionPoint();
  builder.setInsertionPoint(main);
  auto function = func::FuncOp::create(builder, getLoc(nodes.place), "encoder",
                                       builder.getFunctionType(batchType, {}));
  builder.setInsertionPointToEnd(function.addEntryBlock());
  batch = function.getArgument(0);
  if (failed(addNodes(nodes, "encoder")))
    return failure();
  if (!stream)
    return fail(nodes.place, "encoder: has no nodes");
  Type rows = stream.getType();
  if (failed(finish(function, "memory", nodes.place)))
    return failure();

  builder.restoreInsertionPoint(saved);
  batch = main.getArgument(0);
  stream = nullptr;
  weights.clear();
  named.clear();
  marks.clear();
  if (failed(main.insertArgument(1, rows, {}, main.getLoc())))
    return failure();
  memory = main.getArgument(1);
  return success();
}

FailureOr<TemplateOpInterface::Concept *> GraphBuilder::lookUp(const Entry &node) {
  MLIRContext *context = builder.getContext();
  bool dotted = StringRef(node.key).contains('.');
  StringRef dialect = dotted ? StringRef(node.key).split('.').first : "llm";
  std::string name = dotted ? node.key : "llm." + node.key;
  if (context->getOrLoadDialect(dialect))
    if (auto operation = RegisteredOperationName::lookup(name, context))
      if (auto *interface = operation->getInterface<TemplateOpInterface>())
        return interface;
  if (dotted && !context->getLoadedDialect(dialect))
    return fail(node.place,
                "unknown node '" + node.key + "': no loaded plugin has the dialect '" + dialect +
                    "'; accepted: --load-plugin=FILE, a folder in TENON_PLUGIN_PATH, or "
                    "`plugins:` in the model file");
  std::vector<StringRef> known;
  for (RegisteredOperationName operation : context->getRegisteredOperations()) {
    if (!operation.hasInterface<TemplateOpInterface>())
      continue;
    StringRef mnemonic = operation.getStringRef();
    mnemonic.consume_front("llm.");
    known.push_back(mnemonic);
  }
  llvm::sort(known);
  return fail(node.place, "unknown node '" + node.key +
                              "'; accepted: repeat, residual, sequence, let, get, mark, encoder, " +
                              llvm::join(known, ", "));
}

LogicalResult GraphBuilder::addOperation(const Entry &node) {
  FailureOr<TemplateOpInterface::Concept *> operation = lookUp(node);
  if (failed(operation))
    return failure();
  if (!node.value.asMap() && !node.value.isNull())
    return fail(node.value.place,
                node.key + ": arguments must be a map, got " + node.value.describe());
  Arguments arguments(*this, node);
  FailureOr<mlir::Value> result = (*operation)->buildFromTemplate(arguments);
  if (!error.empty())
    return failure();
  if (failed(result)) // without having said why
    return fail(node.place, node.key + ": cannot be built from these arguments");
  if (failed(arguments.checkAllRead()))
    return failure();
  stream = *result;
  return success();
}

//===------------------------------------------------------------------------------------------===//
// The module
//===------------------------------------------------------------------------------------------===//

// A name that is given once stays; one that is given several times is numbered: hidden.0, hidden.1,
// ...
std::vector<std::string> numberMarks(ArrayRef<std::pair<std::string, mlir::Value>> marks) {
  llvm::StringMap<int> total, seen;
  for (const auto &mark : marks)
    ++total[mark.first];
  std::vector<std::string> names;
  for (const auto &[name, value] : marks)
    names.push_back(total[name] == 1 ? name : name + "." + std::to_string(seen[name]++));
  return names;
}

LogicalResult GraphBuilder::finish(func::FuncOp function, StringRef result, const Place &place) {
  SmallVector<mlir::Value> results = {stream};
  std::vector<std::string> names = {result.str()};
  if (emitMarks) {
    llvm::StringMap<int64_t> widths;
    for (const auto &[name, value] : marks) {
      int64_t width = llm::getColumns(value), first = widths.try_emplace(name, width).first->second;
      if (width != first)
        return fail(place, "--emit-hidden: '" + name + "' marks values of " + Twine(first) +
                               " and of " + Twine(width) +
                               " columns; one width for a name is accepted");
    }
    llvm::append_range(results, llvm::make_second_range(marks));
    llvm::append_range(names, numberMarks(marks));
  }
  func::ReturnOp::create(builder, function.getLoc(), results);
  function.setFunctionType(
      builder.getFunctionType(function.getArgumentTypes(), ValueRange(results).getTypes()));
  for (auto [i, name] : llvm::enumerate(names))
    function.setResultAttr(i, "llm.result", builder.getStringAttr(name));
  return success();
}

// What an encoder's token ids, and token types, have to be below.
void setTableSizes(ModuleOp module) {
  auto set = [&](StringRef attribute, llm::WeightType table) {
    auto known = module->getAttrOfType<IntegerAttr>(attribute);
    int64_t rows = known ? std::min(known.getInt(), table.getRows()) : table.getRows();
    module->setAttr(attribute, Builder(module.getContext()).getI64IntegerAttr(rows));
  };
  if (auto encoder = module.lookupSymbol<func::FuncOp>("encoder"))
    encoder.walk([&](llm::EmbeddingOp op) { set("llm.encoder_vocab", op.getTable().getType()); });
  module.walk([&](llm::TypeEmbeddingOp op) { set("llm.token_types", op.getTable().getType()); });
}

llvm::Expected<Graph> GraphBuilder::build(const Architecture &architecture,
                                          const GraphOptions &options) {
  MLIRContext *context = builder.getContext();
  emitMarks = options.emitMarks;
  context->loadDialect<func::FuncDialect, llm::LLMDialect>();
  // Verifiers speak through diagnostics; the first is the error.
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (error.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      error = locationText(diagnostic.getLocation()) + ": error: " + diagnostic.str();
    return success();
  });

  Location loc = getLoc(architecture.getGraph().place);
  Graph graph;
  graph.module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(graph.module->getBody());
  Type batchType = llm::BatchType::get(context);
  auto function =
      func::FuncOp::create(builder, loc, "main", builder.getFunctionType(batchType, {}));
  builder.setInsertionPointToEnd(function.addEntryBlock());
  batch = function.getArgument(0);

  bool built = succeeded(addNodes(architecture.getGraph(), "graph"));
  if (built && !stream)
    (void)fail(architecture.getGraph().place, "the graph is empty");
  if (built && memory && memory.use_empty())
    (void)fail(architecture.getGraph().place,
               "no attention reads the encoder's memory; accepted: attention: {over: memory, ...}");
  if (!error.empty() || !built || failed(finish(function, "logits", architecture.getGraph().place)))
    return llvm::createStringError(error);

  auto setNumber = [&](StringRef attribute, StringRef parameter) {
    graph.module->getOperation()->setAttr(
        attribute, builder.getI64IntegerAttr(*scope.parameters->find(parameter)->asInteger()));
  };
  graph.module->getOperation()->setAttr("llm.model", builder.getStringAttr(options.model));
  setNumber("llm.context", "context");
  setNumber("llm.vocab", "vocab");
  if (failed(verify(*graph.module)))
    return llvm::createStringError(error);
  setTableSizes(*graph.module);

  graph.parameters = 0;
  for (const TensorInfo &tensor : tensors)
    graph.parameters += llvm::product_of(tensor.shape);
  graph.tensors = std::move(tensors);
  return graph;
}

} // namespace

llvm::Expected<Graph> buildGraph(MLIRContext &context, const Architecture &architecture,
                                 const Value &parameters, const GraphOptions &options,
                                 TensorResolver resolve) {
  return GraphBuilder(context, parameters, resolve).build(architecture, options);
}

} // namespace tenon
