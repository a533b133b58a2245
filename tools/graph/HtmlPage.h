// The picture as one HTML file: the SVG with pan and zoom, layers that fold, a panel with all that
// is known of a node, and a switch between light and dark. scripts/check-graph.sh looks at it in a
// browser.
#ifndef TENON_TOOLS_GRAPH_HTMLPAGE_H
#define TENON_TOOLS_GRAPH_HTMLPAGE_H

#include "tools/graph/SvgWriter.h"

namespace tenon::graph {

void writeHtml(const Graph &graph, const Caption &caption, llvm::raw_ostream &out);

} // namespace tenon::graph

#endif // TENON_TOOLS_GRAPH_HTMLPAGE_H
