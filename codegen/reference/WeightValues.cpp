// See WeightValues.h.
#include "codegen/reference/WeightValues.h"
#include "codegen/Error.h"
#include "codegen/Packing.h"
#include "codegen/WeightWriter.h"
#include "ir/RandomWeights.h"

using namespace mlir;
using namespace tenon::llm;

namespace tenon {

// As f32: enough for a layer of most models, or all of a small one.
static constexpr int64_t mostBytes = int64_t(8) << 30;

static int64_t getBytes(WeightType type) {
  return type.getNumElements() * (type.getStorage() == Storage::F64 ? 8 : 4);
}

// The recipe as text, the same wherever it stands.
static void describe(Value weight, llvm::raw_ostream &out) {
  Operation *op = weight.getDefiningOp();
  out << op->getName() << op->getAttrDictionary() << weight.getType() << '(';
  for (Value operand : op->getOperands())
    describe(operand, out);
  out << ')';
}

static std::string describe(Value weight) {
  std::string text;
  llvm::raw_string_ostream out(text);
  describe(weight, out);
  return text;
}

// The checkpoint's tensors that a recipe reads.
static llvm::Error collect(Value weight, std::vector<TensorInfo> &tensors) {
  Operation *op = weight.getDefiningOp();
  for (Value operand : op->getOperands())
    if (llvm::Error error = collect(operand, tensors))
      return error;
  auto leaf = dyn_cast<WeightOp>(op);
  if (!leaf)
    return llvm::Error::success();
  WeightType type = leaf.getResult().getType();
  TensorInfo info{leaf.getTensor().str(), SmallVector<int64_t, 4>(type.getShape()),
                  type.getStorage()};
  if (info.storage == Storage::F64)
    return refused("tensor " + info.name + " is stored as f64");
  for (const TensorInfo &other : tensors)
    if (other.name == info.name) {
      if (other.shape != info.shape || other.storage != info.storage)
        return refused("tensor " + info.name + " has two types");
      return llvm::Error::success();
    }
  tensors.push_back(std::move(info));
  return llvm::Error::success();
}

llvm::Error WeightValues::begin(ArrayRef<Value> weights) {
  llvm::StringSet<> wanted;
  int64_t bytes = 0;
  for (Value weight : weights)
    if (wanted.insert(describe(weight)).second)
      bytes += getBytes(cast<WeightType>(weight.getType()));
  if (bytes > mostBytes)
    return refused("its weights would take " + llvm::Twine(bytes >> 20) + " MiB as f32, of " +
                   llvm::Twine(mostBytes >> 20) + " at most; --set layers=1 may do");
  for (auto entry = known.begin(); entry != known.end();) {
    auto old = entry++;
    if (!wanted.contains(old->first()))
      known.erase(old);
  }
  return llvm::Error::success();
}

llvm::Expected<const void *> WeightValues::get(Value weight) {
  auto [entry, isNew] = known.try_emplace(describe(weight));
  if (isNew)
    if (llvm::Error error = evaluate(weight, entry->second)) {
      known.erase(entry);
      return error;
    }
  return entry->second.data();
}

llvm::Error WeightValues::evaluate(Value weight, std::vector<char> &bytes) const {
  std::vector<TensorInfo> tensors;
  if (llvm::Error error = collect(weight, tensors))
    return error;
  RandomWeights source(seed, std::move(tensors));

  auto pack = weight.getDefiningOp<WeightPackOp>();
  Value plain = pack ? pack.getInput() : weight;
  auto type = cast<WeightType>(plain.getType());
  bytes.resize(getBytes(type));
  int64_t rows = type.getRank() == 1 ? 1 : type.getRows(), columns = type.getColumns();
  PackedFormat format = getPackedFormat(type.getStorage());
  std::vector<uint8_t> tile;
  for (int64_t row = 0; row < rows; row += TileRows) {
    int64_t count = std::min(TileRows, rows - row);
    WeightRows stored;
    if (llvm::Error error = readWeightRows(plain, source, row, count, stored))
      return error;
    if (stored.storage == Storage::F64) {
      std::memcpy(bytes.data() + row * columns * 8, stored.bytes.data(), stored.bytes.size());
      continue;
    }
    float *values = reinterpret_cast<float *>(bytes.data()) + row * columns;
    if (pack || (isQuantised(type.getStorage()) && stored.storage != type.getStorage())) {
      tile.resize(getPackedTileBytes(format, columns));
      packTile(format, count, columns, stored.storage, stored.bytes.data(), tile.data());
      unpackTile(format, count, columns, tile.data(), values);
      continue;
    }
    int64_t stride = getRowBytes(stored.storage, columns);
    for (int64_t i = 0; i < count; ++i)
      decodeRow(stored.storage, stored.bytes.data() + i * stride, columns, values + i * columns);
  }
  return llvm::Error::success();
}

} // namespace tenon
