// Hugging Face directories and GGUF files as models.
#include "Support.h"
#include "frontend/weights/Gguf.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdlib>
#include <cstring>

using namespace tenon;
using namespace tenon::test;
using testing::Test;

namespace {

const std::string oracle = TENON_ORACLE_DIR "/tiny/";

ModelOptions weightsOptions() {
  ModelOptions options = planOptions();
  options.needWeights = true;
  return options;
}

std::string readFile(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

TEST(HuggingFace, LoadsAllTinyModels) {
  const std::pair<const char *, const char *> cases[] = {
      {"llama", "f32"},       {"llama-mha", "f32"},
      {"llama-mqa", "f32"},   {"llama-bias", "f32"},
      {"llama-tied", "f32"},  {"llama-headdim", "f32"},
      {"llama-bf16", "bf16"}, {"llama-fp16-sharded", "f16"},
      {"qwen3", "f32"},       {"qwen2", "f32"},
      {"granite", "f32"},     {"phi3", "f32"},
      {"olmo2", "f32"},       {"gemma", "f32"},
      {"gemma2", "f32"},      {"gemma3", "f32"},
      {"smollm3", "f32"},
  };
  for (auto [name, storage] : cases) {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    ModelOptions options = weightsOptions();
    options.emitHidden = true;
    llvm::Expected<Model> model = loadModel(context, oracle + name, options);
    ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
    EXPECT_EQ(model->name, name);
    EXPECT_EQ(model->architecture, llvm::StringRef(name).split('-').first);
    EXPECT_EQ(model->vocab, 272);
    EXPECT_EQ(model->context, 128);
    EXPECT_EQ(model->eos, std::vector<int64_t>{2});
    ASSERT_TRUE(model->weights);
    std::string text = print(*model->module);
    EXPECT_NE(text.find(std::string("272x64x") + storage), std::string::npos) << text;
    EXPECT_NE(text.find("\"hidden_final\""), std::string::npos);
    const llvm::StringRef tied[] = {"llama-tied", "gemma", "gemma2", "gemma3", "smollm3"};
    EXPECT_EQ(text.find("lm_head") == std::string::npos, llvm::is_contained(tied, name)) << name;
    const llvm::StringRef biased[] = {"llama-bias", "qwen2"};
    EXPECT_EQ(text.find("q_proj.bias") != std::string::npos, llvm::is_contained(biased, name));
  }
}

// transformers 4 and 5 spell rotary parameters differently; the models are the same.
TEST(HuggingFace, ReadsBothSpellings) {
  for (const char *name :
       {"llama", "llama-mqa", "llama-bias", "llama-tied", "llama-headdim", "qwen3", "llama-linear",
        "llama3-rope-scaling", "llama-yarn", "mistral", "mistral-nowindow", "qwen2", "qwen2-tied",
        "smollm3", "granite", "phi3", "olmo2", "gemma", "gemma2", "gemma3",
        // LayerNorm
        "gpt2", "opt", "opt-postln-proj", "gpt_neox", "gpt_neox-seqres", "phi", "gptj", "stablelm",
        // encoders
        "bert", "roberta", "bart", "marian", "t5", "t5-v1_1"}) {
    std::string texts[2];
    for (int i : {0, 1}) {
      Folder folder;
      folder.write("config.json",
                   readFile(oracle + name + (i ? "/config.v5.json" : "/config.json")));
      mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
      llvm::Expected<Model> model = loadModel(context, folder.path(""), planOptions());
      ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
      texts[i] = print(*model->module);
      texts[i].erase(0, texts[i].find('\n')); // the first line has the folder's name
    }
    EXPECT_EQ(texts[0], texts[1]) << name;
  }
}

class ConfigTest : public Test {
protected:
  Folder folder;
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};

  // A small config.json with `more` behind its last key.
  std::string write(const std::string &more) {
    return "{\"model_type\": \"llama\", \"vocab_size\": 10, \"hidden_size\": 16, "
           "\"intermediate_size\": 8,\n"
           "\"num_hidden_layers\": 1, \"num_attention_heads\": 2" +
           more + "}";
  }
  std::string load(const std::string &config, const ModelOptions &options = planOptions()) {
    folder.write("config.json", config);
    llvm::Expected<Model> model = loadModel(context, folder.path(""), options);
    if (!model)
      return folder.relative(llvm::toString(model.takeError()));
    return print(*model->module);
  }
};

TEST_F(ConfigTest, AbsentKeysHaveTheClassDefault) {
  std::string text = load(write(""));
  EXPECT_NE(text.find("llm.context = 2048 : i64"), std::string::npos) << text;
  EXPECT_NE(text.find("eps 9.9999999999999995E-7"), std::string::npos) << text;
  EXPECT_NE(text.find("dim 8 theta 1.000000e+04"), std::string::npos) << text;
  EXPECT_NE(text.find("heads 2 times 1"), std::string::npos) << text;
  EXPECT_NE(text.find("silu"), std::string::npos) << text;
}

TEST_F(ConfigTest, NullIsAbsent) {
  std::string plain = load(write(""));
  EXPECT_EQ(
      load(write(", \"num_key_value_heads\": null, \"head_dim\": null, \"rope_scaling\": null")),
      plain);
  EXPECT_EQ(
      load(write(", \"rope_scaling\": {}, \"rope_parameters\": null, \"eos_token_id\": null")),
      plain);
  EXPECT_EQ(load(write(", \"rope_scaling\": {\"rope_type\": \"default\"}")), plain);
}

TEST_F(ConfigTest, ReadsRopeScaling) {
  EXPECT_NE(load(write(", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}"))
                .find("scaling {factor = 4.000000e+00 : f64, type = \"linear\"}"),
            std::string::npos);
  std::string parameters = "\"factor\": 8.0, \"high_freq_factor\": 4.0, \"low_freq_factor\": 1.0, "
                           "\"original_max_position_embeddings\": 32, \"rope_type\": \"llama3\"}";
  std::string v4 = load(write(", \"rope_theta\": 500000.0, \"rope_scaling\": {" + parameters));
  EXPECT_NE(
      v4.find("theta 5.000000e+05 scaling {factor = 8.000000e+00 : f64, high = 4.000000e+00 : f64, "
              "low = 1.000000e+00 : f64, original = 3.200000e+01 : f64, type = \"llama3\"}"),
      std::string::npos)
      << v4;
  EXPECT_EQ(load(write(", \"rope_parameters\": {\"rope_theta\": 500000.0, " + parameters)), v4);
}

TEST_F(ConfigTest, MapsActivations) {
  EXPECT_NE(load(write(", \"hidden_act\": \"gelu_pytorch_tanh\"")).find("gelu_tanh"),
            std::string::npos);
}

TEST_F(ConfigTest, MistralHasAWindowUnlessItSaysOtherwise) {
  auto mistral = [&](const std::string &more) {
    std::string text = write(", \"num_key_value_heads\": 2" + more);
    return load(text.replace(text.find("llama"), 5, "mistral"));
  };
  EXPECT_NE(mistral("").find("keys tokens window 4096 :"), std::string::npos);
  EXPECT_NE(mistral(", \"sliding_window\": 7").find("window 7 :"), std::string::npos);
  std::string config = write(", \"sliding_window\": null");
  config.replace(config.find("llama"), 5, "mistral");
  config.replace(config.find("\"num_attention_heads\": 2"), 24, "\"num_attention_heads\": 8");
  EXPECT_NE(load(config).find("heads 8 times 1"),
            std::string::npos); // 8 key heads unless it says otherwise
  EXPECT_EQ(load(config).find("window"), std::string::npos);
}

// A window is in force only where `use_sliding_window` says so.
TEST_F(ConfigTest, Qwen3HasNoWindow) {
  auto config = [&](const std::string &more) {
    std::string text = write(", \"num_key_value_heads\": 2" + more);
    return text.replace(text.find("llama"), 5, "qwen3");
  };
  std::string text = load(config(""));
  EXPECT_NE(text.find("heads 2 eps 9.9999999999999995E-7 : tensor<?x256xf32>, <128xbf16>"),
            std::string::npos)
      << text;
  EXPECT_EQ(load(config(", \"use_sliding_window\": false, \"sliding_window\": 4096, "
                        "\"max_window_layers\": 28, \"layer_types\": [\"full_attention\"]")),
            text);
  const std::pair<std::string, std::string> cases[] = {
      {", \"use_sliding_window\": @true", "'use_sliding_window' is true; accepted: false"},
      {", \"layer_types\": @[\"full_attention\", \"sliding_attention\"]",
       "'layer_types' is [full_attention, sliding_attention]; accepted: full_attention"},
  };
  for (const auto &[more, error] : cases) {
    Marked marked(config(more));
    EXPECT_EQ(load(marked.text), "config.json:" + marked.place + ": error: " + error);
  }
}

TEST_F(ConfigTest, RefusesInOneLine) {
  const std::pair<std::string, std::string> cases[] = {
      {", @\"foo_scale\": 2", "unknown key 'foo_scale'; --allow-unused-config ignores such keys"},
      {", @\"rope_scaling\": 7",
       "unknown key 'rope_scaling'; --allow-unused-config ignores such keys"},
      {", \"rope_scaling\": {\"rope_type\": @\"longrope\", \"factor\": 4.0}",
       "'rope_scaling.rope_type' is longrope; accepted: default, linear, llama3, yarn, dynamic"},
      {", \"rope_scaling\": {\"mscale\": 32, \"rope_type\": @\"longrope\"}",
       "'rope_scaling.rope_type' is longrope; accepted: default, linear, llama3, yarn, dynamic"},
      {", \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2, @\"mscale\": 32}",
       "unknown key 'rope_scaling.mscale'; --allow-unused-config ignores such keys"},
      {", \"rope_theta\": 10000, \"rope_parameters\": {\"rope_theta\": @20000}",
       "'rope_parameters.rope_theta' is 20000, but 'rope_theta' says 10000"},
      {", \"sliding_window\": @-1", "'window' must be an integer from 0 to 16777216, got -1"},
      {", \"hidden_act\": @\"tanh\"", "'hidden_act' is tanh; accepted: silu, swish, gelu, "
                                      "gelu_new, gelu_pytorch_tanh, quick_gelu, relu"},
      {", \"architectures\": @[\"LlamaForSequenceClassification\"]",
       "'architectures' is [LlamaForSequenceClassification]; accepted: LlamaForCausalLM, "
       "MistralForCausalLM"},
      {", \"head_dim\": @-8", "'head_dim' must be an integer from 2 to 65536, got -8"},
      {", \"rms_norm_eps\": @NaN", "'norm_eps' must be a number from 0.0 to 1.0, got 'NaN'"},
      {", \"max_position_embeddings\": @1e99",
       "'positions' must be an integer from 1 to 16777216, got 1e+99"},
      {", \"eos_token_id\": @\"</s>\"", "'eos_token_id' must be token ids, got '</s>'"},
      {", @\"hidden_size\": 16", "key 'hidden_size' is already there"},
  };
  for (const auto &[more, error] : cases) {
    Marked marked(write(more));
    EXPECT_EQ(load(marked.text), "config.json:" + marked.place + ": error: " + error) << more;
  }
  EXPECT_EQ(load("{}"), "config.json:1:1: error: 'model_type' is missing");
  EXPECT_EQ(
      load("{\"model_type\": \"mamba\"}")
          .find("config.json:1:16: error: no architecture for model_type 'mamba'; accepted: "),
      0u);
}

TEST_F(ConfigTest, AllowUnusedConfig) {
  ModelOptions options = planOptions();
  options.allowUnusedConfig = true;
  EXPECT_EQ(load(write(", \"foo_scale\": 2"), options), load(write("")));
}

TEST_F(ConfigTest, ReadsEndTokens) {
  auto eos = [&](const std::string &config, const char *generation) {
    folder.write("config.json", write(config));
    folder.write("generation_config.json", generation);
    llvm::Expected<Model> model = loadModel(context, folder.path(""), planOptions());
    EXPECT_TRUE(bool(model));
    return model ? model->eos : std::vector<int64_t>();
  };
  EXPECT_EQ(eos(", \"eos_token_id\": 3", "{}"), (std::vector<int64_t>{3}));
  EXPECT_EQ(eos(", \"eos_token_id\": [3, 4]", "{}"), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(eos(", \"eos_token_id\": 3", "{\"eos_token_id\": [5, 6]}"),
            (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(eos("", "{}"), std::vector<int64_t>());
}

// What `tenon import` writes is a model file of the same model.
TEST(Import, WritesAModelFile) {
  for (const char *name : {"llama", "llama-tied", "llama-headdim", "llama-bias", "qwen3", "smollm3",
                           "granite", "olmo2", "gemma2", "gemma3",
                           // LayerNorm
                           "gpt2", "opt-postln-proj", "gpt_neox", "phi", "gptj", "stablelm"}) {
    Folder folder;
    llvm::Expected<std::string> text = importModel(oracle + name, planOptions());
    ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    llvm::Expected<Model> first = loadModel(context, oracle + name, weightsOptions());
    llvm::Expected<Model> second =
        loadModel(context, folder.write("m.yaml", *text), weightsOptions());
    ASSERT_TRUE(bool(first)) << llvm::toString(first.takeError());
    ASSERT_TRUE(bool(second)) << llvm::toString(second.takeError()) << *text;
    EXPECT_EQ(print(*first->module), print(*second->module)) << *text;
    EXPECT_EQ(first->digest, second->digest);
  }
}

TEST(Import, TellsWhatItIsNot) {
  Folder folder;
  EXPECT_EQ(folder.relative(loadError(folder.path("none"))),
            "none: error: no such file; accepted: a model .yaml, a Hugging Face directory or a "
            ".gguf file");
  EXPECT_EQ(folder.relative(loadError(folder.path(""))),
            "config.json: error: cannot read: No such file or directory");
  EXPECT_EQ(folder.relative(loadError(folder.write("m.safetensors", "x"))),
            "m.safetensors: error: has no configuration; accepted: the directory that holds it and "
            "a config.json");
}

// Checkpoints that don't fit their configuration.
TEST(Weights, MustFit) {
  auto error = [](const char *from, const char *to) {
    Folder folder;
    std::string config = readFile(oracle + "llama/config.json");
    size_t at = config.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    config.replace(at, llvm::StringRef(from).size(), to);
    folder.write("config.json", config);
    ModelOptions options = weightsOptions();
    options.weights = oracle + "llama";
    return loadError(folder.path(""), options);
  };
  std::string shape = error("\"vocab_size\": 272", "\"vocab_size\": 270");
  EXPECT_TRUE(llvm::StringRef(shape).contains(
      "tensor 'model.embed_tokens.weight' has shape [272, 64], expected [270, 64]"))
      << shape;
  std::string missing = error("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
  EXPECT_NE(missing.find(
                "tensor 'model.layers.2.input_layernorm.weight' is missing; expected shape [64]"),
            std::string::npos)
      << missing;
  std::string surplus = error("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1");
  EXPECT_NE(surplus.find("error: tensor 'model.layers.1."), std::string::npos) << surplus;
  EXPECT_NE(surplus.find("(and 8 more) is not read by architecture 'llama'"), std::string::npos)
      << surplus;
  // A tied head may be there once more; nobody minds.
  EXPECT_EQ(error("\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true"), "");
}

// Files that were saved from the model without its head name tensors without "transformer.".
TEST(Weights, MayLackTheBase) {
  Folder folder;
  std::string file = readFile(oracle + "bloom/model.safetensors"), name = "\"transformer.";
  uint64_t length;
  std::memcpy(&length, file.data(), 8);
  std::string header = file.substr(8, length);
  for (size_t at; (at = header.find(name)) != std::string::npos;)
    header.replace(at, name.size(), "\"");
  uint64_t shorter = header.size();
  folder.write("model.safetensors", std::string(reinterpret_cast<char *>(&shorter), 8) + header +
                                        file.substr(8 + length));
  folder.write("config.json", readFile(oracle + "bloom/config.json"));
  EXPECT_EQ(loadError(folder.path(""), weightsOptions()), "");
}

TEST(Weights, AreRandom) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  ModelOptions options = weightsOptions();
  options.weights = "random:7";
  llvm::Expected<Model> model =
      loadModel(context, std::string(TENON_MODELS_DIR) + "/smollm2-135m-instruct.yaml", options);
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  ASSERT_TRUE(model->weights);
  EXPECT_TRUE(model->tokenizer.empty());
  const TensorInfo *tensor = model->weights->find("model.norm.weight");
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor->storage, Storage::BF16);
}

} // namespace
