// Architecture files: the nodes that the frontend knows itself, and what is refused.
#include "Support.h"

using namespace tenon;
using namespace tenon::test;

namespace {

class GraphTest : public testing::Test {
protected:
  Folder folder;
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};

  std::string write(const std::string &architecture) {
    folder.write("a.yaml", architecture);
    return folder.write("m.yaml",
                        "model: m\narchitecture: ./a.yaml\nconfig: {vocab: 100, context: 8}\n");
  }
  // `graph` stands on line 3.
  static std::string architecture(const std::string &graph) {
    return "parameters: {vocab: integer, context: integer, heads: integer = 2, kind: silu | tanh = "
           "silu}\n"
           "checks: [{that: $(heads == 2), at: kind, message: $kind}]\ngraph: " +
           graph + "\n";
  }
  std::string textOf(const std::string &graph, bool marks = false) {
    ModelOptions options = planOptions();
    options.emitHidden = marks;
    llvm::Expected<Model> model = loadModel(context, write(architecture(graph)), options);
    return model ? print(*model->module) : llvm::toString(model.takeError());
  }
};

constexpr char embed[] = "{embedding: {weight: e, rows: $vocab, columns: 8}}";

TEST_F(GraphTest, RefusesFiles) {
  const std::pair<const char *, const char *> cases[] = {
      {"@graph: []\n", "'parameters' is missing"},
      {"parameters: @{}\ngraph: []\n", "parameter 'vocab' is missing; accepted: 'vocab: integer'"},
      {"@parameters: {vocab: integer, context: integer}\n", "'graph' is missing"},
      {"parameters: {vocab: integer, context: integer}\ngraph: @{}\n",
       "'graph' must be a list of nodes"},
      {"parameters: {vocab: integer, context: integer, @x: flag}\ngraph: []\n",
       "parameter 'x' is read nowhere in the graph"},
      {"parameters: {vocab: integer, context: integer}\ngraph: [{mark: @$x}]\n",
       "unknown name 'x'; accepted: vocab, context"},
      {"parameters: {vocab: @17, context: integer}\ngraph: []\n",
       "cannot read the declaration '17'; accepted: integer [MIN..MAX], number [MIN..MAX], flag or "
       "word | word, each with or without 'list of' and '= DEFAULT'"},
      {"parameters: {vocab: integer 1.., context: @integer a..b}\ngraph: []\n",
       "cannot read the declaration 'integer a..b'; accepted: integer [MIN..MAX], number "
       "[MIN..MAX], "
       "flag or word | word, each with or without 'list of' and '= DEFAULT'"},
      {"parameters: {vocab: integer, context: integer}\n@nodes: []\ngraph: []\n",
       "unknown key 'nodes'; accepted: parameters, checks, graph, hf, gguf, plugins"},
  };
  for (auto [text, error] : cases) {
    Marked marked(text);
    EXPECT_EQ(folder.relative(loadError(write(marked.text))),
              "a.yaml:" + marked.place + ": error: " + error)
        << text;
  }
}

