// See Content.h.
#include "tools/graph/Content.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Unicode.h"

using namespace llvm;

namespace tenon::graph {

static int countColumns(StringRef text) {
  int columns = sys::unicode::columnWidthUTF8(text);
  return columns < 0 ? text.size() : columns;
}

// DejaVu Sans in bold, the widest of the usual fonts, has about this part of an em on average.
double getTextWidth(StringRef text, double fontSize) {
  return countColumns(text) * fontSize * 0.66;
}

// Fixed-width fonts have 0.55 to 0.605.
double getMonoWidth(StringRef text, double fontSize) {
  return countColumns(text) * fontSize * 0.61;
}

using Measure = double (*)(StringRef, double);

static std::string cut(StringRef text, double width, double fontSize, Measure measure) {
  if (measure(text, fontSize) <= width)
    return text.str();
  while (!text.empty() && measure(text, fontSize) + measure("…", fontSize) > width) {
    // A whole character of UTF-8.
    while ((text.back() & 0xC0) == 0x80 && text.size() > 1)
      text = text.drop_back();
    text = text.drop_back();
  }
  return text.str() + "…";
}

// Cuts the name rather than the numbers after it.
static std::string cutDetail(StringRef text, double width) {
  auto [name, rest] = text.split(' ');
  if (rest.empty() || getMonoWidth(text, detailFont) <= width)
    return cut(text, width, detailFont, getMonoWidth);
  double left = width - getMonoWidth(" " + rest.str(), detailFont);
  if (left < getMonoWidth("abc…", detailFont))
    return cut(rest, width, detailFont, getMonoWidth);
  return cut(name, left, detailFont, getMonoWidth) + " " + rest.str();
}

namespace {

class ContentMaker {
public:
  // The same node of several units.
  ContentMaker(const Graph &graph, ArrayRef<const Node *> nodes, int unit)
      : graph(graph), nodes(nodes.begin(), nodes.end()), first(*nodes.front()), unit(unit) {}

  Content make() {
    content.family = first.family;
    content.title = first.label;
    if (first.isFused)
      makeFused();
    else if (isSum())
      makeCircle();
    else if (first.family == Family::view)
      makeView();
    else
      makeBox();
    content.tooltip = getTooltip();
    return std::move(content);
  }

private:
  //===--------------------------------------------------------------------===//
  // Shapes
  //===--------------------------------------------------------------------===//

  bool isSum() const { return first.label == "add" || first.label == "mul"; }

  void makeCircle() {
    content.shape = Shape::circle;
    content.width = content.height = 26;
    content.title = first.label == "add" ? "+" : "×";
  }

  void makeView() {
    content.shape = Shape::view;
    content.width = 188;
    content.height = 26;
    double left = content.width - 2 * padding - getMonoWidth(first.label + " ", detailFont);
    content.detail = cut(first.detail, left, detailFont, getMonoWidth);
    addTags();
  }

  void makeBox() {
    content.shape = Shape::box;
    content.width = 188;
    content.height = first.detail.empty() ? 32 : 48;
    setTitle();
    content.detail = cutDetail(first.detail, content.width - 2 * padding);
    addTags();
  }

  void makeFused() {
    content.shape = Shape::fused;
    content.width = 268;
    setTitle();
    for (const OpInfo &op : first.body) {
      double left = content.width - 4 * padding - getTextWidth(op.label, 11);
      // Several views in a row are one line.
      if (op.family == Family::view && !content.lines.empty() &&
          content.lines.back().label == op.label) {
        std::string both = content.lines.back().detail + ", " + op.detail;
        content.lines.back().detail = cut(both, left, detailFont, getMonoWidth);
        continue;
      }
      content.lines.push_back({op.label, cutDetail(op.detail, left), op.family});
    }
    content.height = titleHeight + content.lines.size() * lineHeight + 6;
    addTags();
  }

  void setTitle() {
    int64_t bytes = first.getWeightBytes();
    content.note = bytes ? formatBytes(bytes) : "";
    double left = content.width - 2 * padding - getMonoWidth(content.note, detailFont) - 6;
    content.title = cut(first.label, left, titleFont, getTextWidth);
  }

  //===--------------------------------------------------------------------===//
  // Tags: what a node has to do with things that no line leads to
  //===--------------------------------------------------------------------===//

