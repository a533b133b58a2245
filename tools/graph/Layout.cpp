// See Layout.h. Ranks are longest paths, order and positions within a rank follow the mean of the
// neighbours (Sugiyama, Tagawa, Toda 1981).
#include "tools/graph/Layout.h"
#include "tools/graph/Units.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <numeric>

using namespace llvm;

namespace tenon::graph {

std::vector<double> separate(ArrayRef<double> wanted, ArrayRef<double> gaps) {
  // With the gaps taken out this is isotonic regression: pool neighbours that are out of order.
  struct Pool {
    double sum;
    int count;
    double mean() const { return sum / count; }
  };
  std::vector<double> offsets{0};
  for (double gap : gaps)
    offsets.push_back(offsets.back() + gap);
  std::vector<Pool> pools;
  for (size_t i = 0; i < wanted.size(); ++i) {
    pools.push_back({wanted[i] - offsets[i], 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().count += last.count;
    }
  }
  std::vector<double> result;
  for (const Pool &pool : pools)
    for (int i = 0; i < pool.count; ++i)
      result.push_back(pool.mean() + offsets[result.size()]);
  return result;
}

namespace {

constexpr double columnGap = 28, rankGap = 44, entryY = 14, entryGap = 24, exitGap = 26,
                 exitPitch = 14, streamGap = 22, below = 26, corridor = 12;

// A place in a rank: a node of the block, or a line on its way through.
struct Slot {
  int place; // in the block; -1: a line
  double width;
  double x = 0;                       // of its middle
  std::vector<int> above, underneath; // slots of the ranks before and after
};

// A line through slots, one a rank. `source` and `target` are places in the block, or -1 for the
// stream.
struct Route {
  int source, result, target;
  bool isCache;
  int firstRank; // of slots.front()
  std::vector<int> slots;
};

class UnitLayout {
public:
  // `units` are all those that this one stands for.
  UnitLayout(const Graph &graph, ArrayRef<int> units)
      : graph(graph), units(units), unit(graph.units[units.front()]) {
    for (size_t place = 0; place < unit.block.size(); ++place)
      blockContents.push_back(makeContent(graph, units, place));
    block = unit.block;
    // Nodes that all units share stand beside the first.
    if (units.front() == 0)
      for (size_t node = 0; node < graph.nodes.size(); ++node)
        if (graph.unitOf[node] < 0) {
          block.push_back(node);
          blockContents.push_back(makeSharedContent(graph, node));
        }
    streamContent = makeContent(graph, units, -1);
    rankNodes();
    makeSlots();
    orderSlots();
    placeSlots();
  }

  double getStreamWidth() const { return streamContent.width; }
  // From the left edge of its first column to the right edge of its last.
  double getBlockWidth() const { return right - left; }

  // The block's middle comes to `middle`.
  Item place(double streamX, double middle) {
    shift = middle - (left + right) / 2;
    this->streamX = streamX;
    placeRanks();
    placeStream();
    for (const Route &route : routes)
      drawRoute(route);
    drawStream();
    labelResults();
    return std::move(item);
  }

private:
  static constexpr int stream = -1;

  int findPlace(int node) const {
    auto it = llvm::find(block, node);
    return it == block.end() ? -2 : it - block.begin();
  }

  int getPreviousStream() const {
    return units.front() ? graph.units[units.front() - 1].stream : -1;
  }

  //===--------------------------------------------------------------------===//
  // Ranks and slots
  //===--------------------------------------------------------------------===//

  void rankNodes() {
    ranks.assign(block.size(), 0);
    auto addRoutes = [&](int target, const Node &node) {
      for (const Input &input : node.inputs) {
        int source = input.node < 0                      ? -2
                     : input.node == getPreviousStream() ? stream
                                                         : findPlace(input.node);
        if (source == -2)
          continue;
        if (source == stream && target == stream) {
          isResidual = true;
          continue;
        }
        routes.push_back({source, input.result, target, !input.isRows, 0, {}});
        if (source >= 0 && target >= 0)
          ranks[target] = std::max(ranks[target], ranks[source] + 1);
      }
    };
    // In program order, so sources come first.
    std::vector<int> order(block.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](int a, int b) { return block[a] < block[b]; });
    for (int place : order)
      addRoutes(place, graph.nodes[block[place]]);
    addRoutes(stream, graph.nodes[unit.stream]);
    rankCount = ranks.empty() ? 0 : *llvm::max_element(ranks) + 1;
  }

  void makeSlots() {
    slots.resize(rankCount);
    slotOf.resize(block.size());
    for (size_t place = 0; place < block.size(); ++place) {
      slotOf[place] = slots[ranks[place]].size();
      slots[ranks[place]].push_back({int(place), blockContents[place].width, 0, {}, {}});
    }
    for (Route &route : routes) {
      int first = route.source == stream ? 0 : ranks[route.source];
      int last = route.target == stream ? rankCount - 1 : ranks[route.target];
      route.firstRank = first;
      for (int rank = first; rank <= last; ++rank) {
        if (rank == first && route.source != stream)
          route.slots.push_back(slotOf[route.source]);
        else if (rank == last && route.target != stream)
          route.slots.push_back(slotOf[route.target]);
        else {
          route.slots.push_back(slots[rank].size());
          slots[rank].push_back({-1, corridor, 0, {}, {}});
        }
        if (rank > first) {
          int before = route.slots[rank - first - 1], here = route.slots[rank - first];
          slots[rank][here].above.push_back(before);
          slots[rank - 1][before].underneath.push_back(here);
        }
      }
    }
    order.resize(rankCount);
    for (int rank = 0; rank < rankCount; ++rank) {
      order[rank].resize(slots[rank].size());
      std::iota(order[rank].begin(), order[rank].end(), 0);
    }
  }

  // Positions in the order count as x until the real ones are known.
  void orderSlots() {
    for (auto &rank : slots)
      for (auto [index, slot] : llvm::enumerate(rank))
        slot.x = index;
    for (int sweep = 0; sweep < 6; ++sweep)
      for (int step = 0; step < rankCount; ++step) {
        int rank = sweep % 2 ? rankCount - 1 - step : step;
        std::vector<double> wanted = getWanted(rank, sweep % 2);
        llvm::sort(order[rank], [&](int a, int b) {
          return std::pair(wanted[a], slots[rank][a].x) < std::pair(wanted[b], slots[rank][b].x);
        });
        for (auto [index, slot] : llvm::enumerate(order[rank]))
          slots[rank][slot].x = index;
      }
  }

  // The mean of a slot's neighbours, or where it is if it has none.
  std::vector<double> getWanted(int rank, bool fromUnderneath) {
    std::vector<double> wanted;
    for (const Slot &slot : slots[rank]) {
      const std::vector<int> &neighbours = fromUnderneath ? slot.underneath : slot.above;
      double sum = 0;
      for (int neighbour : neighbours)
        sum += slots[rank + (fromUnderneath ? 1 : -1)][neighbour].x;
      wanted.push_back(neighbours.empty() ? slot.x : sum / neighbours.size());
    }
    return wanted;
  }

  void placeSlots() {
    for (int rank = 0; rank < rankCount; ++rank) {
      double x = 0;
      for (int slot : order[rank]) {
        slots[rank][slot].x = x + slots[rank][slot].width / 2;
        x += slots[rank][slot].width + columnGap;
      }
      for (Slot &slot : slots[rank])
        slot.x -= (x - columnGap) / 2;
    }
    for (int sweep = 0; sweep < 10; ++sweep)
      for (int step = 0; step < rankCount; ++step) {
        int rank = sweep % 2 ? step : rankCount - 1 - step;
        std::vector<double> wanted = getWanted(rank, sweep % 2 == 0), ordered, gaps;
        for (auto [index, slot] : llvm::enumerate(order[rank])) {
          ordered.push_back(wanted[slot]);
          if (index)
            gaps.push_back((slots[rank][slot].width + slots[rank][order[rank][index - 1]].width) /
                               2 +
                           columnGap);
        }
        std::vector<double> placed = separate(ordered, gaps);
        for (auto [index, slot] : llvm::enumerate(order[rank]))
          slots[rank][slot].x = placed[index];
      }
    if (rankCount) {
      left = 1e9, right = -1e9;
      for (const auto &rank : slots)
        for (const Slot &slot : rank) {
          left = std::min(left, slot.x - slot.width / 2);
          right = std::max(right, slot.x + slot.width / 2);
        }
    }
  }

  //===--------------------------------------------------------------------===//
  // Places
  //===--------------------------------------------------------------------===//

  double getX(int rank, int slot) const { return slots[rank][slot].x + shift; }

  bool hasExit() const {
    return llvm::any_of(routes, [](const Route &route) { return route.target == stream; });
  }

  void placeRanks() {
    double y = hasExit() ? entryY + entryGap : streamGap;
    for (int rank = 0; rank < rankCount; ++rank) {
      double height = 0;
      for (const Slot &slot : slots[rank])
        if (slot.place >= 0)
          height = std::max(height, blockContents[slot.place].height);
      tops.push_back(y);
      bottoms.push_back(y + height);
      for (const Slot &slot : slots[rank])
        if (slot.place >= 0) {
          const Content &content = blockContents[slot.place];
          const Node &node = graph.nodes[block[slot.place]];
          item.nodes.push_back({content, slot.x + shift - content.width / 2,
                                y + (height - content.height) / 2, node.afterBarrier});
          nodeOf.resize(std::max(nodeOf.size(), size_t(slot.place) + 1));
          nodeOf[slot.place] = item.nodes.size() - 1;
        }
      y += height + rankGap;
    }
  }

  double getBlockBottom() const { return bottoms.empty() ? 0 : bottoms.back(); }

  void placeStream() {
    double exits = getBlockBottom() + exitGap; // y of the first
    double y = streamGap;
    if (hasExit())
      y = exits - (streamContent.shape == Shape::circle ? streamContent.height / 2 : 20);
    item.nodes.push_back({streamContent, streamX - streamContent.width / 2, y,
                          graph.nodes[unit.stream].afterBarrier});
    streamNode = item.nodes.size() - 1;
    item.height = std::max(y + streamContent.height, getBlockBottom()) + below;
  }

  // Lines enter a node side by side, in the order of where they come from.
  Point getEntry(const Route &route) const {
    const PlacedNode &node = item.nodes[nodeOf[route.target]];
    std::vector<std::pair<double, const Route *>> entries;
    for (const Route &other : routes)
      if (other.target == route.target) {
        bool hasSlot = other.slots.size() > 1;
        int rank = ranks[route.target] - 1;
        double x = hasSlot ? getX(rank, other.slots[other.slots.size() - 2]) : streamX;
        entries.push_back({x, &other});
      }
    llvm::sort(entries); // of equals the earlier route first
    int index = llvm::find_if(entries, [&](auto &entry) { return entry.second == &route; }) -
                entries.begin();
    double pitch = std::min(40.0, node.content.width / (entries.size() + 1));
    return {node.x + node.content.width / 2 + (index - (entries.size() - 1) / 2.0) * pitch,
            node.y + getInset(node, index - (entries.size() - 1) / 2.0, pitch)};
  }

  // A circle's edge is lower beside its top.
  static double getInset(const PlacedNode &node, double offset, double pitch) {
    if (node.content.shape != Shape::circle)
      return 0;
    double r = node.content.width / 2, d = offset * pitch;
    return r - std::sqrt(std::max(0.0, r * r - d * d));
  }

  // Results that someone uses leave side by side.
  std::vector<int> getUsedResults(int place) const {
    std::vector<int> results;
    for (const Route &route : routes)
      if (route.source == place && !llvm::is_contained(results, route.result))
        results.push_back(route.result);
    llvm::sort(results);
    return results;
  }

  Point getDeparture(int place, int result) const {
    const PlacedNode &node = item.nodes[nodeOf[place]];
    std::vector<int> results = getUsedResults(place);
    int index = llvm::find(results, result) - results.begin();
    double pitch = node.content.width / (results.size() + 1);
    return {node.x + node.content.width / 2 + (index - (results.size() - 1) / 2.0) * pitch,
            node.y + node.content.height};
  }

  //===--------------------------------------------------------------------===//
  // Lines
  //===--------------------------------------------------------------------===//

  void drawRoute(const Route &route) {
    PlacedEdge edge{EdgeKind::flow, {}, route.isCache};
    size_t begin = 0, end = route.slots.size();
    int rank = route.firstRank;
    Point last{0, 0};
    if (route.target >= 0) {
      last = getEntry(route);
      --end;
    }
    if (route.source >= 0) {
      edge.points.push_back(getDeparture(route.source, route.result));
      ++begin;
    } else {
      bool isDirect = begin == end;
      Point to = isDirect ? last : Point{getX(0, route.slots[0]), tops[0]};
      item.edges.push_back({EdgeKind::entry, {{streamX, entryY}, to}, false, isDirect});
      hasEntry = true;
      if (isDirect)
        return;
    }
    for (size_t i = begin; i < end; ++i) {
      double x = getX(rank + i, route.slots[i]);
      edge.points.push_back({x, tops[rank + i]});
      edge.points.push_back({x, bottoms[rank + i]});
    }
    if (route.target >= 0)
      edge.points.push_back(last);
    edge.endsAtNode = route.target >= 0;
    if (route.target == stream)
      exits.push_back({edge.points.back(), route.isCache});
    if (edge.points.size() > 1)
      item.edges.push_back(std::move(edge));
  }

  void drawStream() {
    const PlacedNode &node = item.nodes[streamNode];
    llvm::sort(exits, [](auto &a, auto &b) { return a.first.x < b.first.x; });
    bool isCircle = node.content.shape == Shape::circle;
    double pitch = isCircle ? 9 : exitPitch, half = node.content.width / 2;
    for (size_t i = 0; i < exits.size(); ++i) {
      // Into a circle around its middle, into a box from its heading on.
      double offset = (i - (isCircle ? (exits.size() - 1) / 2.0 : 0)) * pitch;
      double inset = isCircle ? half - std::sqrt(std::max(0.0, half * half - offset * offset)) : 0;
      Point to{streamX + half - inset, getBlockBottom() + exitGap + offset};
      item.edges.push_back({EdgeKind::exit, {exits[i].first, to}, exits[i].second});
    }
    if (isResidual)
      item.edges.push_back({EdgeKind::stream, {{streamX, 0}, {streamX, node.y}}, false});
    else if (hasEntry)
      item.edges.push_back({EdgeKind::stream, {{streamX, 0}, {streamX, entryY}}, false});
    if (units.back() + 1 < int(graph.units.size()))
      item.edges.push_back({EdgeKind::stream,
                            {{streamX, node.y + node.content.height}, {streamX, item.height}},
                            false});
  }

  void addLabel(Point at, bool endsThere, const Node &node, int result) {
    const ResultInfo &info = node.results[result];
    std::string text = info.type;
    if (info.rowBytes)
      text += " · " + formatBytes(info.rowBytes);
    item.labels.push_back({at, endsThere, text});
  }

  void labelResults() {
    // Beside the line; of two lines the first has it at its left.
    for (size_t place = 0; place < block.size(); ++place) {
      std::vector<int> results = getUsedResults(place);
      for (int result : results) {
        Point at = getDeparture(place, result);
        bool isLeft = results.size() > 1 && result == results.front();
        addLabel({at.x + (isLeft ? -7 : 7), at.y + 14}, isLeft, graph.nodes[block[place]], result);
      }
    }
    const PlacedNode &node = item.nodes[streamNode];
    if (!graph.nodes[unit.stream].results.empty())
      addLabel({streamX - 8, node.y + node.content.height + 15}, true, graph.nodes[unit.stream], 0);
  }

  const Graph &graph;
  ArrayRef<int> units;
  const Unit &unit;
  std::vector<int> block; // nodes
  std::vector<Content> blockContents;
  Content streamContent;

  std::vector<int> ranks, slotOf; // of each place
  std::vector<Route> routes;
  int rankCount = 0;
  std::vector<std::vector<Slot>> slots; // by rank
  std::vector<std::vector<int>> order;  // of the slots of each rank
  double left = 0, right = 0;

  double shift = 0, streamX = 0;
  std::vector<double> tops, bottoms; // of each rank
  std::vector<size_t> nodeOf;        // of each place, in item.nodes
  size_t streamNode = 0;
  bool isResidual = false, hasEntry = false;
  std::vector<std::pair<Point, bool>> exits;
  Item item;
};

// Units are laid out as a tree: a group holds those of its first round.
struct Tree {
  std::vector<int> units; // that a leaf stands for
  int count = 0;
  std::vector<Tree> children;
};

std::vector<Tree> makeTrees(ArrayRef<Stretch> stretches, ArrayRef<int> offsets);

std::vector<Tree> makeLeaves(int first, int length, ArrayRef<int> offsets) {
  std::vector<Tree> leaves;
  for (int unit = first; unit < first + length; ++unit) {
    Tree leaf;
    for (int offset : offsets)
      leaf.units.push_back(unit + offset);
    leaves.push_back(std::move(leaf));
  }
  return leaves;
}

std::vector<Tree> makeTrees(ArrayRef<Stretch> stretches, ArrayRef<int> offsets) {
  std::vector<Tree> trees;
  for (const Stretch &stretch : stretches) {
    if (stretch.count == 1) {
      llvm::append_range(trees, makeLeaves(stretch.first, stretch.length, offsets));
      continue;
    }
    std::vector<int> all;
    for (int offset : offsets)
      for (int round = 0; round < stretch.count; ++round)
        all.push_back(offset + round * stretch.length);
    Tree group;
    group.count = stretch.count;
    group.children = stretch.inner.empty() ? makeLeaves(stretch.first, stretch.length, all)
                                           : makeTrees(stretch.inner, all);
    trees.push_back(std::move(group));
  }
  return trees;
}

class GraphLayout {
public:
  explicit GraphLayout(const Graph &graph) : graph(graph) {}

  Layout run() {
    std::vector<std::string> signatures;
    for (size_t unit = 0; unit < graph.units.size(); ++unit)
      signatures.push_back(graph.getSignature(unit));
    std::vector<Tree> trees = makeTrees(fold(signatures), {0});
    double streamWidth = 2 * 122, blockWidth = 0; // at least room for a label at its left
    for (const Tree &tree : trees)
      measure(tree, 1, streamWidth, blockWidth);
    layout.streamX = margin + depth * groupInset + streamWidth / 2;
    double blockLeft = layout.streamX + streamWidth / 2 + (blockWidth ? 36 : 0);
    middle = blockLeft + blockWidth / 2;
    layout.width = blockLeft + blockWidth + depth * groupInset + 40 + margin;
    layout.items = place(trees, layout.height);
    return std::move(layout);
  }

private:
  void measure(const Tree &tree, int level, double &streamWidth, double &blockWidth) {
    for (const Tree &child : tree.children)
      measure(child, level + 1, streamWidth, blockWidth);
    if (!tree.children.empty())
      return;
    depth = std::max(depth, level);
    UnitLayout unit(graph, tree.units);
    streamWidth = std::max(streamWidth, unit.getStreamWidth());
    blockWidth = std::max(blockWidth, unit.getBlockWidth());
  }

  std::vector<Item> place(ArrayRef<Tree> trees, double &height) {
    std::vector<Item> items;
    for (const Tree &tree : trees) {
      Item item;
      if (tree.children.empty()) {
        item = UnitLayout(graph, tree.units).place(layout.streamX, middle);
      } else {
        item.count = tree.count;
        item.items = place(tree.children, item.height);
        item.height += groupTop + groupBottom;
      }
      height += item.height;
      items.push_back(std::move(item));
    }
    return items;
  }

  const Graph &graph;
  Layout layout;
  double middle = 0;
  int depth = 0;
};

} // namespace

Layout layOut(const Graph &graph) { return GraphLayout(graph).run(); }

} // namespace tenon::graph
