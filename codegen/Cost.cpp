// See Cost.h.
#include "codegen/Cost.h"
#include "ir/LLM.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tenon::llm;

namespace tenon {

Cost &Cost::operator+=(const Cost &other) {
  operations += other.operations;
  weightBytes += other.weightBytes;
  cacheBytes += other.cacheBytes;
  flops += other.flops;
  return *this;
}

namespace {

int64_t getActivationFlops(ActivationKind kind) {
  switch (kind) {
  case ActivationKind::relu:
    return 1;
  case ActivationKind::silu:
    return 4;
  case ActivationKind::sigmoid:
    return 3;
  case ActivationKind::quick_gelu:
  case ActivationKind::gelu:
    return 5;
  case ActivationKind::gelu_tanh:
    return 9;
  }
  return 1;
}

class Estimator {
public:
  explicit Estimator(const Workload &workload) : workload(workload) {}

  Cost estimate(Operation &op) {
    bool isScored = isa<GatherRowsOp>(op) || llvm::any_of(op.getOperands(), [&](Value operand) {
                      return scored.contains(operand);
                    });
    if (isScored)
      scored.insert_range(op.getResults());
    rows = isScored ? workload.scored : workload.tokens;
    Cost cost;
    cost.operations = 1;
    cost.weightBytes = getWeightBytes(op);
    cost.cacheBytes = getCacheBytes(op);
    cost.flops = getFlops(op);
    return cost;
  }

  // Results of a fused operation follow those of its body.
  void leave(Operation &op, Operation &terminator) {
    for (auto [result, value] : llvm::zip(op.getResults(), terminator.getOperands()))
      if (scored.contains(value))
        scored.insert(result);
  }

private:
  int64_t getWeightBytes(Operation &op) {
    if (isa<EmbeddingOp, PositionEmbeddingOp>(op)) {
      auto table = cast<WeightType>(op.getOperand(1).getType());
      return table.getByteSize() / table.getRows() * rows;
    }
    if (auto experts = dyn_cast<ExpertLinearOp>(op)) { // only those that a token has chosen
      WeightType type = experts.getWeight().getType();
      int64_t count = type.getShape()[0];
      return type.getByteSize() / count * std::min(count, rows * experts.getSlots());
    }
    int64_t bytes = 0;
    for (Value operand : op.getOperands())
      if (auto weight = dyn_cast<WeightType>(operand.getType()))
        bytes += weight.getByteSize();
    return bytes;
  }

  int64_t getCacheBytes(Operation &op) {
    for (Value operand : op.getOperands())
      if (auto cache = dyn_cast<CacheType>(operand.getType()))
        return cache.getPositionBytes() *
               (isa<KVAppendOp>(op) ? workload.tokens : workload.context);
    return 0;
  }

  int64_t getElements(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getRank() == 2 && !type.isDynamicDim(1) ? rows * type.getDimSize(1) : 0;
  }

  int64_t getAttentionFlops(int64_t heads, int64_t headDim, int64_t valueDim) {
    return workload.pairs * heads * (2 * headDim + 2 * valueDim + 4);
  }

  int64_t getFlops(Operation &op) {
    return llvm::TypeSwitch<Operation *, int64_t>(&op)
        .Case([&](LinearOp linear) {
          int64_t bias = linear.getBias() ? getElements(linear) : 0;
          return 2 * rows * linear.getWeight().getType().getNumElements() + bias;
        })
        .Case([&](ExpertLinearOp linear) {
          return 2 * rows * linear.getSlots() * linear.getWeight().getType().getMatrixRows() *
                 linear.getWeight().getType().getColumns();
        })
        .Case([&](RopeOp rope) { return 3 * rope.getHeads() * getElements(rope.getAngles()); })
        .Case([&](RopeAnglesOp angles) { return 2 * getElements(angles); })
        .Case([&](AttentionOp attention) {
          return getAttentionFlops(attention.getNumHeads(), attention.getHeadDim(),
                                   getColumns(attention.getValue()) / attention.getNumKvHeads());
        })
        .Case([&](PagedAttentionOp attention) {
          CacheType cache = attention.getCache().getType();
          return getAttentionFlops(attention.getNumHeads(), cache.getHeadDim(),
                                   cache.getValueDim());
        })
        .Case([&](ActivationOp activation) {
          return getActivationFlops(activation.getKind()) * getElements(activation);
        })
        .Case([&](SoftcapOp softcap) { return 4 * getElements(softcap); })
        .Case<EmbeddingOp, PositionEmbeddingOp, KVAppendOp, KVReadOp, SliceOp, GatherRowsOp,
              RepeatKVOp, JoinHeadsOp, SliceHeadsOp, GatherColumnsOp>([](Operation *) { return 0; })
        .Default([&](Operation *other) { return getOtherFlops(*other); });
  }

  // Norms, add and mul, and operations that this file does not know.
  int64_t getOtherFlops(Operation &op) {
    int64_t elements = 0, products = 0;
    for (Value result : op.getResults())
      elements += getElements(result);
    for (Value operand : op.getOperands())
      if (auto weight = dyn_cast<WeightType>(operand.getType()); weight && weight.getRank() > 1)
        products += 2 * rows * weight.getNumElements();
    if (products)
      return products;
    return elements * (op.getName().stripDialect().contains("norm") ? 4 : 1);
  }

  const Workload &workload;
  int64_t rows = 0; // of the operation at hand
  llvm::DenseSet<Value> scored;
};

void estimateBlock(Block &block, Estimator &estimator, llvm::MapVector<StringRef, Cost> &table) {
  for (Operation &op : block.without_terminator()) {
    if (isa<WeightOpInterface>(op))
      continue;
    if (op.getNumRegions() == 0) {
      table[op.getName().stripDialect()] += estimator.estimate(op);
      continue;
    }
    for (Region &region : op.getRegions())
      for (Block &inner : region) {
        estimateBlock(inner, estimator, table);
        estimator.leave(op, *inner.getTerminator());
      }
  }
}

} // namespace

static CostTable estimate(Region &blocks, const Workload &workload) {
  Estimator estimator(workload);
  llvm::MapVector<StringRef, Cost> table;
  for (Block &block : blocks)
    estimateBlock(block, estimator, table);
  CostTable result;
  for (auto &[name, cost] : table)
    result.push_back({name.str(), cost});
  return result;
}

CostTable estimateCost(func::FuncOp function, const Workload &workload) {
  return estimate(function.getBody(), workload);
}

Cost getTotal(const CostTable &table) {
  Cost total;
  for (const auto &[name, cost] : table)
    total += cost;
  return total;
}

KernelCost getKernelCost(Region &body) {
  Cost row = getTotal(estimate(body, {1, 1, 0, 0})), pair = getTotal(estimate(body, {1, 1, 1, 1}));
  return {row.weightBytes, pair.cacheBytes - row.cacheBytes, row.flops, pair.flops - row.flops};
}

int64_t getCacheBytesPerToken(func::FuncOp function) {
  for (Type type : function.getArgumentTypes())
    if (auto cache = dyn_cast<CacheType>(type))
      return cache.getLayers() * cache.getPositionBytes();
  return 0;
}

} // namespace tenon
