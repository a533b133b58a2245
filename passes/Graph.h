// Questions that several passes ask about a graph.
#ifndef TENON_PASSES_GRAPH_H
#define TENON_PASSES_GRAPH_H

#include "ir/LLM.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace tenon {

// Whether each sequence brings exactly one token to this function, whose row is scored.
inline bool isDecode(mlir::func::FuncOp function) {
  auto phase = function->getAttrOfType<mlir::StringAttr>("llm.phase");
  return phase && phase.getValue() == "decode";
}

// The copies that attention reads its keys and values from, if both are copied alike; else nulls.
struct RepeatedHeads {
  llm::RepeatKVOp keys, values;
};
RepeatedHeads getRepeatedHeads(llm::AttentionOp attention);
// Erases those that nothing reads any more; one operation may be both.
void eraseUnused(RepeatedHeads repeated);

// The result that the frontend named: "logits", "hidden.0".
std::optional<unsigned> getNamedResult(mlir::func::FuncOp function, llvm::StringRef name);

// Who reads a projection, and what for: follows it through operations on its rows, such as norm,
// rotation and copying, to its only reader. A plugin's operations are as good.
enum class Role { query, key, value, none };
struct Reader {
  mlir::Operation *op = nullptr; // an attention, or the cache that keys and values are appended to
  Role role = Role::none;
};
Reader getReader(mlir::Value projection);

// One linear for several on the same input, over their stacked weights.
struct StackedLinear {
  mlir::Value weight;
  mlir::Value bias; // null when none has one
};

// Whether linears can become one; if not, `why` says the reason.
bool canStack(llvm::ArrayRef<llm::LinearOp> linears, std::string &why);
// Stacks their weights, and their biases if they have any, at the builder's place.
StackedLinear stack(mlir::OpBuilder &builder, llvm::ArrayRef<llm::LinearOp> linears);
// Puts parts of `stacked` in the place of the linears, of which nothing is left.
void replaceWithSlices(mlir::OpBuilder &builder, llvm::ArrayRef<llm::LinearOp> linears,
                       mlir::Value stacked);

// `activation(gate) * up`, on whichever side of the product the activation stands.
template <typename LinearT> struct GatedProduct {
  llm::MulOp product;
  llm::ActivationOp activation;
  LinearT gate, up;

  explicit GatedProduct(llm::MulOp product) : product(product) {
    mlir::Value other = product.getRhs();
    activation = product.getLhs().getDefiningOp<llm::ActivationOp>();
    if (!activation) {
      activation = product.getRhs().getDefiningOp<llm::ActivationOp>();
      other = product.getLhs();
    }
    if (activation)
      gate = activation.getInput().getDefiningOp<LinearT>();
    up = other.getDefiningOp<LinearT>();
  }

  // Whether the product is one.
  explicit operator bool() { return gate && up; }

  bool hasOtherUsers() {
    return !activation->hasOneUse() || !gate->hasOneUse() || !up->hasOneUse();
  }

  // Puts `result` in the place of the product, of which nothing is left.
  void replaceWith(mlir::Value result) {
    product.replaceAllUsesWith(result);
    product.erase();
    activation.erase();
    gate.erase();
    up.erase();
  }
};

// Makes `llm.fused @kind` before `anchor`, whose body `build` fills, returning what it yields.
llm::FusedOp
createFused(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef kind,
            llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &)> build);

// Moves weight operations, which run while compiling, before `anchor`, so that what is built there
// may use them.
void hoistWeight(mlir::Value weight, mlir::Operation *anchor);

} // namespace tenon

#endif // TENON_PASSES_GRAPH_H
