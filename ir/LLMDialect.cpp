// Registration, types and attributes of the llm dialect.
#include "ir/LLM.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tenon::llm {

void LLMDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/LLMTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/LLMAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/LLMOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// !llm.weight<960x576xq4_1, x16k4>
//===----------------------------------------------------------------------===//

int64_t WeightType::getNumElements() const {
  int64_t elements = 1;
  for (int64_t extent : getShape())
    elements *= extent;
  return elements;
}

int64_t WeightType::getByteSize() const {
  const StorageInfo &info = getStorageInfo(getStorage());
  if (getLayout() == Layout::plain)
    return llvm::divideCeil(getNumElements(), info.valuesPerBlock) * info.bytesPerBlock;
  int64_t tiles = llvm::divideCeil(getRows(), 16);
  if (getLayout() != Layout::x16k4)
    return tiles * 16 * llvm::alignTo(getColumns(), int64_t(getLayout())) * info.bytesPerBlock;
  // Groups of 32 columns: a line of 64 bytes for 8 columns of 4 bits or 4 columns of 8 bits, and
  // the scales: two of 16 bits with a minimum, else one of 32 bits for each group of the storage.
  int64_t codes = info.bits == 4 ? 256 : 512;
  int64_t scales = info.hasMin ? 64 : 64 * 32 / info.groupSize;
  return tiles * llvm::divideCeil(getColumns(), 32) * (codes + scales);
}

WeightType WeightType::withStorage(Storage storage) const {
  return get(getContext(), getShape(), storage, getLayout());
}

WeightType WeightType::withLayout(Layout layout) const {
  return get(getContext(), getShape(), getStorage(), layout);
}

LogicalResult WeightType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> shape, Storage storage, Layout layout) {
  if (shape.empty())
    return emitError() << "a weight has at least one dimension";
  for (int64_t extent : shape)
    if (extent <= 0)
      return emitError() << "a weight's dimensions are positive, got " << extent;
  if (layout != Layout::plain && layout != getPackedLayout(storage))
    return emitError() << "layout " << stringifyLayout(layout) << " does not fit storage "
                       << getStorageInfo(storage).name << ", which packs as "
                       << stringifyLayout(getPackedLayout(storage));
  return success();
}

Type WeightType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  StringRef storageName;
  SMLoc loc;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false, /*withTrailingX=*/true))
    return {};
  loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&storageName))
    return {};
  std::optional<Storage> storage = parseStorage(storageName);
  if (!storage) {
    parser.emitError(loc) << "unknown storage '" << storageName << "'";
    return {};
  }
  Layout layout = Layout::plain;
  if (succeeded(parser.parseOptionalComma())) {
    StringRef layoutName;
    loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&layoutName))
      return {};
    std::optional<Layout> parsed = symbolizeLayout(layoutName);
    if (!parsed) {
      parser.emitError(loc) << "unknown layout '" << layoutName << "'";
      return {};
    }
    layout = *parsed;
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(parser.getNameLoc()); }, parser.getContext(),
                    shape, *storage, layout);
}

void WeightType::print(AsmPrinter &printer) const {
  printer << '<';
  for (int64_t extent : getShape())
    printer << extent << 'x';
  printer << getStorageInfo(getStorage()).name;
  if (getLayout() != Layout::plain)
    printer << ", " << stringifyLayout(getLayout());
  printer << '>';
}

//===----------------------------------------------------------------------===//
// !llm.cache<30 x [k: 3x64xbf16, v: 3x64xbf16]>
//===----------------------------------------------------------------------===//

Type CacheType::parse(AsmParser &parser) {
  int64_t layers = 0;
  SmallVector<int64_t> key, value;
  Type keyElement, valueElement;
  auto parseRow = [&](StringRef name, SmallVector<int64_t> &shape, Type &element) -> ParseResult {
    return failure(parser.parseKeyword(name) || parser.parseColon() ||
                   parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
                   parser.parseType(element));
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseInteger(layers) || parser.parseKeyword("x") ||
      parser.parseLSquare() || parseRow("k", key, keyElement) || parser.parseComma() ||
      parseRow("v", value, valueElement) || parser.parseRSquare())
    return {};
  bool isMemory = succeeded(parser.parseOptionalComma());
  if ((isMemory && parser.parseKeyword("memory")) || parser.parseGreater())
    return {};
  if (key.size() != 2 || key != value || keyElement != valueElement || layers <= 0) {
    parser.emitError(loc)
        << "expected layers x [k: HxDxT, v: HxDxT] with equal rows for keys and values";
    return {};
  }
  return get(parser.getContext(), layers, key[0], key[1], keyElement, isMemory);
}

CacheType CacheType::withLayers(int64_t layers) const {
  return get(getContext(), layers, getHeads(), getHeadDim(), getElementType(), getMemory());
}

void CacheType::print(AsmPrinter &printer) const {
  auto row = [&](StringRef name) {
    printer << name << ": " << getHeads() << 'x' << getHeadDim() << 'x' << getElementType();
  };
  printer << '<' << getLayers() << " x [";
  row("k");
  printer << ", ";
  row("v");
  printer << (getMemory() ? "], memory>" : "]>");
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

RankedTensorType getRowsType(MLIRContext *context, int64_t columns) {
  return RankedTensorType::get({ShapedType::kDynamic, columns}, Float32Type::get(context));
}

int64_t getColumns(Value rows) { return cast<RankedTensorType>(rows.getType()).getDimSize(1); }

Layout getPackedLayout(Storage storage) {
  switch (storage) {
  case Storage::F64:
    return Layout::plain;
  case Storage::F32:
    return Layout::x16k1;
  case Storage::F16:
  case Storage::BF16:
    return Layout::x16k2;
  default:
    return Layout::x16k4;
  }
}

} // namespace tenon::llm

#include "ir/Enums.cpp.inc"
#include "ir/LLMDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/LLMAttributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/LLMTypes.cpp.inc"

#include "ir/Interfaces.cpp.inc"