TEST_F(GraphTest, RefusesNodes) {
  const std::string e = embed;
  const std::pair<std::string, std::string> cases[] = {
      {"@[]", "the graph is empty"},
      {"[@7]", "a node is one mnemonic with its arguments, and possibly 'when'; got 7"},
      {"[@{a: 1, b: 2}]",
       "a node is one mnemonic with its arguments, and possibly 'when'; got 2 keys"},
      {"[{@rmsnorm: {}}]",
       "unknown node 'rmsnorm'; accepted: repeat, residual, sequence, let, get, mark, encoder, "
       "activation, add, attention, clamp, combine, embedding, expert_linear, gather_columns, "
       "join_heads, layer_norm, linear, mul, normalise, position_embedding, repeat_kv, rms_norm, "
       "rope, scale, shift, softcap, softmax, top_k, type_embedding"},
      {"[{@no.such: {}}]",
       "unknown node 'no.such': no loaded plugin has the dialect 'no'; accepted: "
       "--load-plugin=FILE, a folder in TENON_PLUGIN_PATH, or `plugins:` in the model file"},
      {"[{embedding: @7}]", "embedding: arguments must be a map, got 7"},
      {"[{@embedding: {weight: e, rows: 9}}]",
       "embedding: 'columns' is missing; accepted: an integer within 2^31"},
      {"[{embedding: {weight: e, rows: 9, columns: @8.5}}]",
       "embedding.columns: must be an integer within 2^31, got 8.5"},
      {"[{embedding: {weight: @e, rows: 9, columns: 0}}]",
       "embedding.weight: cannot have 0 rows or columns"},
      {"[{embedding: {weight: @7, rows: 9, columns: 8}}]", "embedding.weight: must be text, got 7"},
      {"[{embedding: {weight: e, rows: 9, columns: 8, @scale: 2}}]",
       "'embedding' has no argument 'scale'; accepted: rows, columns, weight"},
      {"[{@rms_norm: {weight: n, eps: 0.1}}]",
       "rms_norm: applies to rows, and none are there yet; a graph begins with an embedding"},
      {"[{@residual: []}]",
       "residual: there are no rows to add to; a graph begins with an embedding"},
      {"[" + e + ", {@residual: [{linear: {weight: w, out: 4}}]}]",
       "residual: the branch has 4 columns, the stream 8"},
      {"[" + e + ", {residual: @{}}]", "'residual' must be a list of nodes, got a map"},
      {"[" + e + ", {linear: {weight: @e, out: 7}}]",
       "linear.weight: 'e.weight' is used in two shapes"},
      {"[" + e + ", {@linear: {weight: w, out: 5, rows: 12, every: 6}}]",
       "linear: 5 outputs are not an equal part of each 6 of 12 rows"},
      {"[" + e + ", {linear: {weight: w, out: 4, rows: 12, first: @9}}]",
       "linear.first: 4 rows from row 9 on are not within 12"},
      {"[" + e + ", {rope: {heads: 2, theta: 10, fraction: @1.5}}]",
       "rope.fraction: must be from 0 to 1"},
      {"[{position_embedding: {weight: p, rows: 2, columns: 8, offset: @2}}]",
       "position_embedding.offset: leaves no position in 2 rows, got 2"},
      {"[" + e + ", {rms_norm: {weight: n, eps: 0.1, heads: @3}}]",
       "rms_norm.heads: 3 heads do not divide 8 columns"},
      {"[" + e + ", {activation: {kind: @softmax}}]",
       "activation.kind: unknown activation 'softmax'; accepted: silu, gelu, gelu_tanh, "
       "quick_gelu, relu, sigmoid"},
      {"[" + e + ", {rope: {heads: @3, theta: 10}}]",
       "rope.heads: 3 heads do not divide 8 columns"},
      {"[" + e + ", {@rope: {heads: 2, theta: 10, scaling: {type: ntk}}}]",
       "'llm.rope_frequencies' op unknown scaling type 'ntk'; accepted: linear, divided, llama3, "
       "yarn, "
       "longrope, "
       "dynamic"},
      {"[" + e + ", {@rope: {heads: 2, theta: 10, scaling: {type: yarn, factor: 2}}}]",
       "'llm.rope_frequencies' op scaling yarn needs a positive number 'original'"},
      {"[" + e + ", {scale: {by: @x}}]", "scale.by: must be a number, got 'x'"},
      {"[" + e + ", {softcap: {at: @0}}]", "softcap.at: must be positive"},
      {"[" + e + ", {attention: {heads: 2, window: @0, query: [], key: [], value: []}}]",
       "attention.window: must be positive, got 0"},
      {"[" + e + ", {rope: {heads: 2, theta: 10, scaling: @7}}]",
       "rope.scaling: must be a map, got 7"},
      {"[" + e + ", {@attention: {heads: 2, query: [], key: []}}]",
       "attention: 'value' is missing; accepted: a list of nodes"},
      {"[" + e + ", {repeat: @{count: 2, body: []}}]", "repeat: 'as' is missing"},
      {"[" + e + ", {repeat: {count: @-1, as: i, body: []}}]",
       "repeat.count: must be an integer from 0 to 1048576, got -1"},
      {"[" + e + ", {repeat: {count: 2, as: @heads, body: []}}]",
       "repeat.as: must be a name that is not in use, got 'heads'"},
      {"[" + e + ", {repeat: {count: 1000000, as: i, body: [@{sequence: []}, {sequence: []}]}}]",
       "the graph has more than 1048576 nodes"},
      {"[" + e + ", {mark: h, when: @3}]", "'when' must be true or false, got 3"},
      {"[" + e + ", {encoder: @[" + e + "]}]", "encoder: must be the first node of the graph"},
      {"[{encoder: @[]}]", "encoder: has no nodes"},
      {"@[{encoder: [" + e + "]}, " + e + "]",
       "no attention reads the encoder's memory; accepted: attention: {over: memory, ...}"},
      {"[" + e + ", {attention: {heads: 2, over: @memory, query: [], key: [], value: []}}]",
       "attention.over: there is no memory: the graph has no 'encoder' before this node"},
      {"[" + e + ", {attention: {heads: 2, over: @past, query: [], key: [], value: []}}]",
       "attention.over: must be stream or memory, got 'past'"},
      {"[" + e +
           ", {attention: {heads: 2, causal: false, window: @3, query: [], key: [], value: []}}]",
       "attention.window: needs causal attention"},
      {"[{position_embedding: {sinusoidal: @sines, rows: 2, columns: 8}}]",
       "position_embedding.sinusoidal: unknown order 'sines'; accepted: interleaved, halves"},
      {"[{mark: @h}]", "mark: needs a name, and rows that get it; got 'h'"},
  };
  for (const auto &[graph, error] : cases) {
    Marked marked(architecture(graph));
    EXPECT_EQ(folder.relative(loadError(write(marked.text))),
              "a.yaml:" + marked.place + ": error: " + error)
        << graph;
  }
}

