// Reading, cutting and folding of graphs, and the texts on them.
#include "test/unit/view/Support.h"
#include "tools/graph/SvgWriter.h"
#include "tools/graph/Units.h"

using namespace tenon;
using namespace tenon::graph;
using testing::ElementsAre;

namespace {

using GraphTest = ViewTest;

std::string show(llvm::ArrayRef<Stretch> stretches) {
  std::string text;
  for (const Stretch &stretch : stretches) {
    text += (text.empty() ? "" : " ") + std::to_string(stretch.first) + "+" +
            std::to_string(stretch.length);
    if (stretch.count > 1)
      text += "x" + std::to_string(stretch.count);
    if (!stretch.inner.empty())
      text += "(" + show(stretch.inner) + ")";
  }
  return text;
}

TEST(FoldTest, findsTheLongestRepetition) {
  EXPECT_EQ(show(fold({"e", "a", "b", "a", "b", "a", "b", "h"})), "0+1 1+2x3 7+1");
  EXPECT_EQ(show(fold({"a", "b", "c"})), "0+3");
  EXPECT_EQ(show(fold({"a", "a", "a", "a"})), "0+1x4");
  EXPECT_EQ(show(fold({})), "");
}

// Five local layers and a global one, twice, then two local ones.
TEST(FoldTest, nests) {
  std::vector<std::string> items;
  for (int i = 0; i < 14; ++i)
    items.push_back(i % 6 == 5 ? "global" : "local");
  EXPECT_EQ(show(fold(items)), "0+6x2(0+1x5 5+1) 12+1x2");
}

TEST(NamesTest, mergesNumbers) {
  EXPECT_EQ(mergeNames({"layers.0.q", "layers.1.q", "layers.2.q"}), "layers.{0…2}.q");
  EXPECT_EQ(mergeNames({"l.5.q", "l.11.q", "l.17.q"}), "l.{5, 11…17}.q");
  EXPECT_EQ(mergeNames({"l.1.q", "l.2.q", "l.9.q"}), "l.{…}.q");
  EXPECT_EQ(mergeNames({"q", "q"}), "q");
  EXPECT_EQ(mergeNames({"a0", "b1"}), "a0, …");
  EXPECT_EQ(mergeNames({"1", "99999999999999999999"}), "…");
}

TEST(NamesTest, shortens) {
  EXPECT_EQ(getShortName({"model.layers.0.self_attn.q_proj.weight"}), "q_proj");
  EXPECT_EQ(getShortName({"a.q_proj.weight", "a.k_proj.weight"}), "q+k_proj");
  EXPECT_EQ(getShortName({"blk.0.attn_q.weight", "blk.0.attn_k.weight"}), "attn_q+k");
  EXPECT_EQ(getShortName({"a.gate", "a.up_b"}), "gate+up_b");
  EXPECT_EQ(formatBytes(2304), "2.25 KiB");
  EXPECT_EQ(formatBytes(100), "100 B");
  EXPECT_EQ(formatBytes(10 << 20), "10 MiB");
}

TEST(NamesTest, escapesWhateverATensorIsCalled) {
  EXPECT_EQ(escape("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;");
  EXPECT_EQ(escape(llvm::StringRef("a\0b\x1b", 4)), "a\uFFFDb\uFFFD");
  EXPECT_EQ(escape("\xff"), "\uFFFD");
}

TEST_F(GraphTest, theStreamGoesAroundWhatIsSkipped) {
  auto module = parse(makeModel(2));
  Graph graph = makeGraph(*module);
  std::vector<std::string> stream;
  for (const Unit &unit : graph.units)
    stream.push_back(graph.nodes[unit.stream].label);
  EXPECT_THAT(stream, ElementsAre("embedding", "add", "add", "linear"));
  EXPECT_THAT(graph.units[1].block, ElementsAre(1, 2));
  EXPECT_THAT(graph.units[2].block, ElementsAre(4, 5));
  EXPECT_EQ(graph.getSignature(1), graph.getSignature(2));
  EXPECT_NE(graph.getSignature(0), graph.getSignature(1));
}

TEST_F(GraphTest, layersThatDifferHaveOtherSignatures) {
  std::string text = makeModel(3);
  // The last layer normalises otherwise.
  text.replace(text.rfind("1.0e-5"), 6, "1.0e-6");
  auto module = parse(text);
  Graph graph = makeGraph(*module);
  EXPECT_EQ(graph.getSignature(1), graph.getSignature(2));
  EXPECT_NE(graph.getSignature(2), graph.getSignature(3));
}

TEST_F(GraphTest, aFusedNodeHasItsBody) {
  auto module = parse(R"(
    func.func @main(%b: !llm.batch) -> (tensor<?x8xf32> {llm.result = "logits"}) {
      %e = llm.weight "e" : <8x4xf32>
      %g = llm.weight "g" : <4xf32>
      %x = llm.embedding %b, %e : <8x4xf32>
      %l = llm.fused @norm_head -> tensor<?x8xf32> {
        %n = llm.rms_norm %x, %g eps 1.0e-5 : tensor<?x4xf32>, <4xf32>
        %h = llm.linear %n, %e : tensor<?x4xf32>, <8x4xf32>
        llm.yield %h : tensor<?x8xf32>
      }
      return %l : tensor<?x8xf32>
    })");
  Graph graph = makeGraph(*module);
  ASSERT_EQ(graph.nodes.size(), 2u);
  const Node &fused = graph.nodes[1];
  EXPECT_TRUE(fused.isFused);
  EXPECT_EQ(fused.label, "norm_head");
  ASSERT_EQ(fused.body.size(), 2u);
  EXPECT_EQ(fused.body[1].weights[0].type, "8×4 f32");
  EXPECT_EQ(fused.getWeightBytes(), 16 + 128);
  EXPECT_EQ(fused.results[0].type, "T×8");
  EXPECT_THAT(fused.outputs, ElementsAre("logits"));
  ASSERT_EQ(fused.inputs.size(), 1u);
  EXPECT_EQ(fused.inputs[0].node, 0);
}

TEST_F(GraphTest, refusesWhatItCannotDraw) {
  auto module = parse("func.func @empty() { return }");
  EXPECT_EQ(llvm::toString(buildGraph(*module, "empty").takeError()),
            "@empty: has no operations to draw");
  EXPECT_EQ(llvm::toString(buildGraph(*module, "main").takeError()), "@main: no such function");
}

} // namespace
