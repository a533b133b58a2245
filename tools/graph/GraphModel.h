// What a picture of a phase or a diff of two shows: operations as nodes, activations as edges, cut
// into units along the residual stream.
//
//   the function, or sched.program                            units
//
//      embedding ─┬─ norm ─ q,k,v ─ attention ─ o ─┐          0: embedding
//          └──────┴───────────────────────────────add         1: [norm q k v attention o] add
//                                  ┌─ norm ─ mlp ─┤           2: [norm mlp] add
//                                  └─────────────add          ...
//
// A unit is a node of the stream and the block of nodes beside it. The stream holds the nodes that
// every path of activations from the first to the last node goes through, so it is found without
// looking at names: a skip connection takes what it skips out of the stream.
#ifndef TENON_TOOLS_GRAPH_GRAPHMODEL_H
#define TENON_TOOLS_GRAPH_GRAPHMODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace tenon::graph {

// What an operation is about; decides its colour.
enum class Family { embedding, norm, linear, rope, attention, cache, elementwise, view, other };
llvm::StringRef getName(Family family);
// By the mnemonic, so that an operation of a plugin has one too.
Family getFamily(llvm::StringRef mnemonic);

// A weight as an operation reads it.
struct WeightUse {
  std::vector<std::string> tensors; // of the checkpoint
  std::string recipe;               // what happens to them while compiling: "concat, pack"
  std::string type;                 // "960×576 q4_1, x16k4"
  int64_t bytes = 0;
};

struct ResultInfo {
  std::string type;     // "T×576", "KV cache"
  int64_t rowBytes = 0; // bytes of one row; 0 when it is not rows
};

using Attributes = std::vector<std::pair<std::string, std::string>>;

// An operation by itself: a node, or a line of a fused one.
struct OpInfo {
  std::string mnemonic; // "llm.rms_norm"
  std::string label;    // "rms_norm", "silu", "norm_qkv"
  std::string detail;   // the few numbers worth seeing at once
  Family family = Family::other;
  Attributes attributes; // without `layer`
  std::vector<WeightUse> weights;
  std::vector<ResultInfo> results;
  std::optional<int64_t> layer; // of the cache, if it touches one

  // Equal for operations that do the same on different tensors and cache layers.
  std::string getSignature() const;
};

struct Input {
  int node;   // index into Graph::nodes; -1: comes from outside the graph
  int result; // of that node
  bool isRows;
};

struct Node : OpInfo {
  bool isFused = false;
  std::vector<OpInfo> body; // of a fused node or a stage
  std::vector<Input> inputs;
  std::vector<std::string> outputs; // names under which the function returns its results
  bool afterBarrier = false;

  std::vector<const OpInfo *> getOps() const; // itself, or its body
  int64_t getWeightBytes() const;
  std::string getFullSignature() const; // with that of the body
};

struct Unit {
  std::vector<int> block; // in program order
  int stream;             // the node on the residual stream
};

struct Graph {
  std::string model, function;
  std::vector<Node> nodes; // in program order
  std::vector<Unit> units; // in the order of the stream

  // The unit that holds a node; -1 for a node that several units share.
  std::vector<int> unitOf;
  // Equal for units that do the same, whatever tensors and cache layers they do it on.
  std::string getSignature(int unit) const;
};

// Names of the functions and programs of a module, in order.
std::vector<std::string> getFunctionNames(mlir::ModuleOp module);
// `function` must be one of them.
llvm::Expected<Graph> buildGraph(mlir::ModuleOp module, llvm::StringRef function);

// One text for several that differ in numbers: "layers.0.q", "layers.1.q" become "layers.{0…1}.q".
std::string mergeNames(llvm::ArrayRef<std::string> names);
// The last part of a tensor's name, without ".weight": "q_proj"; several: "q+k+v_proj".
std::string getShortName(llvm::ArrayRef<std::string> tensors);
// 2304 becomes "2.25 KiB".
std::string formatBytes(int64_t bytes);

} // namespace tenon::graph

#endif // TENON_TOOLS_GRAPH_GRAPHMODEL_H