  void addTag(std::string text, Family family) {
    double right = content.width - padding;
    text = cut(text, right - padding - 12, tagFont, getMonoWidth);
    Tag tag{text, family, padding, content.height - 2, getMonoWidth(text, tagFont) + 12};
    if (!content.tags.empty()) {
      const Tag &last = content.tags.back();
      double next = last.x + last.width + 6;
      if (next + tag.width <= right) {
        tag.x = next;
        tag.y = last.y;
      }
    }
    if (tag.y == content.height - 2)
      content.height += tagGap;
    content.tags.push_back(tag);
  }

  void addTags() {
    if (first.layer)
      addTag("cache layer " +
                 merge([](const Node &node) { return std::to_string(node.layer.value_or(0)); }),
             Family::cache);
    else if (std::string layers = mergeBodyLayers(); !layers.empty())
      addTag("cache layer " + layers, Family::cache);
    SetVector<int> shared;
    for (const Input &input : first.inputs)
      if (input.isRows && input.node < 0)
        addTag("◂ argument", Family::other);
      else if (input.isRows && !isDrawn(input.node))
        shared.insert(input.node);
    for (int node : shared)
      addTag("◂ " + graph.nodes[node].label, graph.nodes[node].family);
    for (const std::string &name : first.outputs)
      addTag("▸ " + name, Family::other);
  }

  // Whether an edge leads there from this unit.
  bool isDrawn(int node) const {
    int other = graph.unitOf[node];
    return other == unit || (other >= 0 && other == unit - 1 && graph.units[other].stream == node);
  }

  std::string mergeBodyLayers() const {
    for (auto [index, op] : enumerate(first.body))
      if (op.layer)
        return merge(
            [index = index](const Node &node) { return std::to_string(*node.body[index].layer); });
    return "";
  }

  //===--------------------------------------------------------------------===//
  // The tooltip
  //===--------------------------------------------------------------------===//

  std::string merge(function_ref<std::string(const Node &)> get) const {
    std::vector<std::string> texts;
    for (const Node *node : nodes)
      texts.push_back(get(*node));
    return mergeNames(texts);
  }

  // A weight of operation `op` (an index into getOps()), with the names of all units merged.
  std::string describeWeight(size_t op, size_t weight) const {
    const WeightUse &use = first.getOps()[op]->weights[weight];
    std::string text;
    for (size_t i = 0; i < use.tensors.size(); ++i)
      text += (i ? " + " : "") + merge([=](const Node &node) {
                return node.getOps()[op]->weights[weight].tensors[i];
              });
    text += (text.empty() ? "" : ": ") + use.type + ", " + formatBytes(use.bytes);
    if (!use.recipe.empty())
      text += " (" + use.recipe + ")";
    return text;
  }

  void describe(const OpInfo &op, size_t index, StringRef indent, std::string &text) const {
    for (const auto &[name, value] : op.attributes)
      text += "\n" + indent.str() + name + ": " + value;
    for (size_t i = 0; i < op.weights.size(); ++i)
      text += "\n" + indent.str() + "weight: " + describeWeight(index, i);
  }

  std::string getTooltip() const {
    std::string text = first.mnemonic + (first.mnemonic == "llm.fused" ? " @" + first.label : "");
    describe(first, 0, "", text);
    for (auto [index, op] : enumerate(first.body)) {
      text += "\n• " + op.mnemonic;
      if (!StringRef(op.mnemonic).ends_with(op.label))
        text += " " + op.label;
      describe(op, index, "    ", text);
    }
    for (const ResultInfo &result : first.results) {
      text += "\nresult: " + result.type;
      if (result.rowBytes)
        text += ", " + formatBytes(result.rowBytes) + " a row";
    }
    if (nodes.size() > 1)
      text += "\nrepeated: " + std::to_string(nodes.size()) + " times";
    return text;
  }

  const Graph &graph;
  SmallVector<const Node *> nodes;
  const Node &first;
  int unit;
  Content content;
};

} // namespace

Content makeContent(const Graph &graph, ArrayRef<int> units, int place) {
  SmallVector<const Node *> nodes;
  for (int unit : units)
    nodes.push_back(
        &graph.nodes[place < 0 ? graph.units[unit].stream : graph.units[unit].block[place]]);
  return ContentMaker(graph, nodes, units.front()).make();
}

Content makeSharedContent(const Graph &graph, int node) {
  return ContentMaker(graph, {&graph.nodes[node]}, -1).make();
}

} // namespace tenon::graph
