// The values of a textbook graph in the order of their computation, and what makes them visible.
#ifndef TENON_TOOLS_COMPARE_POINTS_H
#define TENON_TOOLS_COMPARE_POINTS_H

#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace tenon::compare {

struct Point {
  std::string operation; // "llm.linear"
  std::string weight;    // "model.layers.3.self_attn.q_proj": the module that computes just this
  std::string place;     // "models/architectures/llama.yaml:45:21", where the graph says so
  std::string mark;      // "hidden.3", "logits"; empty: the architecture does not mark it
  std::string side;      // of a model with an encoder: "enc_" or "dec_"

  // "llm.linear model.layers.3.self_attn.q_proj (models/architectures/llama.yaml:45:21)"
  std::string describe() const;
};

// Of the rows of @encoder, where there is one, and of @main; point i stays the i-th value when
// results are added.
std::vector<Point> listPoints(mlir::ModuleOp textbook);

// Points [first, last) become results of their functions, point i as "op<i>", unless they are
// results.
void reveal(mlir::ModuleOp textbook, size_t first, size_t last);

} // namespace tenon::compare

#endif // TENON_TOOLS_COMPARE_POINTS_H
