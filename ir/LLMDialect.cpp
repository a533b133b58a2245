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
  // Every matrix of a stack begins with a tile of its own.
  int64_t matrices = getRows() / getMatrixRows();
  int64_t tiles = matrices * llvm::divideCeil(getMatrixRows(), 16);
  if (getLayout() != Layout::x16k4)
    return tiles * 16 * llvm::alignTo(getColumns(), int64_t(getLayout())) * info.bytesPerBlock;
  // Groups of 32 columns: a line of 64 bytes for 8 columns of 4 bits or 4 columns of 8 bits, and
  // for each group of the storage 32 bits: a scale, or a scale and a minimum of 16 bits each.
  int64_t codes = info.bits == 4 ? 256 : 512;
  int64_t scales = 64 * 32 / info.groupSize;
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
  Layout tiles = getPackedLayout(storage), rows = getPackedLayout(storage, /*keepRows=*/true);
  if (layout == Layout::plain || layout == tiles || layout == rows)
    return success();
  InFlightDiagnostic error = emitError() << "layout " << stringifyLayout(layout)
                                         << " does not fit storage " << getStorageInfo(storage).name
                                         << ", which packs as " << stringifyLayout(tiles);
  if (rows != tiles)
    error << " or " << stringifyLayout(rows);
  return error;
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
// !llm.cache<30 x [k: 3x64xbf16, v: 3x64xbf16]>, !llm.cache<27 x [k: 1x576xbf16, v: 512 of k]>
//===----------------------------------------------------------------------===//

CacheType CacheType::withLayers(int64_t layers) const {
  return get(getContext(), layers, getHeads(), getHeadDim(), getValueDim(), getValuesInKeys(),
             getElementType(), getMemory());
}

int64_t CacheType::getRowBytes(int64_t dim) const {
  int64_t elements = dim * getElementType().getIntOrFloatBitWidth() / 8;
  return isQuantised() ? elements + 2 * getGroups(dim) : elements;
}

Type CacheType::parse(AsmParser &parser) {
  int64_t layers = 0;
  SmallVector<int64_t> key;
  Type keyElement;
  auto parseRow = [&](StringRef name, SmallVector<int64_t> &shape, Type &element) -> ParseResult {
    return failure(parser.parseKeyword(name) || parser.parseColon() ||
                   parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
                   parser.parseType(element));
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseInteger(layers) || parser.parseKeyword("x") ||
      parser.parseLSquare() || parseRow("k", key, keyElement) || parser.parseComma() ||
      parser.parseKeyword("v") || parser.parseColon())
    return {};
  // `512 of k`, or a row of its own; both begin with a number.
  SmallVector<int64_t> value(1);
  if (parser.parseInteger(value[0]))
    return {};
  bool valuesInKeys = succeeded(parser.parseOptionalKeyword("of"));
  Type valueElement = keyElement;
  if (valuesInKeys)
    value.insert(value.begin(), key.empty() ? 0 : key[0]);
  if (valuesInKeys ? parser.parseKeyword("k")
                   : ParseResult(failure(parser.parseXInDimensionList() ||
                                         parser.parseDimensionList(value, /*allowDynamic=*/false) ||
                                         parser.parseType(valueElement))))
    return {};
  if (parser.parseRSquare())
    return {};
  bool isMemory = succeeded(parser.parseOptionalComma());
  if ((isMemory && parser.parseKeyword("memory")) || parser.parseGreater())
    return {};
  if (!keyElement.isF32() && !keyElement.isBF16() && !keyElement.isF16() &&
      !keyElement.isSignlessInteger(8)) {
    parser.emitError(loc) << "elements of a cache are f32, bf16, f16 or i8, not " << keyElement;
    return {};
  }
  if (key.size() != 2 || value.size() != 2 || key[0] != value[0] || keyElement != valueElement ||
      layers <= 0 || (valuesInKeys && value[1] > key[1])) {
    parser.emitError(loc) << "expected layers x [k: HxDxT, v: HxDxT] with as many heads of keys as "
                             "of values, or v: D of k";
    return {};
  }
  return get(parser.getContext(), layers, key[0], key[1], value[1], valuesInKeys, keyElement,
             isMemory);
}

void CacheType::print(AsmPrinter &printer) const {
  printer << '<' << getLayers() << " x [k: " << getHeads() << 'x' << getHeadDim() << 'x'
          << getElementType() << ", v: ";
  if (getValuesInKeys())
    printer << getValueDim() << " of k";
  else
    printer << getHeads() << 'x' << getValueDim() << 'x' << getElementType();
  printer << (getMemory() ? "], memory>" : "]>");
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

RankedTensorType getRowsType(MLIRContext *context, int64_t columns) {
  return RankedTensorType::get({ShapedType::kDynamic, columns}, Float32Type::get(context));
}

int64_t getColumns(Value rows) { return cast<RankedTensorType>(rows.getType()).getDimSize(1); }

Layout getPackedLayout(Storage storage, bool keepRows) {
  switch (storage) {
  case Storage::F64:
    return Layout::plain;
  case Storage::F32:
    return Layout::x16k1;
  case Storage::F16:
  case Storage::BF16:
    return keepRows ? Layout::x1k8 : Layout::x16k2;
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
