// See WeightWriter.h.
//
//   pack ◀─ concat ◀─ deinterleave, slice, transpose ◀─ weight
//
// Rows are pulled from right to left, 16 at a time; tables are computed where they are asked for.
#include "codegen/WeightWriter.h"
#include "codegen/Error.h"
#include "codegen/Packing.h"
#include "runtime/artefact.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tenon::llm;

namespace tenon {

namespace {

using Rows = WeightRows;

void convertRows(Rows &rows, int64_t count, int64_t columns, Storage target) {
  if (rows.storage == target)
    return;
  int64_t stride = getRowBytes(rows.storage, columns);
  Storage stored = isQuantised(target) ? Storage::F32 : target;
  std::vector<uint8_t> converted(count * columns * getStorageInfo(stored).bytesPerBlock);
  std::vector<float> values(columns);
  for (int64_t row = 0; row < count; ++row) {
    decodeRow(rows.storage, rows.bytes.data() + row * stride, columns, values.data());
    uint8_t *out = converted.data() + row * columns * getStorageInfo(stored).bytesPerBlock;
    for (int64_t i = 0; i < columns; ++i) {
      if (stored == Storage::F32) {
        std::memcpy(out + 4 * i, &values[i], 4);
        continue;
      }
      uint16_t half = stored == Storage::BF16 ? floatToBfloat(values[i]) : floatToHalf(values[i]);
      std::memcpy(out + 2 * i, &half, 2);
    }
  }
  rows = {stored, std::move(converted)};
}

class WeightWriter {
public:
  WeightWriter(WeightSource &source, raw_ostream &out) : source(source), out(out) {}

  llvm::Error write(sched::WeightOp weight) {
    pad(weight.getOffset());
    Value result = weight.getRecipe().front().getTerminator()->getOperand(0);
    if (auto pack = result.getDefiningOp<WeightPackOp>())
      return writePacked(pack);
    return writePlain(result);
  }

  uint64_t finish() {
    flush(/*all=*/true);
    return checksum;
  }

private:
  friend llvm::Error tenon::readWeightRows(Value, WeightSource &, int64_t, int64_t, WeightRows &);

  llvm::Error writePacked(WeightPackOp pack) {
    WeightType type = pack.getInput().getType();
    PackedFormat format =
        getPackedFormat(type.getStorage(), pack.getResult().getType().getLayout() == Layout::x1k8);
    if (type.getRows() / type.getMatrixRows() *
            getPackedBytes(format, type.getMatrixRows(), type.getColumns()) !=
        pack.getResult().getType().getByteSize())
      return internal("the packer and the dialect disagree about the size of a weight");
    std::vector<uint8_t> tile(getPackedTileBytes(format, type.getColumns()));
    int64_t matrixRows = type.getMatrixRows(); // each matrix of a stack by itself
    for (int64_t first = 0; first < type.getRows(); first += matrixRows)
      for (int64_t row = 0; row < matrixRows; row += TileRows) {
        int64_t count = std::min(TileRows, matrixRows - row);
        Rows rows;
        if (llvm::Error error = read(pack.getInput(), first + row, count, rows))
          return error;
        packTile(format, count, type.getColumns(), rows.storage, rows.bytes.data(), tile.data());
        append(tile.data(), tile.size());
      }
    return llvm::Error::success();
  }

  llvm::Error writePlain(Value value) {
    auto type = cast<WeightType>(value.getType());
    int64_t rows = type.getRank() == 1 ? 1 : type.getRows();
    for (int64_t row = 0; row < rows; ++row) {
      Rows block;
      if (llvm::Error error = read(value, row, 1, block))
        return error;
      if (block.storage != type.getStorage())
        return internal("a plain weight cannot be stored as " +
                        getStorageInfo(type.getStorage()).name);
      append(block.bytes.data(), block.bytes.size());
    }
    return llvm::Error::success();
  }