// The number that is wrong stands in the model file, so that is where the message points.
TEST_F(GraphTest, PointsAtTheNumber) {
  folder.write("a.yaml", "parameters: {vocab: integer, context: integer, heads: integer}\n"
                         "graph: [" +
                             std::string(embed) + ", {rope: {heads: $heads, theta: 10}}]\n");
  EXPECT_EQ(folder.relative(loadError(folder.write(
                "m.yaml",
                "model: m\narchitecture: a.yaml\nconfig: {vocab: 100, context: 8, heads: 3}\n"))),
            "m.yaml:3:41: error: rope.heads: 3 heads do not divide 8 columns");
}

TEST_F(GraphTest, RepeatsAndChooses) {
  std::string text = textOf(
      "[" + std::string(embed) +
      ", {repeat: {count: 3, as: i, body: [{linear: {weight: a.$i, out: 8}, when: $(i != 1)}, "
      "{linear: {weight: b.$i, out: 8}, when: $(i == 1)}]}}]");
  for (const char *there : {"\"a.0.weight\"", "\"b.1.weight\"", "\"a.2.weight\""})
    EXPECT_NE(text.find(there), std::string::npos) << text;
  for (const char *absent : {"\"b.0.weight\"", "\"a.1.weight\"", "\"b.2.weight\""})
    EXPECT_EQ(text.find(absent), std::string::npos) << text;
}

TEST_F(GraphTest, NumbersMarks) {
  const std::string graph =
      "[" + std::string(embed) +
      ", {mark: hidden}, {repeat: {count: 2, as: i, body: [{activation: {kind: silu}}, "
      "{mark: hidden}]}}, {mark: last}]";
  std::string text = textOf(graph, /*marks=*/true);
  for (const char *name :
       {"\"logits\"", "\"hidden.0\"", "\"hidden.1\"", "\"hidden.2\"", "\"last\""})
    EXPECT_NE(text.find(name), std::string::npos) << text;
  EXPECT_EQ(textOf(graph).find("hidden"), std::string::npos);
}

TEST_F(GraphTest, ReadsATiedWeightOnce) {
  std::string text = textOf("[" + std::string(embed) + ", {linear: {weight: e, out: $vocab}}]");
  EXPECT_EQ(text.find("llm.weight \""), text.rfind("llm.weight \"")) << text;
}

TEST_F(GraphTest, NamesLayerAndLine) {
  llvm::Expected<Model> model = loadModel(
      context,
      write(architecture("[" + std::string(embed) +
                         ", {repeat: {count: 2, as: layer, body: [{activation: {kind: silu}}]}}]")),
      planOptions());
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  std::vector<std::string> locations;
  model->module->walk([&](mlir::Operation *op) {
    std::string text;
    llvm::raw_string_ostream(text) << op->getLoc();
    if (op->getName().getStringRef() == "llm.activation")
      locations.push_back(folder.relative(text));
  });
  EXPECT_EQ(locations, (std::vector<std::string>{"loc(\"layer 0\"(\"a.yaml\":3:100))",
                                                 "loc(\"layer 1\"(\"a.yaml\":3:100))"}));
}

} // namespace
