// What a step costs on paper: arithmetic and bytes of each kind of operation, fused or not, for a
// number of tokens. Nothing here depends on a backend.
//
// With T rows (tokens, or rows to be scored after llm.gather_rows), P pairs of a query and a key it
// may see, and C cached positions:
//
//   operation                  FLOPs                              bytes read (and appended)
//   linear [N, K]              2 T N K, and T N with a bias       the weight as stored
//   embedding [V, C]           0                                  T rows of the table
//   rms_norm, any other norm   4 a element: square, sum,          the weight
//                              scale, weight
//   rope                       3 a rotated element                -
//   rope_angles                2 a element: product, sine         the frequencies
//   attention, H heads of D    P H (4 D + 4): q k, p v; scale,    keys and values of C positions,
//                              subtract, exp, sum                 if they are cached
//   kv_append                  0                                  T keys and values
//   kv_read                    0                                  keys and values of C positions
//   activation                 1 relu, 4 silu, 5 quick_gelu,      -
//                              5 gelu, 9 gelu_tanh a element
//   add, mul                   1 a element                        -
//   slice, gather_rows,        0                                  -
//   repeat_kv
//   anything else              2 T for each element of its        its weights
//                              matrices, 1 a element of its
//                              result without any
//
// exp, erf, tanh and sine count as one. Activations are not counted as bytes: they stay in caches.
#ifndef TENON_CODEGEN_COST_H
#define TENON_CODEGEN_COST_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>
#include <vector>

namespace tenon {

// One step of one sequence.
struct Workload {
  int64_t tokens;  // that come in
  int64_t scored;  // rows whose logits are wanted
  int64_t pairs;   // of a query and a key it may see
  int64_t context; // positions in the cache after the step

  // A prompt into an empty cache; the last row is scored.
  static Workload prefill(int64_t tokens) { return {tokens, 1, tokens * (tokens + 1) / 2, tokens}; }
  // One token that sees `context` positions, its own among them.
  static Workload decode(int64_t context) { return {1, 1, context, context}; }
};

struct Cost {
  int64_t operations = 0, weightBytes = 0, cacheBytes = 0, flops = 0;
  Cost &operator+=(const Cost &other);
};

// In the order of first appearance, by mnemonic: "linear".
using CostTable = std::vector<std::pair<std::string, Cost>>;

// Of @prefill, @decode or any other function of the llm dialect.
CostTable estimateCost(mlir::func::FuncOp function, const Workload &workload);
Cost getTotal(const CostTable &table);

// A kernel's body for one row, one (query, key) pair and one cached position: what a step costs is
// a sum of these.
struct KernelCost {
  int64_t weightBytes, contextBytes, rowFlops, pairFlops;
};
KernelCost getKernelCost(mlir::Region &body);

// Bytes of the cache that each position of a sequence takes, in all layers.
int64_t getCacheBytesPerToken(mlir::func::FuncOp function);

} // namespace tenon

#endif // TENON_CODEGEN_COST_H
