// llm-stack-qkv: projections that attention reads of the same rows become one product.
//
//          x                     x
//       ┌──┼──┐                  │
//       Q  K  V    ─▶     linear [Q; K; V]
//       │  │  │                  │
//                        slice slice slice
#include "passes/Graph.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tenon {
#define GEN_PASS_DEF_LLMSTACKQKV
#include "passes/Passes.h.inc"

using namespace mlir;
using namespace tenon::llm;

namespace {

struct Projection {
  LinearOp linear;
  Role role;
};

struct StackQKV : impl::LLMStackQKVBase<StackQKV> {
  void runOnOperation() override {
    llvm::SetVector<Value> inputs;
    for (LinearOp linear : getOperation().getOps<LinearOp>())
      inputs.insert(linear.getInput());
    for (Value input : inputs)
      stackReaders(input);
  }

  // An encoder's rows are read by every layer that attends to them: keys go with the values that
  // they are kept with, and a query with the only ones.
  void stackReaders(Value input) {
    llvm::MapVector<Operation *, SmallVector<Projection>> readers;
    SmallVector<Projection> queries;
    for (Operation *user : input.getUsers()) {
      auto linear = dyn_cast<LinearOp>(user);
      Reader reader = linear ? getReader(linear) : Reader();
      if (reader.role == Role::query)
        queries.push_back({linear, reader.role});
      else if (reader.op)
        readers[reader.op].push_back({linear, reader.role});
    }
    for (auto &[reader, projections] : readers) {
      if (readers.size() == 1 && queries.size() == 1)
        projections.push_back(queries.front());
      if (projections.size() > 1)
        stackAll(reader, projections);
    }
  }

  void stackAll(Operation *reader, SmallVector<Projection> &projections) {
    llvm::sort(projections,
               [](const Projection &a, const Projection &b) { return a.role < b.role; });
    SmallVector<LinearOp> linears =
        llvm::map_to_vector(projections, [](const Projection &p) { return p.linear; });
    std::string why;
    if (!canStack(linears, why))
      return emitMissed(reader, getArgument(), why, "not done");
    OpBuilder builder(linears.front());
    for (LinearOp linear : linears)
      if (linear->isBeforeInBlock(&*builder.getInsertionPoint()))
        builder.setInsertionPoint(linear);
    StackedLinear stacked = stack(builder, linears);
    Value product = LinearOp::create(builder, reader->getLoc(), linears.front().getInput(),
                                     stacked.weight, stacked.bias);
    emitPassed(reader, getArgument(),
               Twine(linears.size()) + " projections of the same rows are one");
    replaceWithSlices(builder, linears, product);
  }
};

} // namespace
} // namespace tenon
