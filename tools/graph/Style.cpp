// Colours and type of the picture, light and dark.
#include "tools/graph/SvgWriter.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace tenon::graph {

namespace {

struct Colours {
  const char *name, *fill, *line;
};

struct Scheme {
  const char *paper, *ink, *muted, *stream, *frame, *frameLine;
  Colours families[10];
};

constexpr Scheme light = {"#ffffff",
                          "#1c2128",
                          "#667080",
                          "#3d4653",
                          "#f7f8fa",
                          "#d8dde4",
                          {{"embedding", "#e2f3f4", "#3a98a4"},
                           {"norm", "#e6f4ea", "#4d9a68"},
                           {"linear", "#e7eefc", "#4f78cf"},
                           {"rope", "#f2ebfc", "#9069c8"},
                           {"attention", "#fdecdf", "#d67c3b"},
                           {"cache", "#fcf3d2", "#b99417"},
                           {"elementwise", "#eceff3", "#7d8896"},
                           {"view", "#ffffff", "#a5afbb"},
                           {"other", "#f3f1ee", "#948b7d"},
                           {"fused", "#fffafb", "#c2456e"}}};

constexpr Scheme dark = {"#14171c",
                         "#e4e8ee",
                         "#929dac",
                         "#a9b4c3",
                         "#1a1e25",
                         "#333b47",
                         {{"embedding", "#12343a", "#49aab6"},
                          {"norm", "#17342a", "#57a876"},
                          {"linear", "#1b2b4d", "#6a91e4"},
                          {"rope", "#2f2447", "#a683de"},
                          {"attention", "#45291a", "#e08f54"},
                          {"cache", "#3b3213", "#ccab3c"},
                          {"elementwise", "#292f38", "#8d99a8"},
                          {"view", "#14171c", "#5f6b7a"},
                          {"other", "#2c2a27", "#a0978a"},
                          {"fused", "#211a20", "#db6a90"}}};

} // namespace

// Written out rather than with CSS variables, which viewers other than browsers don't know.
std::string getStyle(StringRef scope, bool isDark) {
  const Scheme &scheme = isDark ? dark : light;
  std::string css;
  auto rule = [&](StringRef selector, const Twine &body) {
    css += (scope + " " + selector + "{" + body + "}\n").str();
  };
  rule(".paper", Twine("fill:") + scheme.paper);
  rule("text", Twine("fill:") + scheme.ink);
  rule(".muted", Twine("fill:") + scheme.muted);
  rule(".label", Twine("fill:") + scheme.muted + ";stroke:" + scheme.paper);
  rule(".group .label", Twine("stroke:") + scheme.frame);
  rule(".frame", Twine("fill:") + scheme.frame + ";stroke:" + scheme.frameLine);
  rule(".badge rect", Twine("fill:") + scheme.stream);
  rule(".badge text", Twine("fill:") + scheme.paper);
  rule(".edge", Twine("stroke:") + scheme.muted);
  rule(".stream", Twine("stroke:") + scheme.stream);
  rule(".dot", Twine("fill:") + scheme.stream);
  rule(".arrow", Twine("fill:") + scheme.muted);
  rule(".barrier", Twine("stroke:") + scheme.ink);
  for (const Colours &family : scheme.families)
    rule(("." + Twine(family.name) + ">.box").str(),
         Twine("fill:") + family.fill + ";stroke:" + family.line);
  rule(".edge.cached", Twine("stroke:") + scheme.families[5].line);
  return css;
}

std::vector<std::string> getLegend(const Graph &graph) {
  std::vector<std::string> names;
  for (const Colours &family : light.families) {
    bool isThere = false;
    for (const Node &node : graph.nodes) {
      isThere |= node.isFused && StringRef(family.name) == "fused";
      isThere |= !node.isFused && getName(node.family) == family.name;
      for (const OpInfo &op : node.body)
        isThere |= getName(op.family) == family.name;
    }
    if (isThere)
      names.push_back(family.name);
  }
  return names;
}

} // namespace tenon::graph
