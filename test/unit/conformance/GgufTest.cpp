// Checkpoints in GGUF: the small models of the oracle with the names, keys and layouts that
// llama.cpp gives them, against the same golden logits.
#include "Support.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>

using namespace conformance;

namespace {

// A GGUF file of f32 tensors.
class Gguf {
public:
  void add(const std::string &key, uint32_t value) { addKey(key, 4, number(value)); }
  void add(const std::string &key, float value) { addKey(key, 6, number(value)); }
  void add(const std::string &key, const std::string &value) { addKey(key, 8, text(value)); }

  void addTensor(const std::string &name, const Tensor &tensor) {
    ++tensorCount;
    tensors += text(name) + number<uint32_t>(tensor.shape.size());
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size)
      tensors += number<uint64_t>(*size);
    tensors += number<uint32_t>(0) + number<uint64_t>(data.size());
    for (double value : tensor.values)
      data += number(static_cast<float>(value));
    data.resize((data.size() + 31) / 32 * 32);
  }

  void write(const std::string &path) const {
    std::string file = "GGUF" + number<uint32_t>(3) + number<uint64_t>(tensorCount) +
                       number<uint64_t>(keyCount) + keys + tensors;
    file.resize((file.size() + 31) / 32 * 32);
    std::ofstream(path, std::ios::binary) << file << data;
  }

private:
  template <typename T> static std::string number(T value) {
    return {reinterpret_cast<const char *>(&value), sizeof value};
  }
  static std::string text(const std::string &value) {
    return number<uint64_t>(value.size()) + value;
  }
  void addKey(const std::string &key, uint32_t type, const std::string &value) {
    ++keyCount;
    keys += text(key) + number(type) + value;
  }

  std::string keys, tensors, data;
  uint64_t keyCount = 0, tensorCount = 0;
};

// How a family becomes GGUF. Names are without ".weight" and ".bias"; those of a layer are behind
// `layers` and its number.
struct Family {
  const char *model, *architecture, *layers;
  std::map<std::string, std::string> names;
  std::map<std::string, std::string> keys; // of config.json: of GGUF
  std::function<void(const std::string &name, Tensor &tensor)> change = [](const std::string &,
                                                                           Tensor &) {};
  std::function<void(Gguf &gguf)> extra = [](Gguf &) {};
};

std::string nameOf(const Family &family, const std::string &name) {
  const size_t dot = name.rfind('.');
  std::string stem = name.substr(0, dot), block;
  const std::string layers = family.layers;
  if (stem.rfind(layers, 0) == 0) {
    const size_t end = stem.find('.', layers.size());
    block = "blk." + stem.substr(layers.size(), end - layers.size()) + ".";
    stem = stem.substr(end + 1);
  }
  const auto found = family.names.find(stem);
  EXPECT_NE(found, family.names.end()) << name;
  return block + (found == family.names.end() ? "" : found->second) + name.substr(dot);
}

void transpose(Tensor &tensor) {
  const int64_t rows = tensor.shape[0], columns = tensor.shape[1];
  std::vector<double> turned;
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i)
      turned.push_back(tensor.values[i * columns + j]);
  tensor = {{columns, rows}, turned};
}

// Groups of (queries, key, value) rows become all queries, all keys, all values.
void ungroup(Tensor &tensor, int64_t queries, int64_t keys) {
  const int64_t group = queries + 2 * keys, rows = tensor.shape[0];
  const int64_t columns = int64_t(tensor.values.size()) / rows;
  std::vector<double> ordered;
  for (auto [first, count] :
       {std::pair{int64_t(0), queries}, {queries, keys}, {queries + keys, keys}})
    for (int64_t begin = first; begin < rows; begin += group)
      ordered.insert(ordered.end(), tensor.values.begin() + begin * columns,
                     tensor.values.begin() + (begin + count) * columns);
  tensor.values = ordered;
}

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

const std::map<std::string, std::string> commonKeys = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"intermediate_size", "feed_forward_length"},
    {"num_attention_heads", "attention.head_count"},
    {"num_key_value_heads", "attention.head_count_kv"},
    {"head_dim", "attention.key_length"},
    {"max_position_embeddings", "context_length"},
    {"rope_theta", "rope.freq_base"},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon"},
    {"norm_epsilon", "attention.layer_norm_epsilon"},
    {"layer_norm_epsilon", "attention.layer_norm_epsilon"},
    {"sliding_window", "attention.sliding_window"}};

