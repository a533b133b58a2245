// Where things come to lie: in order, apart, and inside the picture.
#include "tools/graph/Layout.h"
#include "test/unit/view/Support.h"

using namespace tenon;
using namespace tenon::graph;
using testing::DoubleNear;
using testing::Pointwise;

namespace {

using LayoutTest = ViewTest;

TEST(SeparateTest, movesAsLittleAsPossible) {
  // Apart already.
  EXPECT_THAT(separate({0, 20, 50}, {10, 10}), Pointwise(DoubleNear(1e-9), {0, 20, 50}));
  // Two that want the same place share the way.
  EXPECT_THAT(separate({5, 5}, {10}), Pointwise(DoubleNear(1e-9), {0, 10}));
  // In the wrong order: they keep theirs.
  EXPECT_THAT(separate({30, 0, 100}, {10, 10}), Pointwise(DoubleNear(1e-9), {10, 20, 100}));
  EXPECT_THAT(separate({}, {}), testing::IsEmpty());
}

void collect(const std::vector<Item> &items, double y, std::vector<PlacedNode> &nodes) {
  for (const Item &item : items) {
    for (PlacedNode node : item.nodes) {
      node.y += y;
      nodes.push_back(node);
    }
    collect(item.items, y + groupTop, nodes);
    y += item.height;
  }
}

bool overlap(const PlacedNode &a, const PlacedNode &b) {
  return a.x < b.x + b.content.width && b.x < a.x + a.content.width &&
         a.y < b.y + b.content.height && b.y < a.y + a.content.height;
}

TEST_F(LayoutTest, drawsARepeatedLayerOnce) {
  auto module = parse(makeModel(5));
  Layout layout = layOut(makeGraph(*module));
  ASSERT_EQ(layout.items.size(), 3u); // embedding, layers, head
  EXPECT_EQ(layout.items[1].count, 5);
  std::vector<PlacedNode> nodes;
  collect(layout.items, 0, nodes);
  ASSERT_EQ(nodes.size(), 5u); // embedding; norm, linear, add; head
  EXPECT_THAT(nodes[2].content.tooltip, testing::HasSubstr("layers.{0…4}.up_proj.weight: 4×4 f32"));
}

TEST_F(LayoutTest, nothingOverlapsOrLeaves) {
  auto module = parse(makeModel(2, R"(
      %v = llm.linear %x2, %w0 : tensor<?x4xf32>, <4x4xf32>
      %w = llm.linear %x2, %w1 : tensor<?x4xf32>, <4x4xf32>
      %s = llm.activation silu %v : tensor<?x4xf32>
      %m = llm.mul %s, %w : tensor<?x4xf32>
      %unused = llm.add %m, %x2 : tensor<?x4xf32>
  )"));
  Layout layout = layOut(makeGraph(*module));
  std::vector<PlacedNode> nodes;
  collect(layout.items, 0, nodes);
  for (const PlacedNode &node : nodes) {
    EXPECT_GE(node.x, 0);
    EXPECT_LE(node.x + node.content.width, layout.width);
    EXPECT_LE(node.y + node.content.height, layout.height);
    for (const PlacedNode &other : nodes)
      EXPECT_TRUE(&node == &other || !overlap(node, other))
          << node.content.title << " and " << other.content.title;
  }
}

TEST(ContentTest, widthsCountCharactersNotBytes) {
  EXPECT_EQ(getMonoWidth("×", 10), getMonoWidth("x", 10));
}

} // namespace
