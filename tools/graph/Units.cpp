// See Units.h.
#include "tools/graph/Units.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace tenon::graph {

//===----------------------------------------------------------------------===//
// The residual stream
//===----------------------------------------------------------------------===//

// Nodes are in program order, so every input has a smaller index.
static bool feeds(const Input &input) { return input.isRows && input.node >= 0; }

// The node whose result the caller wants first.
static int findLast(const Graph &graph) {
  for (auto [index, node] : llvm::enumerate(graph.nodes))
    if (llvm::is_contained(node.outputs, "logits"))
      return index;
  for (int index = graph.nodes.size() - 1; index >= 0; --index)
    if (!graph.nodes[index].outputs.empty())
      return index;
  return graph.nodes.size() - 1;
}

// The nodes on every path of activations to the last one from the source that is farthest from it.
static std::vector<int> findStream(const Graph &graph) {
  int last = findLast(graph);
  // How far each node is from the last one; -1: leads elsewhere.
  std::vector<int> distance(graph.nodes.size(), -1);
  distance[last] = 0;
  for (int index = last; index >= 0; --index)
    if (distance[index] >= 0)
      for (const Input &input : graph.nodes[index].inputs)
        if (feeds(input))
          distance[input.node] = std::max(distance[input.node], distance[index] + 1);
  int source = last;
  for (int index = 0; index <= last; ++index)
    if (distance[index] > distance[source] && llvm::none_of(graph.nodes[index].inputs, feeds))
      source = index;

  // Immediate dominators, in program order: where the paths to all inputs meet.
  std::map<int, int> dominator; // of nodes that the source reaches
  dominator[source] = source;
  for (int index = source + 1; index <= last; ++index) {
    int meet = -1;
    for (const Input &input : graph.nodes[index].inputs) {
      if (!feeds(input) || !dominator.count(input.node))
        continue;
      int other = input.node;
      if (meet < 0)
        meet = other;
      while (meet != other)
        (meet > other ? meet : other) = dominator[std::max(meet, other)];
    }
    if (meet >= 0)
      dominator[index] = meet;
  }
  std::vector<int> stream{last};
  while (stream.back() != source)
    stream.push_back(dominator[stream.back()]);
  return {stream.rbegin(), stream.rend()};
}

void cutIntoUnits(Graph &graph) {
  std::vector<int> stream = findStream(graph);
  int count = graph.nodes.size();
  graph.unitOf.assign(count, -1);
  for (auto [index, node] : llvm::enumerate(stream))
    graph.unitOf[node] = index;
  // What the stream reaches lies in the unit after the last part of the stream that it needs.
  for (int index = 0; index < count; ++index) {
    if (graph.unitOf[index] >= 0)
      continue;
    int unit = -1;
    for (const Input &input : graph.nodes[index].inputs)
      if (input.node >= 0 && graph.unitOf[input.node] >= 0) {
        bool isStream = stream[graph.unitOf[input.node]] == input.node;
        unit = std::max(unit, graph.unitOf[input.node] + isStream);
      }
    graph.unitOf[index] = std::min(unit, int(stream.size()) - 1);
  }
  // What it does not reach lies with its users, if they are all in one unit.
  for (int index = count - 1; index >= 0; --index) {
    if (graph.unitOf[index] >= 0)
      continue;
    int unit = -2;
    for (int user = index + 1; user < count; ++user)
      if (llvm::any_of(graph.nodes[user].inputs,
                       [&](const Input &input) { return input.node == index; }))
        unit = unit == -2 || unit == graph.unitOf[user] ? graph.unitOf[user] : -1;
    graph.unitOf[index] = std::max(unit, -1);
  }
  graph.units.clear();
  for (int node : stream)
    graph.units.push_back({{}, node});
  for (int index = 0; index < count; ++index)
    if (int unit = graph.unitOf[index]; unit >= 0 && stream[unit] != index)
      graph.units[unit].block.push_back(index);
}

//===----------------------------------------------------------------------===//
// Folding
//===----------------------------------------------------------------------===//

// The repetition that covers most items of [first, last); of equals the shortest and earliest.
static Stretch findLongest(llvm::ArrayRef<int> items, int first, int last) {
  Stretch best{first, 1, 1, {}};
  for (int period = 1; 2 * period <= last - first; ++period) {
    // Equal items a period apart, in one sweep from the end.
    int run = 0;
    for (int at = last - period - 1; at >= first; --at) {
      run = items[at] == items[at + period] ? run + 1 : 0;
      int count = run / period + 1;
      bool isLonger = count * period > best.count * best.length;
      bool isEarlier = period == best.length && count == best.count && at < best.first;
      if (count > 1 && (isLonger || isEarlier))
        best = {at, period, count, {}};
    }
  }
  return best;
}

static std::vector<Stretch> fold(llvm::ArrayRef<int> items, int first, int last) {
  Stretch best = findLongest(items, first, last);
  if (best.count == 1)
    return first == last ? std::vector<Stretch>{}
                         : std::vector<Stretch>{{first, last - first, 1, {}}};
  std::vector<Stretch> stretches = fold(items, first, best.first);
  best.inner = fold(items, best.first, best.first + best.length);
  if (best.inner.size() == 1 && best.inner[0].count == 1)
    best.inner.clear();
  int end = best.first + best.length * best.count;
  stretches.push_back(std::move(best));
  llvm::append_range(stretches, fold(items, end, last));
  return stretches;
}

std::vector<Stretch> fold(llvm::ArrayRef<std::string> items) {
  llvm::StringMap<int> numbers;
  std::vector<int> numbered;
  for (const std::string &item : items)
    numbered.push_back(numbers.try_emplace(item, numbers.size()).first->second);
  return fold(numbered, 0, numbered.size());
}

} // namespace tenon::graph
