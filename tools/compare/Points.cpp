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

func::FuncOp getMain(ModuleOp textbook) { return textbook.lookupSymbol<func::FuncOp>("main"); }

func::ReturnOp getReturn(func::FuncOp function) {
  return cast<func::ReturnOp>(function.getBody().front().getTerminator());
}

// Every value of rows, in order.
template <typename Callback> void forEachValue(func::FuncOp function, Callback callback) {
  for (Operation &op : function.getBody().front())
    for (Value value : op.getResults())
      if (isa<RankedTensorType>(value.getType()))
        callback(value);
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
  func::FuncOp main = getMain(textbook);
  llvm::DenseMap<Value, std::string> marks;
  for (auto [i, value] : llvm::enumerate(getReturn(main).getOperands()))
    if (auto name = main.getResultAttrOfType<StringAttr>(i, "llm.result"))
      marks.try_emplace(value, name.str());
  std::vector<Point> points;
  forEachValue(main, [&](Value value) {
    Operation &op = *value.getDefiningOp();
    points.push_back({op.getName().getStringRef().str(), getModuleName(op), getPlace(op.getLoc()),
                      marks.lookup(value)});
  });
  return points;
}

void reveal(ModuleOp textbook, size_t first, size_t last) {
  func::FuncOp main = getMain(textbook);
  func::ReturnOp terminator = getReturn(main);
  size_t index = 0;
  forEachValue(main, [&](Value value) {
    size_t i = index++;
    if (i < first || i >= last || llvm::is_contained(terminator.getOperands(), value))
      return;
    unsigned result = main.getNumResults();
    auto name = StringAttr::get(main.getContext(), "op" + Twine(i));
    (void)main.insertResult(
        result, value.getType(),
        DictionaryAttr::get(main.getContext(), NamedAttribute("llm.result", name)));
    terminator.getOperandsMutable().append(value);
  });
}

} // namespace tenon::compare
