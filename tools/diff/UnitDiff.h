// What differs between two stretches of a graph, and which stretches belong together.
#ifndef TENON_TOOLS_DIFF_UNITDIFF_H
#define TENON_TOOLS_DIFF_UNITDIFF_H

#include "tools/graph/GraphModel.h"
#include <map>

namespace tenon::diff {

using Nodes = std::vector<const graph::Node *>;

// "llm.linear"; "llm.fused @norm_qkv {rms_norm, linear}".
std::string getKind(const graph::Node &node);

// One line for each thing that differs, "- 3 × llm.linear", "+ llm.fused @norm_qkv {...}" or
// "~ llm.rope: heads 9 → 3"; the order of operations does not count.
std::vector<std::string> compareNodes(const Nodes &before, const Nodes &after);

// The nodes of a unit; -1: those that units share.
Nodes getNodes(const graph::Graph &graph, int unit);

// Pairs of units; -1: has no counterpart. Both are in order, and units that have most operations in
// common, fused or not, come together.
std::vector<std::pair<int, int>> alignUnits(const graph::Graph &before, const graph::Graph &after);

} // namespace tenon::diff

#endif // TENON_TOOLS_DIFF_UNITDIFF_H
