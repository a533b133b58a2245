// See SvgWriter.h.
#include "tools/graph/SvgWriter.h"
#include "tools/graph/Layout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <cmath>
#include <set>

using namespace llvm;

namespace tenon::graph {

std::string escape(StringRef text) {
  std::string clean = json::isUTF8(text) ? text.str() : json::fixUTF8(text), result;
  for (char c : clean) {
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    default:
      // XML has no other control characters, not even as references.
      bool isControl = (unsigned char)c < 32 && c != '\n' && c != '\t';
      result += isControl ? "\xEF\xBF\xBD" : std::string(1, c);
    }
  }
  return result;
}

Caption makeCaption(const Graph &graph, StringRef phase) {
  // A tied weight counts once.
  int64_t bytes = 0;
  std::set<std::pair<std::vector<std::string>, std::string>> seen;
  for (const Node &node : graph.nodes)
    for (const OpInfo *op : node.getOps())
      for (const WeightUse &weight : op->weights)
        if (seen.insert({weight.tensors, weight.type}).second)
          bytes += weight.bytes;
  std::string subtitle = "@" + graph.function;
  if (!phase.empty())
    subtitle += " · " + phase.str();
  subtitle += formatv(" · {0} operations · {1} of weights", graph.nodes.size(), formatBytes(bytes));
  return {graph.model.empty() ? "module" : graph.model, subtitle};
}

StringRef getTypeRules() {
  return R"css(
svg.tenon{font-family:Inter,"Segoe UI","Helvetica Neue",Arial,"DejaVu Sans",sans-serif}
svg.tenon .title{font-size:12.5px;font-weight:600}
svg.tenon .mono,svg.tenon .label{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace}
svg.tenon .mono{font-size:10px}
svg.tenon .line{font-size:11px;font-weight:500}
svg.tenon .label{font-size:9.5px;stroke-width:4px;paint-order:stroke;stroke-linejoin:round}
svg.tenon .tag text{font-size:9px}
svg.tenon .sign{font-size:17px;font-weight:500}
svg.tenon .heading{font-size:20px;font-weight:700;letter-spacing:-.2px}
svg.tenon .subheading{font-size:12px}
svg.tenon .legend text{font-size:10.5px}
svg.tenon .badge text{font-size:12px;font-weight:700}
svg.tenon .box{stroke-width:1.2px}
svg.tenon .fused>.box{stroke-width:1.8px}
svg.tenon .view>.box{stroke-dasharray:3 2.5}
svg.tenon .frame{stroke-width:1px}
svg.tenon .edge{fill:none;stroke-width:1.3px}
svg.tenon .stream{fill:none;stroke-width:2.6px}
svg.tenon .cached{stroke-dasharray:4 3}
svg.tenon .barrier{stroke-width:2px;stroke-dasharray:2 3}
)css";
}

namespace {

constexpr double headerHeight = 92;

std::string number(double value) {
  std::string text = formatv("{0:f1}", value);
  StringRef brief = text;
  if (brief.consume_back(".0"))
    return brief == "-0" ? "0" : brief.str();
  return text;
}

bool hasBarriers(const Graph &graph) {
  return any_of(graph.nodes, [](const Node &node) { return node.afterBarrier; });
}

double getLegendWidth(StringRef name) { return name.size() * 5.6 + 36; }

double measureLegend(const Graph &graph) {
  double width = hasBarriers(graph) ? getLegendWidth("after a barrier") : 0;
  for (const std::string &name : getLegend(graph))
    width += getLegendWidth(name);
  return width;
}

class Writer {
public:
  Writer(const Graph &graph, const Caption &caption, raw_ostream &out)
      : graph(graph), caption(caption), out(out), layout(layOut(graph)) {}

  void write(bool isInline) {
    double header = isInline ? 16 : headerHeight;
    double width = std::max(layout.width, isInline ? 0 : measureLegend(graph) + 2 * margin);
    double height = header + layout.height + margin;
    out << formatv("<svg class=\"tenon\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
                   "aria-labelledby=\"graph-title graph-desc\" viewBox=\"0 0 {0} {1}\" "
                   "width=\"{0}\" height=\"{1}\" data-nodes=\"{2}\" "
                   "data-operations=\"{3}\">\n",
                   number(width), number(height), countNodes(layout.items), graph.nodes.size());
    out << "<title id=\"graph-title\">" << escape(caption.title) << "</title>\n"
        << "<desc id=\"graph-desc\">Graph of " << escape(caption.subtitle)
        << ". The residual stream runs from top to bottom; layers that repeat are drawn once."
        << "</desc>\n";
    if (!isInline) {
      out << "<style>" << getTypeRules() << getStyle("svg.tenon", false)
          << "@media(prefers-color-scheme:dark){\n"
          << getStyle("svg.tenon", true) << "}\n</style>\n";
      out << formatv("<rect class=\"paper\" width=\"{0}\" height=\"{1}\"/>\n", number(width),
                     number(height));
      writeHeader();
    }
    out << formatv("<g class=\"stack\" transform=\"translate(0,{0})\">\n", number(header));
    writeItems(layout.items, 0, 0);
    out << "</g>\n</svg>\n";
  }

private:
  void writeHeader() {
    out << formatv("<text class=\"heading\" x=\"{0}\" y=\"36\">{1}</text>\n", margin,
                   escape(caption.title))
        << formatv("<text class=\"subheading muted\" x=\"{0}\" y=\"56\">{1}</text>\n", margin,
                   escape(caption.subtitle))
        << formatv("<g transform=\"translate({0},70)\">\n", margin);
    writeLegend(graph, out);
    out << "</g>\n";
  }

