// Where everything is. Units are stacked from top to bottom; in each, the stream is a straight line
// at `streamX` and the block lies beside it, in ranks:
//
//        │ stream
//        ●────╮            entry
//        │ ┌──┴──┐         rank 0
//        │ └──┬──┘
//        │ ┌──┴──┐ ┌─────┐ rank 1
//        │ └──┬──┘ └──┬──┘
//        ⊕────╯───────╯    exits
//        │
#ifndef TENON_TOOLS_GRAPH_LAYOUT_H
#define TENON_TOOLS_GRAPH_LAYOUT_H

#include "tools/graph/Content.h"

namespace tenon::graph {

struct Point {
  double x, y;
};

struct PlacedNode {
  Content content;
  double x, y; // left upper corner
  bool afterBarrier;
};

enum class EdgeKind {
  stream, // straight
  entry,  // from the stream to the right, then down
  flow,   // down, through the points, in curves
  exit,   // down, then to the left into the stream
};

struct PlacedEdge {
  EdgeKind kind;
  std::vector<Point> points;
  bool isCache = false;
  bool endsAtNode = true; // else another edge goes on
};

struct Label {
  Point at;
  bool endsThere; // else it begins there
  std::string text;
};

// What is stacked: a unit, or a group of items that repeats.
struct Item {
  double height = 0;
  // A unit
  std::vector<PlacedNode> nodes;
  std::vector<PlacedEdge> edges;
  std::vector<Label> labels;
  // A group
  int count = 0; // 0 for a unit
  std::vector<Item> items;
};

struct Layout {
  double width = 0, height = 0, streamX = 0;
  std::vector<Item> items;
};

constexpr double margin = 24, groupTop = 18, groupBottom = 12, groupInset = 10;

Layout layOut(const Graph &graph);

// Moves positions as little as possible (in squares) so that neighbours are `gaps[i]` apart or
// more; positions keep their order.
std::vector<double> separate(llvm::ArrayRef<double> wanted, llvm::ArrayRef<double> gaps);

} // namespace tenon::graph

#endif // TENON_TOOLS_GRAPH_LAYOUT_H