  // Rows [first, first + count) of a recipe's value. A vector is one row.
  llvm::Error read(Value value, int64_t first, int64_t count, Rows &rows) {
    return llvm::TypeSwitch<Operation *, llvm::Error>(value.getDefiningOp())
        .Case([&](WeightOp op) { return readTensor(op, first, count, rows); })
        .Case([&](WeightConvertOp op) -> llvm::Error {
          if (llvm::Error error = read(op.getInput(), first, count, rows))
            return error;
          convertRows(rows, count, op.getResult().getType().getColumns(),
                      op.getResult().getType().getStorage());
          return llvm::Error::success();
        })
        .Case([&](WeightConcatOp op) { return readConcat(op, first, count, rows); })
        .Case([&](WeightDeinterleaveOp op) { return readDeinterleaved(op, first, count, rows); })
        .Case([&](WeightSliceOp op) { return readSlice(op, first, count, rows); })
        .Case([&](WeightReshapeOp op) { return readReshaped(op, first, count, rows); })
        .Case([&](WeightTransposeOp op) { return readTransposed(op, first, count, rows); })
        .Case([&](RopeFrequenciesOp op) -> llvm::Error {
          SmallVector<double> table = op.evaluate();
          int64_t stride = op.getResult().getType().getColumns() * int64_t(sizeof(double));
          const auto *bytes = reinterpret_cast<const uint8_t *>(table.data()) + first * stride;
          rows = {Storage::F64, {bytes, bytes + count * stride}};
          return llvm::Error::success();
        })
        .Case([&](SinusoidalOp op) -> llvm::Error {
          SmallVector<float> table = op.evaluate(first, count);
          const auto *bytes = reinterpret_cast<const uint8_t *>(table.data());
          rows = {Storage::F32, {bytes, bytes + table.size() * sizeof(float)}};
          return llvm::Error::success();
        })
        .Case([&](AlibiOp op) -> llvm::Error {
          rows = {Storage::F32, {}};
          for (int64_t head = first; head < first + count; ++head)
            appendFloats(rows, op.evaluate(head));
          return llvm::Error::success();
        })
        .Case([&](RelativeBiasOp op) { return readRelativeBias(op, first, count, rows); })
        .Default([&](Operation *op) {
          return internal("no recipe for " + op->getName().getStringRef());
        });
  }

  llvm::Error readTensor(WeightOp op, int64_t first, int64_t count, Rows &rows) {
    const TensorInfo *tensor = source.find(op.getTensor());
    if (!tensor)
      return internal(source.getName() + " has no tensor " + op.getTensor());
    llvm::ArrayRef<uint8_t> bytes = source.getRows(*tensor, first, count);
    rows = {tensor->storage, {bytes.begin(), bytes.end()}};
    return llvm::Error::success();
  }

  static void append(Rows &rows, Rows &&more) {
    rows.storage = more.storage;
    rows.bytes.insert(rows.bytes.end(), more.bytes.begin(), more.bytes.end());
  }

  llvm::Error readConcat(WeightConcatOp op, int64_t first, int64_t count, Rows &rows) {
    bool isVector = op.getResult().getType().getRank() == 1;
    int64_t begin = 0;
    for (Value input : op.getInputs()) {
      auto type = cast<WeightType>(input.getType());
      int64_t extent = isVector ? 1 : type.getRows();
      int64_t from = isVector ? 0 : std::max(first, begin) - begin;
      int64_t to = isVector ? 1 : std::min(first + count, begin + extent) - begin;
      begin += isVector ? 0 : extent;
      if (from >= to)
        continue;
      Rows part;
      if (llvm::Error error = read(input, from, to - from, part))
        return error;
      append(rows, std::move(part));
    }
    return llvm::Error::success();
  }

  llvm::Error readDeinterleaved(WeightDeinterleaveOp op, int64_t first, int64_t count, Rows &rows) {
    WeightType type = op.getResult().getType();
    int64_t head = type.getShape()[0] / op.getHeads();
    auto getSource = [&](int64_t row) {
      int64_t i = row % head;
      return row - i + (i < head / 2 ? 2 * i : 2 * (i - head / 2) + 1);
    };
    if (type.getRank() == 1) {
      Rows vector;
      if (llvm::Error error = read(op.getInput(), 0, 1, vector))
        return error;
      int64_t bytes = getStorageInfo(vector.storage).bytesPerBlock;
      rows = {vector.storage, std::vector<uint8_t>(vector.bytes.size())};
      for (int64_t i = 0; i < type.getColumns(); ++i)
        std::memcpy(rows.bytes.data() + i * bytes, vector.bytes.data() + getSource(i) * bytes,
                    bytes);
      return llvm::Error::success();
    }
    for (int64_t row = first; row < first + count; ++row) {
      Rows part;
      if (llvm::Error error = read(op.getInput(), getSource(row), 1, part))
        return error;
      append(rows, std::move(part));
    }
    return llvm::Error::success();
  }

  // Whole runs of rows at a time. A vector's elements are its rows.
  llvm::Error readSlice(WeightSliceOp op, int64_t first, int64_t count, Rows &rows) {
    int64_t run = op.getEnd() - op.getBegin();
    bool isVector = op.getResult().getType().getRank() == 1;
    Rows vector;
    if (isVector) {
      count = op.getResult().getType().getColumns();
      if (llvm::Error error = read(op.getInput(), 0, 1, vector))
        return error;
    }
    int64_t bytes = isVector ? getStorageInfo(vector.storage).bytesPerBlock : 0;
    for (int64_t row = first; row < first + count;) {
      int64_t length = std::min(run - row % run, first + count - row);
      int64_t from = op.getSourceRow(row);
      Rows part;
      if (isVector) {
        const uint8_t *begin = vector.bytes.data() + from * bytes;
        part = {vector.storage, {begin, begin + length * bytes}};
      } else if (llvm::Error error = read(op.getInput(), from, length, part)) {
        return error;
      }
      append(rows, std::move(part));
      row += length;
    }
    return llvm::Error::success();
  }