  //===--------------------------------------------------------------------===//
  // The stack
  //===--------------------------------------------------------------------===//

  static int countNodes(ArrayRef<Item> items) {
    int count = 0;
    for (const Item &item : items)
      count += item.nodes.size() + countNodes(item.items);
    return count;
  }

  void writeItems(ArrayRef<Item> items, double y, int depth) {
    for (const Item &item : items) {
      out << formatv("<g class=\"item{0}\" data-h=\"{1}\"{2} transform=\"translate(0,{3})\">\n",
                     item.count ? " group" : "", number(item.height),
                     item.count ? formatv(" data-count=\"{0}\"", item.count).str() : "", number(y));
      if (item.count)
        writeGroup(item, depth, &item == &items.back());
      else
        writeUnit(item);
      out << "</g>\n";
      y += item.height;
    }
  }

  void writeGroup(const Item &group, int depth, bool isLast) {
    double inset = margin + depth * groupInset, width = layout.width - 2 * inset;
    out << formatv("<rect class=\"frame\" x=\"{0}\" y=\"6\" width=\"{1}\" height=\"{2}\" "
                   "rx=\"12\"/>\n",
                   number(inset), number(width), number(group.height - 12));
    std::string count = "× " + std::to_string(group.count);
    double badge = getTextWidth(count, 12) + 18;
    out << formatv("<g class=\"badge\" transform=\"translate({0},16)\"><rect width=\"{1}\" "
                   "height=\"22\" rx=\"11\"/><text x=\"{2}\" y=\"15.5\" "
                   "text-anchor=\"middle\">{3}</text></g>\n",
                   number(inset + width - badge - 10), number(badge), number(badge / 2), count);
    writeStream(0, groupTop);
    double content = group.height - groupBottom;
    if (!isLast)
      writeStream(content, group.height);
    writeItems(group.items, groupTop, depth + 1);
  }

  void writeStream(double from, double to) {
    out << formatv("<path class=\"stream\" d=\"M{0} {1}V{2}\"/>\n", number(layout.streamX),
                   number(from), number(to + 0.5)); // no seam
  }

  void writeUnit(const Item &unit) {
    for (const PlacedEdge &edge : unit.edges)
      writeEdge(edge);
    for (const PlacedNode &node : unit.nodes)
      writeNode(node);
    for (const Label &label : unit.labels)
      out << formatv("<text class=\"label\" x=\"{0}\" y=\"{1}\"{2}>{3}</text>\n",
                     number(label.at.x), number(label.at.y),
                     label.endsThere ? " text-anchor=\"end\"" : "", escape(label.text));
  }

  //===--------------------------------------------------------------------===//
  // Lines
  //===--------------------------------------------------------------------===//

  void writeArrow(Point at, bool toLeft) {
    const char *shape = toLeft ? "M{0} {1}l7-3.6v7.2z" : "M{0} {1}l-3.6-7h7.2z";
    out << "<path class=\"arrow\" d=\"" << formatv(shape, number(at.x), number(at.y)) << "\"/>\n";
  }

  // Down, aside, down: below the label at its beginning.
  static std::string makeStep(Point a, Point b) {
    double radius = std::min(8.0, std::abs(b.x - a.x) / 2), side = b.x < a.x ? -radius : radius;
    double y = std::max((a.y + b.y) / 2, b.y - 18);
    return formatv("V{0}Q{1} {2} {3} {2}H{4}Q{5} {2} {5} {6}V{7}", number(y - radius), number(a.x),
                   number(y), number(a.x + side), number(b.x - side), number(b.x),
                   number(y + radius), number(b.y));
  }

