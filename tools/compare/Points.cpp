#include "tools/compare/Points.h"
#include "ir/LLM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tenon::compare {

std::string Point::describe() const {
  std::string text = operation;
  if (!weight.empty())
    text += " " + weight;
  return place.empty() ? text : text + " (" + place + ")";
}

namespace {

func::ReturnOp getReturn(func::FuncOp function) {
  return cast<func::ReturnOp>(function.getBody().front().getTerminator());
}

// Every value of rows with its function, in order.
template <typename Callback> void forEachValue(ModuleOp textbook, Callback callback) {
  for (StringRef name : {"encoder", "main"})
    if (auto function = textbook.lookupSymbol<func::FuncOp>(name))
      for (Operation &op : function.getBody().front())
        for (Value value : op.getResults())
          if (isa<RankedTensorType>(value.getType()))
            callback(function, value);
}

// The name under which a function gives a value; empty: it does not.
std::string getResultName(func::FuncOp function, Value value) {
  for (auto [i, result] : llvm::enumerate(getReturn(function).getOperands()))
    if (auto name = function.getResultAttrOfType<StringAttr>(i, "llm.result");
        name && result == value)
      return name.str();
  return "";
}

// The module of the checkpoint whose output an operation is: it has one matrix or norm weight,
// which is a whole tensor.
std::string getModuleName(Operation &op) {
  if (isa<llm::EmbeddingOp, llm::PositionEmbeddingOp>(op)) // some scale what they look up
    return "";
  for (Value operand : op.getOperands()) {
    Operation *source = operand.getDefiningOp();
    if (auto transpose = dyn_cast_if_present<llm::WeightTransposeOp>(source))
      source = transpose->getOperand(0).getDefiningOp();
    if (auto weight = dyn_cast_if_present<llm::WeightOp>(source)) {
      StringRef name = weight.getTensor();
      return name.consume_back(".weight") ? name.str() : "";
    }
  }
  return "";
}

std::string getPlace(Location loc) {
  auto place = loc->findInstanceOf<FileLineColLoc>(); // within the names of layers
  return place ? (place.getFilename().getValue() + ":" + Twine(place.getLine()) + ":" +
                  Twine(place.getColumn()))
                     .str()
               : "";
}

} // namespace

std::vector<Point> listPoints(ModuleOp textbook) {
  bool hasEncoder = textbook.lookupSymbol("encoder") != nullptr;
  std::vector<Point> points;
  forEachValue(textbook, [&](func::FuncOp function, Value value) {
    Operation &op = *value.getDefiningOp();
    points.push_back({op.getName().getStringRef().str(), getModuleName(op), getPlace(op.getLoc()),
                      getResultName(function, value),
                      !hasEncoder                       ? ""
                      : function.getName() == "encoder" ? "enc_"
                                                        : "dec_"});
  });
  return points;
}

void reveal(ModuleOp textbook, size_t first, size_t last) {
  size_t index = 0;
  forEachValue(textbook, [&](func::FuncOp function, Value value) {
    size_t i = index++;
    func::ReturnOp terminator = getReturn(function);
    if (i < first || i >= last || llvm::is_contained(terminator.getOperands(), value))
      return;
    unsigned result = function.getNumResults();
    auto name = StringAttr::get(function.getContext(), "op" + Twine(i));
    (void)function.insertResult(
        result, value.getType(),
        DictionaryAttr::get(function.getContext(), NamedAttribute("llm.result", name)));
    terminator.getOperandsMutable().append(value);
  });
}

} // namespace tenon::compare
