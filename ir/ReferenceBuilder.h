// What reference decompositions are written with: linalg.generic in the notation of index sums.
//
//   e.generic("ntk: tk, nk -> tn", {x, w}, zeros,
//             [&](ValueRange v) { return e.mulAdd(v[2], v[0], v[1]); })
//
// are the loops n, t, k from the outermost to the innermost, with out[t,n] = f(x[t,k], w[n,k],
// out[t,n]). Loops that the output lacks are reductions.
#ifndef TENON_IR_REFERENCEBUILDER_H
#define TENON_IR_REFERENCEBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace tenon {

class ReferenceBuilder {
public:
  using Shape = llvm::SmallVector<mlir::OpFoldResult>;

  ReferenceBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  // Builds any operation.
  template <typename Op, typename... Args> Op create(Args &&...args) {
    return Op::create(builder, loc, std::forward<Args>(args)...);
  }

  //===--- scalars --------------------------------------------------------===//
  mlir::Value index(int64_t value) { return create<mlir::arith::ConstantIndexOp>(value); }
  mlir::Value constant(double value, mlir::Type type);
  mlir::Value f32(double value) { return constant(value, builder.getF32Type()); }
  // Converts between floating-point types.
  mlir::Value toFloat(mlir::Value value, mlir::Type type);
  mlir::Value add(mlir::Value a, mlir::Value b); // floats or indices, like the others
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value div(mlir::Value a, mlir::Value b); // floats
  mlir::Value exp(mlir::Value a) { return create<mlir::math::ExpOp>(a); }
  mlir::Value softcap(mlir::Value a, double cap); // cap tanh(a / cap)
  // sum + a and sum + a * b: steps of a reduction, whose order is free.
  mlir::Value accumulate(mlir::Value sum, mlir::Value a);
  mlir::Value mulAdd(mlir::Value sum, mlir::Value a, mlir::Value b);

  //===--- tensors --------------------------------------------------------===//
  mlir::OpFoldResult size(int64_t value) { return builder.getIndexAttr(value); }
  Shape shapeOf(mlir::Value tensor) { return mlir::tensor::getMixedSizes(builder, loc, tensor); }
  mlir::OpFoldResult rowsOf(mlir::Value tensor) { return shapeOf(tensor).front(); }
  mlir::Value empty(const Shape &shape, mlir::Type type);
  mlir::Value empty(const Shape &shape) { return empty(shape, builder.getF32Type()); }
  mlir::Value filled(double value, const Shape &shape);
  // One element; `indexAt` converts an i32 element to an index.
  mlir::Value at(mlir::Value tensor, mlir::ValueRange indices) {
    return create<mlir::tensor::ExtractOp>(tensor, indices);
  }
  mlir::Value indexAt(mlir::Value tensor, mlir::ValueRange indices);
  // [rows, a * b] as [rows, a, b], and back: all dimensions after the first `kept` become one.
  mlir::Value splitColumns(mlir::Value rows, llvm::ArrayRef<int64_t> extents);
  mlir::Value joinColumns(mlir::Value tensor, int64_t kept = 1);
  // Every `stride`th of the elements from `begin` on along the last dimension, `count` of them.
  mlir::Value take(mlir::Value tensor, int64_t begin, int64_t count, int64_t stride = 1);
  mlir::Value put(mlir::Value part, mlir::Value tensor, int64_t begin, int64_t stride = 1);
  // Entry i along the first dimension, and back.
  mlir::Value takeRow(mlir::Value tensor, mlir::Value i);
  mlir::Value putRow(mlir::Value row, mlir::Value tensor, mlir::Value i);

  //===--- loops ----------------------------------------------------------===//
  // One linalg.generic, see above. `body` maps the elements of the inputs and then of the output to
  // the new element of the output. Inside, `loop(i)` is the index of loop i.
  mlir::Value generic(llvm::StringRef notation, mlir::ValueRange inputs, mlir::Value output,
                      llvm::function_ref<mlir::Value(mlir::ValueRange)> body);
  mlir::Value loop(int64_t i) { return create<mlir::linalg::IndexOp>(i); }
  // for i in 0 .. count: values = body(i, values)
  mlir::ValueRange
  forEach(mlir::OpFoldResult count, mlir::ValueRange initial,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);

private:
  // The sizes of all but the last dimension, with the last one replaced.
  Shape withLast(mlir::Value tensor, int64_t last);

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace tenon

#endif // TENON_IR_REFERENCEBUILDER_H
