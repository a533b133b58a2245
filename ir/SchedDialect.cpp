// Registration, printing and verifiers of the sched dialect.
#include "ir/Sched.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "ir/SchedDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/SchedAttributes.cpp.inc"

#define GET_OP_CLASSES
#include "ir/SchedOps.cpp.inc"

void tenon::registerDialects(DialectRegistry &registry) {
  registry.insert<llm::LLMDialect, sched::SchedDialect, func::FuncDialect, memref::MemRefDialect>();
}

namespace tenon::sched {

void SchedDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/SchedAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/SchedOps.cpp.inc"
      >();
}

MemRefType getBufferType(MLIRContext *context, int64_t columns, int64_t stride) {
  Type f32 = Float32Type::get(context);
  if (columns == stride)
    return MemRefType::get({ShapedType::kDynamic, columns}, f32);
  return MemRefType::get(
      {ShapedType::kDynamic, columns}, f32,
      StridedLayoutAttr::get(context, /*offset=*/ShapedType::kDynamic, {stride, 1}));
}

int64_t getColumns(MemRefType type) { return type.getDimSize(1); }

int64_t getRowStride(MemRefType type) {
  auto [strides, offset] = type.getStridesAndOffset();
  return strides[0];
}

Space getSpace(Value operand) {
  while (auto view = operand.getDefiningOp<ViewOp>())
    operand = view.getSource();
  auto buffer = operand.getDefiningOp<BufferOp>();
  return buffer ? buffer.getSpace() : Space::tokens;
}

bool isScored(StageOp stage) {
  return llvm::any_of(stage->getOperands(),
                      [](Value operand) { return getSpace(operand) == Space::scored; });
}

KernelOp getKernel(StageOp stage) {
  return SymbolTable::lookupNearestSymbolFrom<KernelOp>(stage, stage.getKernelAttr());
}

//===----------------------------------------------------------------------===//
// sched.kernel @name kind "linear" (%batch: !llm.batch, ...) -> tensor<?x576xf32> { ... }
//===----------------------------------------------------------------------===//

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name, kind;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Type> types;
  if (parser.parseSymbolName(name, "sym_name", result.attributes) || parser.parseKeyword("kind") ||
      parser.parseAttribute(kind, "kind", result.attributes) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren, /*allowType=*/true) ||
      parser.parseOptionalArrowTypeList(types) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  SmallVector<Type> inputs =
      llvm::map_to_vector(arguments, [](auto &argument) { return argument.type; });
  result.addAttribute("function_type",
                      TypeAttr::get(parser.getBuilder().getFunctionType(inputs, types)));
  return parser.parseRegion(*result.addRegion(), arguments);
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << " kind " << getKindAttr() << " (";
  llvm::interleaveComma(getBody().getArguments(), printer,
                        [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ')';
  printer.printOptionalArrowTypeList(getFunctionType().getResults());
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(),
                                           {"sym_name", "kind", "function_type"});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult KernelOp::verify() {
  FunctionType type = getFunctionType();
  if (!llvm::equal(type.getInputs(), getBody().getArgumentTypes()))
    return emitOpError() << "block arguments do not match the function type";
  if (type.getNumInputs() == 0 || !isa<llm::BatchType>(type.getInput(0)))
    return emitOpError() << "the first argument must be the batch";
  auto yield = dyn_cast<YieldOp>(getTerminator());
  if (!yield || !llvm::equal(yield.getOperandTypes(), type.getResults()))
    return emitOpError() << "must yield its results";
  return success();
}

//===----------------------------------------------------------------------===//
// sched.stage
//===----------------------------------------------------------------------===//

LogicalResult StageOp::verify() {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError() << "no kernel " << getKernelAttr();
  FunctionType type = kernel.getType();
  auto matches = [](Type formal, Type actual) {
    auto rows = dyn_cast<RankedTensorType>(formal);
    auto buffer = dyn_cast<MemRefType>(actual);
    if (rows && buffer)
      return rows.getShape() == buffer.getShape();
    return formal == actual;
  };
  auto check = [&](TypeRange formals, TypeRange actuals, StringRef what) -> LogicalResult {
    if (formals.size() != actuals.size())
      return emitOpError() << getKernelAttr() << " has " << formals.size() << ' ' << what
                           << ", got " << actuals.size();
    for (auto [i, formal, actual] : llvm::enumerate(formals, actuals))
      if (!matches(formal, actual))
        return emitOpError() << what << ' ' << i << " of " << getKernelAttr() << " is " << formal
                             << ", got " << actual;
    return success();
  };
  if (failed(check(type.getInputs().drop_front(), getInputs().getTypes(), "inputs")))
    return failure();
  return check(type.getResults(), getOutputs().getTypes(), "outputs");
}

} // namespace tenon::sched
