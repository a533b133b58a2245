// What a pass promises about the numbers that a module computes. `--verify-each-numerically` holds
// it to that.
//
//   sameIO      every function takes and gives what it did (default, also of passes that say
//               nothing)
//   phaseMap    functions change their names, arguments or which rows they give; what a caller who
//               feeds the same tokens sees stays the same
//
// Either may be lossy: results may then differ by `tolerance` of the largest of them.
#ifndef TENON_PASSES_PROMISE_H
#define TENON_PASSES_PROMISE_H

#include "mlir/Pass/Pass.h"

namespace tenon {

// Sums may be taken in another order: 1e-4 is a few hundred times what f32 loses by that.
inline constexpr double sameNumbers = 1e-4;

struct Promise {
  enum Kind { sameIO, phaseMap };
  Kind kind = sameIO;
  double tolerance = sameNumbers;
};

// A pass that promises something else than the default implements this, by hand or through
// TenonPass in PassBase.td. What depends on its options it says by overriding getPromise.
class PromiseInterface {
public:
  virtual ~PromiseInterface() = default;
  virtual Promise getPromise() const = 0;
};

inline Promise getPromise(const mlir::Pass &pass) {
  auto promising = dynamic_cast<const PromiseInterface *>(&pass);
  return promising ? promising->getPromise() : Promise();
}

// The base classes of TenonPass. `perMille` is the tolerance in thousandths of the largest value.
template <typename OpT, Promise::Kind kind, int perMille = 0>
class PromisingPass : public mlir::OperationPass<OpT>, public PromiseInterface {
public:
  using mlir::OperationPass<OpT>::OperationPass;

  Promise getPromise() const override { return {kind, perMille ? perMille / 1000.0 : sameNumbers}; }
};

} // namespace tenon

#endif // TENON_PASSES_PROMISE_H
