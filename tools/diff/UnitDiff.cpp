// See UnitDiff.h.
#include "tools/diff/UnitDiff.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tenon::graph;

namespace tenon::diff {

static std::string count(int number, StringRef what) {
  return (number > 1 ? std::to_string(number) + " × " : "") + what.str();
}

std::string getKind(const Node &node) {
  std::string text = node.mnemonic;
  if (node.mnemonic == "llm.fused")
    text += " @" + node.label;
  else if (!StringRef(text).contains("." + node.label) && !StringRef(text).contains("@"))
    text += " " + node.label;
  if (node.body.empty())
    return text;
  MapVector<StringRef, int> labels;
  for (const OpInfo &op : node.body)
    ++labels[op.label];
  text += " {";
  for (const auto &[label, number] : labels)
    text += (StringRef(text).ends_with("{") ? "" : ", ") + count(number, label);
  return text + "}";
}

//===----------------------------------------------------------------------===//
// Operations of one kind that differ
//===----------------------------------------------------------------------===//

static std::string getText(const WeightUse &weight) {
  return weight.type + (weight.recipe.empty() ? "" : " (" + weight.recipe + ")");
}

// How many rows there are depends on the function.
static StringRef getColumns(const ResultInfo &result) {
  auto [rows, columns] = StringRef(result.type).split("×");
  return columns.empty() ? rows : columns;
}

static void compareOps(const OpInfo &before, const OpInfo &after, StringRef name,
                       std::vector<std::string> &lines) {
  auto report = [&](const Twine &what, StringRef from, StringRef to) {
    if (from == to)
      return;
    std::string line = ("~ " + name + ": " + what + " " + (from.empty() ? "(none)" : from) + " → " +
                        (to.empty() ? "(none)" : to))
                           .str();
    if (!is_contained(lines, line))
      lines.push_back(line);
  };
  std::map<std::string, std::pair<std::string, std::string>> attributes;
  for (const auto &[key, value] : before.attributes)
    attributes[key].first = value;
  for (const auto &[key, value] : after.attributes)
    attributes[key].second = value;
  for (const auto &[key, values] : attributes)
    report(key, values.first, values.second);
  size_t weights = std::max(before.weights.size(), after.weights.size());
  for (size_t i = 0; i < weights; ++i) {
    const WeightUse *from = i < before.weights.size() ? &before.weights[i] : nullptr;
    const WeightUse *to = i < after.weights.size() ? &after.weights[i] : nullptr;
    std::string tensor = getShortName((to ? to : from)->tensors);
    report("weight" + Twine(tensor.empty() ? "" : " ") + tensor, from ? getText(*from) : "",
           to ? getText(*to) : "");
  }
  for (size_t i = 0; i < std::min(before.results.size(), after.results.size()); ++i)
    report("result", getColumns(before.results[i]), getColumns(after.results[i]));
}

static void compareKind(const Node &before, const Node &after, std::vector<std::string> &lines) {
  std::string kind = getKind(before);
  std::string name = StringRef(kind).split(" {").first.str();
  compareOps(before, after, name, lines);
  for (size_t i = 0; i < before.body.size(); ++i)
    compareOps(before.body[i], after.body[i], name + " / " + before.body[i].label, lines);
}

// The tensors of a node by their short names, which layers share.
static std::string getTensors(const Node &node) {
  std::string text;
  for (const OpInfo *op : node.getOps())
    for (const WeightUse &weight : op->weights)
      text += getShortName(weight.tensors) + " ";
  return text;
}

// Takes out what is the same node, changed: it reads the same tensors; or, when as many are left on
// both sides, is at the same place.
static std::vector<std::pair<const Node *, const Node *>> takePairs(Nodes &from, Nodes &to) {
  std::vector<std::pair<const Node *, const Node *>> pairs;
  Nodes left;
  for (const Node *node : from) {
    auto same =
        find_if(to, [&](const Node *other) { return getTensors(*other) == getTensors(*node); });
    if (same == to.end()) {
      left.push_back(node);
      continue;
    }
    pairs.push_back({node, *same});
    to.erase(same);
  }
  from = std::move(left);
  if (from.size() == to.size()) {
    for (auto [node, other] : zip(from, to))
      pairs.push_back({node, other});
    from.clear();
    to.clear();
  }
  return pairs;
}

std::vector<std::string> compareNodes(const Nodes &before, const Nodes &after) {
  // What is on one side only, by kind, in the order of appearance.
  std::vector<std::pair<std::string, std::pair<Nodes, Nodes>>> kinds;
  auto find = [&](const Node *node) -> std::pair<Nodes, Nodes> & {
    std::string kind = getKind(*node);
    for (auto &[known, nodes] : kinds)
      if (known == kind)
        return nodes;
    return kinds.emplace_back(kind, std::pair<Nodes, Nodes>()).second;
  };
  std::map<std::string, int> surplus;
  for (const Node *node : after)
    ++surplus[node->getFullSignature()];
  for (const Node *node : before)
    if (--surplus[node->getFullSignature()] < 0)
      find(node).first.push_back(node);
  surplus.clear();
  for (const Node *node : before)
    ++surplus[node->getFullSignature()];
  for (const Node *node : after)
    if (--surplus[node->getFullSignature()] < 0)
      find(node).second.push_back(node);

  std::vector<std::string> removed, added;
  std::vector<std::string> changed;
  for (auto &[kind, nodes] : kinds) {
    auto &[from, to] = nodes;
    for (const auto &[before, after] : takePairs(from, to))
      compareKind(*before, *after, changed);
    if (!from.empty())
      removed.push_back("- " + count(from.size(), kind));
    if (!to.empty())
      added.push_back("+ " + count(to.size(), kind));
  }
  std::vector<std::string> lines = std::move(removed);
  append_range(lines, added);
  append_range(lines, changed);
  return lines;
}

//===----------------------------------------------------------------------===//
// Which units belong together
//===----------------------------------------------------------------------===//

Nodes getNodes(const Graph &graph, int unit) {
  Nodes nodes;
  for (size_t node = 0; node < graph.nodes.size(); ++node)
    if (graph.unitOf[node] == unit)
      nodes.push_back(&graph.nodes[node]);
  return nodes;
}

// A fusion has the operations that it swallowed; views come and go.
static std::vector<std::string> getLabels(const Graph &graph, int unit) {
  std::vector<std::string> labels;
  for (const Node *node : getNodes(graph, unit))
    for (const OpInfo *op : node->getOps())
      if (op->family != Family::view)
        labels.push_back(op->label);
  llvm::sort(labels);
  return labels;
}

// From 0, nothing in common, to 1.
static double compareLabels(ArrayRef<std::string> a, ArrayRef<std::string> b) {
  std::vector<std::string> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  return a.size() + b.size() ? 2.0 * common.size() / (a.size() + b.size()) : 1;
}

std::vector<std::pair<int, int>> alignUnits(const Graph &before, const Graph &after) {
  int rows = before.units.size(), columns = after.units.size();
  std::vector<std::vector<std::string>> from, to;
  for (int unit = 0; unit < rows; ++unit)
    from.push_back(getLabels(before, unit));
  for (int unit = 0; unit < columns; ++unit)
    to.push_back(getLabels(after, unit));

  // best[i][j]: the most that units from i and j on can have in common.
  std::vector<std::vector<double>> best(rows + 1, std::vector<double>(columns + 1));
  auto match = [&](int i, int j) {
    double common = compareLabels(from[i], to[j]);
    return common > 0.2 ? common + best[i + 1][j + 1] : -1;
  };
  for (int i = rows - 1; i >= 0; --i)
    for (int j = columns - 1; j >= 0; --j)
      best[i][j] = std::max({match(i, j), best[i + 1][j], best[i][j + 1]});
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0, j = 0; i < rows || j < columns;) {
    if (i < rows && j < columns && best[i][j] == match(i, j))
      pairs.push_back({i++, j++});
    else if (j == columns || (i < rows && best[i][j] == best[i + 1][j]))
      pairs.push_back({i++, -1});
    else
      pairs.push_back({-1, j++});
  }
  return pairs;
}

} // namespace tenon::diff