  // Rows stay rows, or all of them are one vector.
  llvm::Error readReshaped(WeightReshapeOp op, int64_t first, int64_t count, Rows &rows) {
    WeightType from = op.getInput().getType();
    if (op.getResult().getType().getRank() == 1 && from.getRank() > 1)
      return read(op.getInput(), 0, from.getRows(), rows);
    return read(op.getInput(), first, count, rows);
  }

  // A tile of rows is a strip of columns. The whole matrix (one of a stack) is turned once and kept
  // until another is asked for, since each strip would read all of it.
  llvm::Error readTransposed(WeightTransposeOp op, int64_t first, int64_t count, Rows &rows) {
    WeightType type = op.getResult().getType();
    int64_t height = type.getMatrixRows(), width = type.getColumns();
    while (count > 0) {
      int64_t matrix = first / height, row = first % height, run = std::min(count, height - row);
      if (transposed != op.getResult() || turnedMatrix != matrix) {
        Rows source;
        if (llvm::Error error = read(op.getInput(), matrix * width, width, source))
          return error;
        turned = {source.storage, std::vector<uint8_t>(source.bytes.size())};
        int64_t bytes = getStorageInfo(source.storage).bytesPerBlock;
        for (int64_t i = 0; i < height; ++i)
          for (int64_t j = 0; j < width; ++j)
            std::memcpy(turned.bytes.data() + (i * width + j) * bytes,
                        source.bytes.data() + (j * height + i) * bytes, bytes);
        transposed = op.getResult();
        turnedMatrix = matrix;
      }
      int64_t stride = getRowBytes(turned.storage, width);
      const uint8_t *begin = turned.bytes.data() + row * stride;
      append(rows, {turned.storage, {begin, begin + run * stride}});
      first += run;
      count -= run;
    }
    return llvm::Error::success();
  }

  static void appendFloats(Rows &rows, ArrayRef<float> values) {
    const auto *bytes = reinterpret_cast<const uint8_t *>(values.data());
    rows.bytes.insert(rows.bytes.end(), bytes, bytes + values.size() * sizeof(float));
  }

  // Rows are columns of the small matrix of buckets, which is read each time.
  llvm::Error readRelativeBias(RelativeBiasOp op, int64_t first, int64_t count, Rows &rows) {
    WeightType type = op.getInput().getType();
    Rows buckets;
    if (llvm::Error error = read(op.getInput(), 0, type.getRows(), buckets))
      return error;
    convertRows(buckets, type.getRows(), type.getColumns(), Storage::F32);
    const auto *values = reinterpret_cast<const float *>(buckets.bytes.data());
    rows = {Storage::F32, {}};
    std::vector<float> row(op.getResult().getType().getColumns());
    for (int64_t head = first; head < first + count; ++head) {
      for (auto [n, entry] : llvm::enumerate(row))
        entry = values[op.getBucket(int64_t(n) - int64_t(op.getMaxDistance())) * type.getColumns() +
                       head];
      appendFloats(rows, row);
    }
    return llvm::Error::success();
  }

  //===--------------------------------------------------------------------===//
  // Output, in pieces whose lengths are multiples of 8, as the checksum wants them
  //===--------------------------------------------------------------------===//

  void append(const void *data, size_t bytes) {
    const char *begin = static_cast<const char *>(data);
    pending.insert(pending.end(), begin, begin + bytes);
    position += bytes;
    if (pending.size() >= (1 << 20))
      flush(/*all=*/false);
  }

  void pad(int64_t offset) {
    static constexpr char zeros[64] = {};
    while (position < offset)
      append(zeros, std::min<int64_t>(sizeof zeros, offset - position));
  }

  void flush(bool all) {
    size_t bytes = all ? pending.size() : pending.size() / 8 * 8;
    checksum = tenon_checksum(checksum, pending.data(), bytes);
    out.write(pending.data(), bytes);
    pending.erase(pending.begin(), pending.begin() + bytes);
  }

  WeightSource &source;
  raw_ostream &out;
  Value transposed; // what `turned` holds, and of which matrix of it
  int64_t turnedMatrix = 0;
  Rows turned;
  std::vector<char> pending;
  int64_t position = 0;
  uint64_t checksum = TENON_CHECKSUM_SEED;
};

} // namespace

llvm::Error readWeightRows(Value weight, WeightSource &source, int64_t first, int64_t count,
                           WeightRows &rows) {
  return WeightWriter(source, llvm::nulls()).read(weight, first, count, rows);
}

llvm::Expected<uint64_t> writeWeights(ModuleOp module, WeightSource &source,
                                      llvm::raw_ostream &out) {
  // The module lists weights in the order of their offsets.
  WeightWriter writer(source, out);
  for (auto weight : module.getOps<sched::WeightOp>())
    if (llvm::Error error = writer.write(weight))
      return error;
  return writer.finish();
}

} // namespace tenon
