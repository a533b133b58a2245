// sched-plan-buffers: where each buffer lies in the arena.
//
// Time is counted in epochs: threads of one epoch run freely, a barrier begins the next. A buffer
// lives from the epoch of its stage to that of its last reader, and bytes may be reused in a later
// epoch.
//
//   offset ▲  ┌────────┐ ┌──────────────┐
//          │  │ qkv    │ │ gate_up      │
//          │  ├────────┴─┴──────────────┤
//          │  │ x                       │
//          └──┴─────────────────────────┴──▶ epoch
#include "passes/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace tenon {
#define GEN_PASS_DEF_SCHEDPLANBUFFERS
#include "passes/Passes.h.inc"

using namespace mlir;

namespace {

struct Lifetime {
  sched::BufferOp buffer;
  int64_t index; // in program order
  int64_t bytes; // of a row, a multiple of a cache line
  int64_t first, last;
  int64_t offset = 0;

  bool meets(const Lifetime &other) const { return first <= other.last && other.first <= last; }
};

Value getRoot(Value buffer) {
  while (auto view = buffer.getDefiningOp<sched::ViewOp>())
    buffer = view.getSource();
  return buffer;
}

struct PlanBuffers : impl::SchedPlanBuffersBase<PlanBuffers> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<sched::ProgramOp>()) {
      llvm::MapVector<Value, Lifetime> lifetimes = getLifetimes(program);
      program.setTokenBytes(place(lifetimes, sched::Space::tokens));
      program.setScoredBytes(place(lifetimes, sched::Space::scored));
    }
  }

  static llvm::MapVector<Value, Lifetime> getLifetimes(sched::ProgramOp program) {
    llvm::MapVector<Value, Lifetime> lifetimes;
    int64_t epoch = 0;
    for (Operation &op : program.getBody().front()) {
      if (isa<sched::BarrierOp>(op))
        ++epoch;
      if (auto buffer = dyn_cast<sched::BufferOp>(op)) {
        int64_t bytes = llvm::alignTo(sched::getColumns(buffer.getType()) * sizeof(float), 64);
        lifetimes.insert({buffer, {buffer, int64_t(lifetimes.size()), bytes, INT64_MAX, -1}});
      }
      if (isa<sched::StageOp, sched::OutputOp>(op))
        for (Value operand : op.getOperands())
          if (auto found = lifetimes.find(getRoot(operand)); found != lifetimes.end()) {
            Lifetime &life = found->second;
            life.first = std::min(life.first, epoch);
            life.last = isa<sched::OutputOp>(op) ? INT64_MAX : std::max(life.last, epoch);
          }
    }
    return lifetimes;
  }

  // Places the buffers of one space and returns the bytes of a row of all of them.
  static int64_t place(llvm::MapVector<Value, Lifetime> &lifetimes, sched::Space space) {
    SmallVector<Lifetime *> order;
    for (auto &[value, life] : lifetimes)
      if (life.buffer.getSpace() == space)
        order.push_back(&life);
    // What outlives the program comes first, so that the logits of every phase are at the same
    // place.
    llvm::sort(order, [](Lifetime *a, Lifetime *b) {
      auto rank = [](Lifetime *life) {
        return std::make_tuple(life->last != INT64_MAX, -life->bytes, life->index);
      };
      return rank(a) < rank(b);
    });

    int64_t total = 0;
    SmallVector<Lifetime *> placed; // by offset
    for (Lifetime *life : order) {
      for (Lifetime *other : placed)
        if (life->meets(*other) && life->offset < other->offset + other->bytes &&
            other->offset < life->offset + life->bytes)
          life->offset = other->offset + other->bytes;
      life->buffer.setOffset(life->offset);
      total = std::max(total, life->offset + life->bytes);
      placed.insert(
          llvm::upper_bound(placed, life,
                            [](Lifetime *a, Lifetime *b) { return a->offset < b->offset; }),
          life);
    }
    return total;
  }
};

} // namespace
} // namespace tenon