  void writeEdge(const PlacedEdge &edge) {
    Point first = edge.points.front(), last = edge.points.back();
    constexpr double corner = 9;
    if (edge.kind == EdgeKind::stream) {
      writeStream(first.y, last.y);
      return;
    }
    std::string path = "M" + number(first.x) + " " + number(first.y);
    if (edge.kind == EdgeKind::entry) {
      path += formatv("H{0}Q{1} {2} {1} {3}V{4}", number(last.x - corner), number(last.x),
                      number(first.y), number(first.y + corner), number(last.y));
      out << formatv("<circle class=\"dot\" cx=\"{0}\" cy=\"{1}\" r=\"3.4\"/>\n", number(first.x),
                     number(first.y));
    } else if (edge.kind == EdgeKind::exit) {
      path += formatv("V{0}Q{1} {2} {3} {2}H{4}", number(last.y - corner), number(first.x),
                      number(last.y), number(first.x - corner), number(last.x));
    } else {
      for (size_t i = 1; i < edge.points.size(); ++i) {
        Point a = edge.points[i - 1], b = edge.points[i];
        path += std::abs(a.x - b.x) < 0.5 ? "V" + number(b.y) : makeStep(a, b);
      }
    }
    out << formatv("<path class=\"edge{0}\" d=\"{1}\"/>\n", edge.isCache ? " cached" : "", path);
    if (edge.endsAtNode)
      writeArrow(last, edge.kind == EdgeKind::exit);
  }

  //===--------------------------------------------------------------------===//
  // Nodes
  //===--------------------------------------------------------------------===//

  void writeText(StringRef style, double x, double y, StringRef text, StringRef anchor = "") {
    if (text.empty())
      return;
    out << formatv("<text class=\"{0}\" x=\"{1}\" y=\"{2}\"", style, number(x), number(y));
    if (!anchor.empty())
      out << " text-anchor=\"" << anchor << "\"";
    out << ">" << escape(text) << "</text>";
  }

  void writeBox(double x, double y, double width, double height, double radius) {
    out << formatv(
        "<rect class=\"box\" x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" rx=\"{4}\"/>",
        number(x), number(y), number(width), number(height), number(radius));
  }

  void writeNode(const PlacedNode &node) {
    const Content &content = node.content;
    StringRef family = content.shape == Shape::fused ? StringRef("fused") : getName(content.family);
    out << formatv("<g class=\"node {0}\" transform=\"translate({1},{2})\">", family,
                   number(node.x), number(node.y))
        << "<title>" << escape(content.tooltip) << "</title>";
    double radius = content.shape == Shape::circle ? content.width / 2
                    : content.shape == Shape::view ? 13
                                                   : 7;
    writeBox(0, 0, content.width, content.height, radius);
    if (node.afterBarrier)
      out << formatv("<path class=\"barrier\" d=\"M4 -5H{0}\"/>", number(content.width - 4));
    switch (content.shape) {
    case Shape::circle:
      writeText("sign", content.width / 2, 18.8, content.title, "middle");
      break;
    case Shape::view:
      out << formatv("<text class=\"mono\" x=\"{0}\" y=\"17\" text-anchor=\"middle\">{1} <tspan "
                     "class=\"muted\">{2}</tspan></text>",
                     number(content.width / 2), escape(content.title), escape(content.detail));
      break;
    case Shape::box:
      writeHeading(content);
      writeText("mono muted", padding, 37, content.detail);
      break;
    case Shape::fused:
      writeHeading(content);
      writeLines(content);
      break;
    }
    for (const Tag &tag : content.tags) {
      out << formatv("<g class=\"tag {0}\">", getName(tag.family));
      writeBox(tag.x, tag.y, tag.width, tagHeight, 8);
      writeText("mono", tag.x + tag.width / 2, tag.y + 11.2, tag.text, "middle");
      out << "</g>";
    }
    out << "</g>\n";
  }

  void writeHeading(const Content &content) {
    writeText("title", padding, 20, content.title);
    if (!content.note.empty())
      writeText("mono muted", content.width - padding, 20, content.note, "end");
  }

  void writeLines(const Content &content) {
    double y = titleHeight;
    for (const Line &line : content.lines) {
      out << formatv("<g class=\"{0}\">", getName(line.family));
      writeBox(8, y, content.width - 16, lineHeight - 3, 4);
      writeText("line", 16, y + 14.5, line.label);
      writeText("mono muted", content.width - 16, y + 14, line.detail, "end");
      out << "</g>";
      y += lineHeight;
    }
  }

  const Graph &graph;
  const Caption &caption;
  raw_ostream &out;
  Layout layout;
};

} // namespace

void writeLegend(const Graph &graph, raw_ostream &out) {
  out << "<g class=\"legend\">\n";
  double x = 0;
  auto add = [&](StringRef name, StringRef swatch) {
    out << formatv("<g class=\"{0}\" transform=\"translate({1},0)\">{2}<text class=\"muted\" "
                   "x=\"17\" y=\"10\">{0}</text></g>\n",
                   name, number(x), swatch);
    x += getLegendWidth(name);
  };
  for (const std::string &name : getLegend(graph))
    add(name, "<rect class=\"box\" width=\"12\" height=\"12\" rx=\"3\"/>");
  if (hasBarriers(graph))
    add("after a barrier", "<path class=\"barrier\" d=\"M0 6H12\"/>");
  out << "</g>\n";
}

void writeSvg(const Graph &graph, const Caption &caption, raw_ostream &out) {
  Writer(graph, caption, out).write(false);
}

void writeInlineSvg(const Graph &graph, const Caption &caption, raw_ostream &out) {
  Writer(graph, caption, out).write(true);
}

} // namespace tenon::graph