const Family families[] = {
    {"gpt2",
     "gpt2",
     "transformer.h.",
     {{"transformer.wte", "token_embd"},
      {"transformer.wpe", "position_embd"},
      {"ln_1", "attn_norm"},
      {"attn.c_attn", "attn_qkv"},
      {"attn.c_proj", "attn_output"},
      {"ln_2", "ffn_norm"},
      {"mlp.c_fc", "ffn_up"},
      {"mlp.c_proj", "ffn_down"},
      {"transformer.ln_f", "output_norm"}},
     {{"n_layer", "block_count"},
      {"n_embd", "embedding_length"},
      {"n_head", "attention.head_count"},
      {"n_positions", "context_length"},
      {"layer_norm_epsilon", "attention.layer_norm_epsilon"}},
     [](const std::string &name, Tensor &tensor) {
       if (endsWith(name, "c_attn.weight") || endsWith(name, "c_proj.weight") ||
           endsWith(name, "c_fc.weight"))
         transpose(tensor);
     }},
    {"gemma",
     "gemma",
     "model.layers.",
     {{"model.embed_tokens", "token_embd"},
      {"input_layernorm", "attn_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"},
      {"post_attention_layernorm", "ffn_norm"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},
      {"model.norm", "output_norm"}},
     commonKeys,
     [](const std::string &name, Tensor &tensor) {
       if (endsWith(name, "norm.weight"))
         for (double &value : tensor.values)
           value += 1;
     }},
    {"starcoder2",
     "starcoder2",
     "model.layers.",
     {{"model.embed_tokens", "token_embd"},
      {"input_layernorm", "attn_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"},
      {"post_attention_layernorm", "ffn_norm"},
      {"mlp.c_fc", "ffn_up"},
      {"mlp.c_proj", "ffn_down"},
      {"model.norm", "output_norm"}},
     commonKeys},
    {"bloom",
     "bloom",
     "transformer.h.",
     {{"transformer.word_embeddings", "token_embd"},
      {"transformer.word_embeddings_layernorm", "token_embd_norm"},
      {"input_layernorm", "attn_norm"},
      {"self_attention.query_key_value", "attn_qkv"},
      {"self_attention.dense", "attn_output"},
      {"post_attention_layernorm", "ffn_norm"},
      {"mlp.dense_h_to_4h", "ffn_up"},
      {"mlp.dense_4h_to_h", "ffn_down"},
      {"transformer.ln_f", "output_norm"}},
     {{"n_layer", "block_count"},
      {"hidden_size", "embedding_length"},
      {"n_head", "attention.head_count"},
      {"layer_norm_epsilon", "attention.layer_norm_epsilon"}},
     [](const std::string &name, Tensor &tensor) {
       if (name.find("query_key_value") != std::string::npos)
         ungroup(tensor, 10, 10); // heads of 10
     },
     [](Gguf &gguf) { gguf.add("bloom.context_length", uint32_t(2048)); }},
    {"falcon-newarch",
     "falcon",
     "transformer.h.",
     {{"transformer.word_embeddings", "token_embd"},
      {"ln_attn", "attn_norm_2"},
      {"ln_mlp", "attn_norm"},
      {"self_attention.query_key_value", "attn_qkv"},
      {"self_attention.dense", "attn_output"},
      {"mlp.dense_h_to_4h", "ffn_up"},
      {"mlp.dense_4h_to_h", "ffn_down"},
      {"transformer.ln_f", "output_norm"}},
     {{"num_hidden_layers", "block_count"},
      {"hidden_size", "embedding_length"},
      {"ffn_hidden_size", "feed_forward_length"},
      {"num_attention_heads", "attention.head_count"},
      {"num_kv_heads", "attention.head_count_kv"},
      {"max_position_embeddings", "context_length"},
      {"layer_norm_epsilon", "attention.layer_norm_epsilon"}},
     [](const std::string &name, Tensor &tensor) {
       if (name.find("query_key_value") != std::string::npos)
         ungroup(tensor, 32, 8); // four heads of 8 share a key head
     },
     [](Gguf &gguf) { gguf.add("falcon.tensor_data_layout", "jploski"); }},
};

class GgufModels : public testing::TestWithParam<Family> {};

TEST_P(GgufModels, HaveTheGoldenLogits) {
  const Family &family = GetParam();
  const std::string folder = oracle + "tiny/" + family.model;
  const nlohmann::json config = readJson(folder + "/config.json");
  Gguf gguf;
  gguf.add("general.architecture", std::string(family.architecture));
  for (const auto &[from, to] : family.keys) {
    const std::string key = family.architecture + ("." + to);
    if (!config.contains(from) || config[from].is_null())
      continue;
    if (config[from].is_number_integer())
      gguf.add(key, config[from].get<uint32_t>());
    else
      gguf.add(key, config[from].get<float>());
  }
  family.extra(gguf);
  for (auto [name, tensor] : readTensors(folder + "/model.safetensors")) {
    family.change(name, tensor);
    gguf.addTensor(nameOf(family, name), tensor);
  }
  const std::string file = scratch(std::string(family.model) + ".gguf");
  gguf.write(file);

  Tensors golden = readTensors(folder + "/golden.safetensors");
  const std::string executable = compile(file, {"--precision", "f32"});
  ASSERT_NE(executable, "");
  EXPECT_LE(compare(runLogits(executable, {{golden["input_ids"].integers()}})["logits"].values,
                    golden["logits"].values)
                .max,
            2e-4);
}

INSTANTIATE_TEST_SUITE_P(, GgufModels, testing::ValuesIn(families),
                         [](const testing::TestParamInfo<Family> &info) {
                           std::string name = info.param.model;
                           return name.substr(0, name.find('-'));
                         });

} // namespace
