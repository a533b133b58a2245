// Finding the residual stream, and what repeats along it.
#ifndef TENON_TOOLS_GRAPH_UNITS_H
#define TENON_TOOLS_GRAPH_UNITS_H

#include "tools/graph/GraphModel.h"

namespace tenon::graph {

// Fills `units` and `unitOf` of a graph that has nodes.
void cutIntoUnits(Graph &graph);

// A run of equal stretches: `count` times items [first, first + length). A stretch that repeats
// nothing has count 1; what repeats within one is in `inner`.
struct Stretch {
  int first, length, count;
  std::vector<Stretch> inner; // empty: the items themselves
};

// Folds a sequence, the longest repetition first: a b a b c gives 2 × (a b), c.
std::vector<Stretch> fold(llvm::ArrayRef<std::string> items);

} // namespace tenon::graph

#endif // TENON_TOOLS_GRAPH_UNITS_H
