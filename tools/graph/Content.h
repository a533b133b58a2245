// What is written into the box of a node, and how big the box is therefore.
//
//   box                     fused                       view        circle
//   ┌───────────────────┐   ┌───────────────────────┐
//   │ linear    378 KiB │   │ norm_qkv      340 KiB │   ╭ slice ╮      ⊕
//   │ q_proj 576×576 f32│   │ ┌ rms_norm ─────────┐ │
//   │ ( cache 0…29 )    │   │ └ linear ───────────┘ │
//   └───────────────────┘   │ ( cache 0…29 )        │
//                           └───────────────────────┘
//
// Widths of text are estimated from above: a font's real widths are not known when the file is
// written. Text that would not fit is cut with an ellipsis; the tooltip has all of it.
#ifndef TENON_TOOLS_GRAPH_CONTENT_H
#define TENON_TOOLS_GRAPH_CONTENT_H

#include "tools/graph/GraphModel.h"

namespace tenon::graph {

enum class Shape { box, fused, view, circle };

struct Line {
  std::string label, detail;
  Family family;
};

struct Tag {
  std::string text;
  Family family;
  double x, y, width; // of its left upper corner in the box
};

struct Content {
  Shape shape;
  Family family;
  double width, height;
  std::string title, note, detail; // note: at the right of the title
  std::vector<Line> lines;         // of a fused node
  std::vector<Tag> tags;
  std::string tooltip; // of several lines; the first is a heading
};

// Sizes that the writer uses too.
constexpr double padding = 10, titleHeight = 30, lineHeight = 24, tagHeight = 16, tagGap = 20;
constexpr double titleFont = 12.5, detailFont = 10, tagFont = 9;

// `units` are the units that a folded one stands for, `place` is where the node is in each of them:
// the index in its block, or -1 for the node of the stream. What differs between them is merged.
Content makeContent(const Graph &graph, llvm::ArrayRef<int> units, int place);
// Of a node that no unit holds.
Content makeSharedContent(const Graph &graph, int node);

// Upper estimates in pixels, of proportional and of fixed-width type.
double getTextWidth(llvm::StringRef text, double fontSize);
double getMonoWidth(llvm::StringRef text, double fontSize);

} // namespace tenon::graph

#endif // TENON_TOOLS_GRAPH_CONTENT_H
