// The picture as one SVG file that needs nothing else: no font, no script, no network.
//
//   svg[data-nodes][data-operations]  how many nodes are drawn, and how many they stand for
//     g.stack > g.item*               from top to bottom, each with data-h, its height
//       g.item > g.node               > rect, text, title (what a browser shows on hover)
//       g.item.group[data-count]      > rect.frame, g.badge, g.item*
#ifndef TENON_TOOLS_GRAPH_SVGWRITER_H
#define TENON_TOOLS_GRAPH_SVGWRITER_H

#include "tools/graph/GraphModel.h"
#include "llvm/Support/raw_ostream.h"

namespace tenon::graph {

// What is said about the graph above it.
struct Caption {
  std::string title, subtitle;
};

Caption makeCaption(const Graph &graph, llvm::StringRef phase);

// Text for an XML document, whatever bytes it has.
std::string escape(llvm::StringRef text);

// The rules that colour the picture, for a selector such as `svg.tenon`: light, or dark.
std::string getStyle(llvm::StringRef scope, bool isDark);

void writeSvg(const Graph &graph, const Caption &caption, llvm::raw_ostream &out);
// The same without an outer style sheet and heading: part of a page.
void writeInlineSvg(const Graph &graph, const Caption &caption, llvm::raw_ostream &out);

// The families that the graph has.
std::vector<std::string> getLegend(const Graph &graph);
void writeLegend(const Graph &graph, llvm::raw_ostream &out);
// Type sizes and line widths; getStyle() has the colours.
llvm::StringRef getTypeRules();

} // namespace tenon::graph

#endif // TENON_TOOLS_GRAPH_SVGWRITER_H
