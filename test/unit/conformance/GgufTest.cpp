// Checkpoints in GGUF: the small models of the oracle with the names, keys and layouts that
// llama.cpp gives them, against the same golden logits.
#include "Support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

using namespace conformance;

namespace {

// A GGUF file of f32 tensors.
class Gguf {
public:
  void add(const std::string &key, uint32_t value) { addKey(key, 4, number(value)); }
  void add(const std::string &key, float value) { addKey(key, 6, number(value)); }
  void add(const std::string &key, const std::string &value) { addKey(key, 8, text(value)); }
  void add(const std::string &key, const char *value) { add(key, std::string(value)); }
  void add(const std::string &key, bool value) { addKey(key, 7, number(value)); }

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

// A model on its way from one form to the other.
struct Conversion {
  const nlohmann::json &config;
  const std::string architecture;
  Tensors tensors; // under their old names
  Gguf gguf;

  template <typename T> void add(const std::string &key, T value) {
    gguf.add(architecture + "." + key, value);
  }
  int64_t number(const char *key) const { return config.at(key).get<int64_t>(); }
  // Tensors whose name ends so.
  std::vector<Tensor *> all(const std::string &end) {
    std::vector<Tensor *> found;
    for (auto &[name, tensor] : tensors)
      if (name.size() >= end.size() && name.substr(name.size() - end.size()) == end)
        found.push_back(&tensor);
    return found;
  }
};

// How a model becomes GGUF.
using Names = std::map<std::string, std::string>;
struct Row {
  const char *model, *architecture;
  // Without ".weight" and ".bias"; those of a layer are behind `layers` and its number.
  const char *layers;
  Names names;
  Names keys; // of config.json, dots in nested ones: of GGUF
  void (*change)(Conversion &model) = [](Conversion &) {};
  const char *variant = "";
};

void PrintTo(const Row &row, std::ostream *os) { *os << row.model << row.variant; }

std::string nameOf(const Row &row, const std::string &name) {
  const size_t dot = name.rfind('.');
  std::string stem = name.substr(0, dot), block;
  const std::string layers = row.layers;
  if (stem.rfind(layers, 0) == 0) {
    const size_t end = stem.find('.', layers.size());
    block = "blk." + stem.substr(layers.size(), end - layers.size()) + ".";
    stem = stem.substr(end + 1);
  }
  const auto found = row.names.find(stem);
  EXPECT_NE(found, row.names.end()) << name;
  return block + (found == row.names.end() ? "" : found->second) + name.substr(dot);
}

//===------------------------------------------------------------------------------------------===//
// What becomes of tensors
//===------------------------------------------------------------------------------------------===//

void scaleRows(Tensor &tensor, int64_t first, double factor) {
  const int64_t columns = int64_t(tensor.values.size()) / tensor.shape[0];
  for (size_t i = first * columns; i < tensor.values.size(); ++i)
    tensor.values[i] *= factor;
}

void transpose(Tensor &tensor) {
  const int64_t rows = tensor.shape[0], columns = tensor.shape[1];
  std::vector<double> turned;
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i)
      turned.push_back(tensor.values[i * columns + j]);
  tensor = {{columns, rows}, turned};
}

// The matrix of rows, or the vector of elements, that `source(row)` names.
template <typename F> void pickRows(Tensor &tensor, int64_t rows, F source) {
  const int64_t columns = int64_t(tensor.values.size()) / tensor.shape[0];
  std::vector<double> picked;
  for (int64_t row = 0; row < rows; ++row) {
    const auto begin = tensor.values.begin() + source(row) * columns;
    picked.insert(picked.end(), begin, begin + columns);
  }
  tensor.values = picked;
  tensor.shape[0] = rows;
}

// Groups of (queries, key, value) rows become all queries, all keys, all values.
void ungroup(Tensor &tensor, int64_t queries, int64_t keys) {
  const int64_t size = queries + 2 * keys, groups = tensor.shape[0] / size;
  pickRows(tensor, tensor.shape[0], [&](int64_t row) {
    int64_t first = 0, count = queries;
    for (; row >= groups * count; first += count, count = keys)
      row -= groups * count;
    return row / count * size + first + row % count;
  });
}

// Each head's half-split rotary order becomes interleaved.
void interleave(Tensor &tensor, int64_t heads) {
  const int64_t width = tensor.shape[0] / heads;
  pickRows(tensor, tensor.shape[0], [&](int64_t row) {
    const int64_t i = row % width;
    return row - i + i / 2 + i % 2 * (width / 2);
  });
}

void interleaveHeads(Conversion &model) {
  for (const char *end : {"q_proj.weight", "q_proj.bias"})
    for (Tensor *tensor : model.all(end))
      interleave(*tensor, model.number("num_attention_heads"));
  for (const char *end : {"k_proj.weight", "k_proj.bias"})
    for (Tensor *tensor : model.all(end))
      interleave(*tensor, model.number("num_key_value_heads"));
}

void addOneToNorms(Conversion &model) {
  for (Tensor *tensor : model.all("norm.weight"))
    for (double &value : tensor->values)
      value += 1;
}

// x.experts.0.y, x.experts.1.y, ... become the stack x.experts.y.
void stackExperts(Tensors &tensors) {
  Tensors stacked;
  for (const auto &[name, tensor] : tensors) {
    const std::string middle = ".experts.";
    const size_t at = name.find(middle);
    if (at == std::string::npos) {
      stacked[name] = tensor;
      continue;
    }
    const size_t dot = name.find('.', at + middle.size());
    const size_t expert = std::stoul(name.substr(at + middle.size(), dot));
    Tensor &stack = stacked[name.substr(0, at + middle.size() - 1) + name.substr(dot)];
    const size_t size = tensor.values.size();
    stack.values.resize(std::max(stack.values.size(), (expert + 1) * size));
    std::copy(tensor.values.begin(), tensor.values.end(), stack.values.begin() + expert * size);
    stack.shape = {int64_t(stack.values.size() / size), tensor.shape[0], tensor.shape[1]};
  }
  tensors = stacked;
}

// GGUF doesn't say what scores are divided by: the root of a head's width. `end` is what makes
// queries longer.
void divideByRootOfWidth(Conversion &model, const char *end) {
  for (Tensor *tensor : model.all(end))
    scaleRows(*tensor, 0,
              std::sqrt(double(model.number("head_dim")) /
                        double(model.number("query_pre_attn_scalar"))));
}

// What llama3 scaling divides each pair's frequency by.
void addDivisors(Conversion &model) {
  const nlohmann::json &scaling = model.config["rope_scaling"];
  const double factor = scaling["factor"], low = scaling["low_freq_factor"],
               high = scaling["high_freq_factor"],
               original = scaling["original_max_position_embeddings"];
  const int64_t width = model.number("head_dim");
  Tensor divisors{{width / 2}, {}};
  for (int64_t i = 0; i < width / 2; ++i) {
    const double length = 2 * M_PI * std::pow(double(model.config["rope_theta"]), 2.0 * i / width);
    const double smooth = (original / length - low) / (high - low);
    divisors.values.push_back(length < original / high  ? 1
                              : length > original / low ? factor
                                                        : 1 / ((1 - smooth) / factor + smooth));
  }
  model.tensors["rope_freqs.weight"] = divisors;
}

//===------------------------------------------------------------------------------------------===//
// Latent attention
//===------------------------------------------------------------------------------------------===//

// Keys that both forms of the file have.
void describeLatent(Conversion &model) {
  const nlohmann::json &config = model.config;
  const bool sigmoid = !config.contains("topk_method"); // transformers has one kind of version 3
  model.add("expert_gating_func", uint32_t(sigmoid ? 2 : 1));
  model.add("expert_weights_norm", config["norm_topk_prob"].get<bool>());
  const nlohmann::json &scaling = config["rope_scaling"];
  if (scaling.is_null())
    return;
  const double all = scaling["mscale_all_dim"], logarithm = std::log(double(scaling["factor"]));
  model.add("rope.scaling.yarn_log_multiplier", float(0.1 * all));
  // Rotated parts keep their length in GGUF; of a key's what they lack is the square.
  const double length =
      (0.1 * double(scaling["mscale"]) * logarithm + 1) / (0.1 * all * logarithm + 1);
  for (Tensor *tensor : model.all("kv_a_proj_with_mqa.weight"))
    scaleRows(*tensor, model.number("kv_lora_rank"), length * length);
}

// Older files keep what makes keys and values as it was.
void keepLatentWhole(Conversion &model) {
  describeLatent(model);
  model.add("attention.head_count_kv", uint32_t(model.number("num_attention_heads")));
  model.add("attention.key_length",
            uint32_t(model.number("qk_nope_head_dim") + model.number("qk_rope_head_dim")));
  model.add("attention.value_length", uint32_t(model.number("v_head_dim")));
}

// Newer ones have two stacks of a matrix for each head, that of keys turned.
void splitLatent(Conversion &model) {
  describeLatent(model);
  const int64_t heads = model.number("num_attention_heads"), rank = model.number("kv_lora_rank"),
                plain = model.number("qk_nope_head_dim"),
                rotated = model.number("qk_rope_head_dim"), width = model.number("v_head_dim");
  model.add("attention.head_count_kv", uint32_t(1));
  model.add("attention.key_length", uint32_t(rank + rotated));
  model.add("attention.value_length", uint32_t(rank));
  model.add("attention.key_length_mla", uint32_t(plain + rotated));
  model.add("attention.value_length_mla", uint32_t(width));
  Tensors tensors;
  for (const auto &[name, tensor] : model.tensors) {
    const std::string whole = "kv_b_proj.weight";
    const size_t at = name.find(whole);
    if (at == std::string::npos) {
      tensors[name] = tensor;
      continue;
    }
    Tensor &keys = tensors[name.substr(0, at) + "k_b_proj.weight"] = {{heads, rank, plain}, {}};
    Tensor &values = tensors[name.substr(0, at) + "v_b_proj.weight"] = {{heads, width, rank}, {}};
    for (int64_t head = 0; head < heads; ++head) {
      Tensor part = tensor;
      const int64_t first = head * (plain + width);
      pickRows(part, plain, [&](int64_t row) { return first + row; });
      transpose(part);
      keys.values.insert(keys.values.end(), part.values.begin(), part.values.end());
      part = tensor;
      pickRows(part, width, [&](int64_t row) { return first + plain + row; });
      values.values.insert(values.values.end(), part.values.begin(), part.values.end());
    }
  }
  model.tensors = tensors;
}

//===------------------------------------------------------------------------------------------===//
// The models
//===------------------------------------------------------------------------------------------===//

Names operator+(Names names, const Names &more) {
  for (const auto &[from, to] : more)
    names[from] = to;
  return names;
}

const Names keys = {{"num_hidden_layers", "block_count"},
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
const Names scalingKeys = {
    {"rope_scaling.rope_type", "rope.scaling.type"},
    {"rope_scaling.factor", "rope.scaling.factor"},
    {"rope_scaling.beta_fast", "rope.scaling.yarn_beta_fast"},
    {"rope_scaling.beta_slow", "rope.scaling.yarn_beta_slow"},
    {"rope_scaling.original_max_position_embeddings", "rope.scaling.original_context_length"}};
const Names expertKeys = {{"num_experts", "expert_count"},
                          {"num_local_experts", "expert_count"},
                          {"num_experts_per_tok", "expert_used_count"},
                          {"moe_intermediate_size", "expert_feed_forward_length"}};
const Names latentKeys = {{"num_hidden_layers", "block_count"},
                          {"hidden_size", "embedding_length"},
                          {"intermediate_size", "feed_forward_length"},
                          {"num_attention_heads", "attention.head_count"},
                          {"max_position_embeddings", "context_length"},
                          {"rope_theta", "rope.freq_base"},
                          {"rms_norm_eps", "attention.layer_norm_rms_epsilon"},
                          {"q_lora_rank", "attention.q_lora_rank"},
                          {"kv_lora_rank", "attention.kv_lora_rank"},
                          {"qk_rope_head_dim", "rope.dimension_count"},
                          {"first_k_dense_replace", "leading_dense_block_count"},
                          {"n_routed_experts", "expert_count"},
                          {"n_shared_experts", "expert_shared_count"},
                          {"n_group", "expert_group_count"},
                          {"topk_group", "expert_group_used_count"},
                          {"routed_scaling_factor", "expert_weights_scale"}};
// Of BLOOM, GPT-2 and MPT.
const Names oldKeys = {{"n_layer", "block_count"},
                       {"n_layers", "block_count"},
                       {"hidden_size", "embedding_length"},
                       {"n_embd", "embedding_length"},
                       {"d_model", "embedding_length"},
                       {"n_head", "attention.head_count"},
                       {"n_heads", "attention.head_count"},
                       {"n_positions", "context_length"},
                       {"max_seq_len", "context_length"},
                       {"layer_norm_epsilon", "attention.layer_norm_epsilon"},
                       {"attn_config.alibi_bias_max", "attention.max_alibi_bias"}};
const Names falconKeys = {{"num_hidden_layers", "block_count"},
                          {"hidden_size", "embedding_length"},
                          {"ffn_hidden_size", "feed_forward_length"},
                          {"num_attention_heads", "attention.head_count"},
                          {"max_position_embeddings", "context_length"},
                          {"layer_norm_epsilon", "attention.layer_norm_epsilon"}};

const Names attention = {{"model.embed_tokens", "token_embd"},
                         {"input_layernorm", "attn_norm"},
                         {"self_attn.q_proj", "attn_q"},
                         {"self_attn.k_proj", "attn_k"},
                         {"self_attn.v_proj", "attn_v"},
                         {"self_attn.o_proj", "attn_output"},
                         {"post_attention_layernorm", "ffn_norm"},
                         {"model.norm", "output_norm"},
                         {"lm_head", "output"}};
const Names llama = attention + Names{{"mlp.gate_proj", "ffn_gate"},
                                      {"mlp.up_proj", "ffn_up"},
                                      {"mlp.down_proj", "ffn_down"},
                                      {"rope_freqs", "rope_freqs"}};
const Names headNorms = {{"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"}};
const Names outerNorms = {{"post_attention_layernorm", "post_attention_norm"},
                          {"pre_feedforward_layernorm", "ffn_norm"},
                          {"post_feedforward_layernorm", "post_ffw_norm"}};
const Names phi3 = attention + Names{{"self_attn.qkv_proj", "attn_qkv"},
                                     {"mlp.gate_up_proj", "ffn_up"},
                                     {"mlp.down_proj", "ffn_down"},
                                     {"rope_factors_short", "rope_factors_short"},
                                     {"rope_factors_long", "rope_factors_long"}};
const Names starcoder = attention + Names{{"mlp.c_fc", "ffn_up"}, {"mlp.c_proj", "ffn_down"}};
const Names mixtral = attention + Names{{"block_sparse_moe.gate", "ffn_gate_inp"},
                                        {"block_sparse_moe.experts.w1", "ffn_gate_exps"},
                                        {"block_sparse_moe.experts.w2", "ffn_down_exps"},
                                        {"block_sparse_moe.experts.w3", "ffn_up_exps"}};
const Names experts = {{"mlp.gate", "ffn_gate_inp"},
                       {"mlp.experts.gate_proj", "ffn_gate_exps"},
                       {"mlp.experts.up_proj", "ffn_up_exps"},
                       {"mlp.experts.down_proj", "ffn_down_exps"},
                       {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
                       {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
                       {"mlp.shared_experts.down_proj", "ffn_down_shexp"}};
const Names latent = llama + experts +
                     Names{{"self_attn.q_a_proj", "attn_q_a"},
                           {"self_attn.q_a_layernorm", "attn_q_a_norm"},
                           {"self_attn.q_b_proj", "attn_q_b"},
                           {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
                           {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
                           {"self_attn.kv_b_proj", "attn_kv_b"},
                           {"self_attn.k_b_proj", "attn_k_b"},
                           {"self_attn.v_b_proj", "attn_v_b"},
                           {"mlp.gate.e_score_correction", "exp_probs_b"}};
const Names gpt2 = {{"transformer.wte", "token_embd"},
                    {"transformer.wpe", "position_embd"},
                    {"ln_1", "attn_norm"},
                    {"attn.c_attn", "attn_qkv"},
                    {"attn.c_proj", "attn_output"},
                    {"ln_2", "ffn_norm"},
                    {"mlp.c_fc", "ffn_up"},
                    {"mlp.c_proj", "ffn_down"},
                    {"transformer.ln_f", "output_norm"}};
const Names mpt = {{"transformer.wte", "token_embd"},
                   {"norm_1", "attn_norm"},
                   {"attn.Wqkv", "attn_qkv"},
                   {"attn.out_proj", "attn_output"},
                   {"norm_2", "ffn_norm"},
                   {"ffn.up_proj", "ffn_up"},
                   {"ffn.down_proj", "ffn_down"},
                   {"transformer.norm_f", "output_norm"}};
const Names bloom = {{"transformer.word_embeddings", "token_embd"},
                     {"transformer.word_embeddings_layernorm", "token_embd_norm"},
                     {"input_layernorm", "attn_norm"},
                     {"self_attention.query_key_value", "attn_qkv"},
                     {"self_attention.dense", "attn_output"},
                     {"post_attention_layernorm", "ffn_norm"},
                     {"mlp.dense_h_to_4h", "ffn_up"},
                     {"mlp.dense_4h_to_h", "ffn_down"},
                     {"transformer.ln_f", "output_norm"}};

const char *const modelLayers = "model.layers.", *const transformerLayers = "transformer.h.";

const Row rows[] = {
    {"llama", "llama", modelLayers, llama, keys, interleaveHeads},
    {"llama-tied", "llama", modelLayers, llama, keys, interleaveHeads},
    {"llama-bias", "llama", modelLayers, llama, keys, interleaveHeads},
    {"llama-headdim", "llama", modelLayers, llama, keys, interleaveHeads},
    {"llama-linear", "llama", modelLayers, llama, keys + scalingKeys, interleaveHeads},
    {"llama-yarn", "llama", modelLayers, llama, keys + scalingKeys, interleaveHeads},
    {"llama3-rope-scaling", "llama", modelLayers, llama, keys,
     [](Conversion &model) {
       interleaveHeads(model);
       addDivisors(model);
     }},
    {"mistral", "llama", modelLayers, llama, keys, interleaveHeads},
    {"mistral-nowindow", "llama", modelLayers, llama, keys, interleaveHeads},
    {"mixtral", "llama", modelLayers, mixtral, keys + expertKeys, interleaveHeads},
    {"qwen2", "qwen2", modelLayers, llama, keys},
    {"qwen2-tied", "qwen2", modelLayers, llama, keys},
    {"qwen3", "qwen3", modelLayers, llama + headNorms, keys},
    {"qwen3_moe", "qwen3moe", modelLayers, attention + headNorms + experts, keys + expertKeys},
    {"olmo2", "olmo2", modelLayers, llama + headNorms + outerNorms, keys},
    {"gemma", "gemma", modelLayers, llama, keys, addOneToNorms},
    {"gemma2", "gemma2", modelLayers, llama + outerNorms,
     keys + Names{{"attn_logit_softcapping", "attn_logit_softcapping"},
                  {"final_logit_softcapping", "final_logit_softcapping"}},
     [](Conversion &model) {
       addOneToNorms(model);
       divideByRootOfWidth(model, "q_proj.weight");
     }},
    {"gemma3", "gemma3", modelLayers, llama + headNorms + outerNorms,
     keys + scalingKeys + Names{{"rope_local_base_freq", "rope.freq_base_swa"}},
     [](Conversion &model) {
       addOneToNorms(model);
       divideByRootOfWidth(model, "q_norm.weight");
       model.add("attention.sliding_window_pattern", uint32_t(3));
     }},
    {"phi3", "phi3", modelLayers, phi3, keys,
     [](Conversion &model) { model.add("rope.dimension_count", uint32_t(4)); }},
    {"phi3-longrope", "phi3", modelLayers, phi3,
     keys + Names{{"original_max_position_embeddings", "rope.scaling.original_context_length"}},
     [](Conversion &model) {
       for (std::string length : {"short", "long"}) {
         auto values = model.config["rope_scaling"][length + "_factor"].get<std::vector<double>>();
         model.tensors["rope_factors_" + length + ".weight"] = {{int64_t(values.size())}, values};
       }
       const double original = double(model.number("original_max_position_embeddings"));
       const double stretch = double(model.number("max_position_embeddings")) / original;
       model.add("rope.scaling.attn_factor",
                 float(std::sqrt(1 + std::log(stretch) / std::log(original))));
     }},
    {"starcoder2", "starcoder2", modelLayers, starcoder, keys},
    {"deepseek_v2", "deepseek2", modelLayers, latent, latentKeys + expertKeys, keepLatentWhole},
    {"deepseek_v2", "deepseek2", modelLayers, latent, latentKeys + expertKeys, splitLatent,
     "split"},
    {"deepseek_v2-lite", "deepseek2", modelLayers, latent, latentKeys + expertKeys, splitLatent},
    {"deepseek_v3", "deepseek2", modelLayers, latent, latentKeys + expertKeys + scalingKeys,
     keepLatentWhole},
    {"deepseek_v3", "deepseek2", modelLayers, latent, latentKeys + expertKeys + scalingKeys,
     splitLatent, "split"},
    {"gpt2", "gpt2", transformerLayers, gpt2, oldKeys,
     [](Conversion &model) {
       for (const char *end : {"c_attn.weight", "c_proj.weight", "c_fc.weight"})
         for (Tensor *tensor : model.all(end))
           transpose(*tensor);
     }},
    {"mpt", "mpt", "transformer.blocks.", mpt, oldKeys,
     [](Conversion &model) {
       model.add("feed_forward_length", uint32_t(4 * model.number("d_model")));
     }},
    {"bloom", "bloom", transformerLayers, bloom, oldKeys,
     [](Conversion &model) {
       const int64_t width = model.number("hidden_size") / model.number("n_head");
       for (const char *end : {"query_key_value.weight", "query_key_value.bias"})
         for (Tensor *tensor : model.all(end))
           ungroup(*tensor, width, width);
       model.add("context_length", uint32_t(2048));
     }},
    {"falcon", "falcon", transformerLayers, bloom, falconKeys,
     [](Conversion &model) {
       model.add("attention.head_count_kv", uint32_t(1));
       model.add("tensor_data_layout", "jploski");
     }},
    {"falcon-newarch", "falcon", transformerLayers,
     bloom + Names{{"ln_attn", "attn_norm_2"}, {"ln_mlp", "attn_norm"}},
     falconKeys + Names{{"num_kv_heads", "attention.head_count_kv"}},
     [](Conversion &model) {
       for (Tensor *tensor : model.all("query_key_value.weight"))
         ungroup(*tensor, 32, 8); // four heads of 8 share a key head
       model.add("tensor_data_layout", "jploski");
     }},
};

// "rope_scaling.factor" of config.json, or null.
nlohmann::json find(nlohmann::json config, std::string key) {
  for (size_t dot; (dot = key.find('.')) != std::string::npos; key = key.substr(dot + 1)) {
    if (!config.contains(key.substr(0, dot)) || !config[key.substr(0, dot)].is_object())
      return nullptr;
    config = nlohmann::json(config[key.substr(0, dot)]);
  }
  return config.contains(key) ? config[key] : nlohmann::json();
}

std::string write(const Row &row) {
  const std::string folder = folderOf(row.model);
  const nlohmann::json config = readJson(folder + "/config.json");
  Conversion model{config, row.architecture, readTensors(folder + "/model.safetensors"), {}};
  model.gguf.add("general.architecture", row.architecture);
  for (const auto &[from, to] : row.keys) {
    const nlohmann::json value = find(config, from);
    if (value.is_number_integer())
      model.add(to, value.get<uint32_t>());
    else if (value.is_number())
      model.add(to, value.get<float>());
    else if (value.is_string())
      model.add(to, value.get<std::string>());
  }
  stackExperts(model.tensors);
  row.change(model);
  for (const auto &[from, tensor] : model.tensors) {
    std::string name = from;
    // The one whose name says itself that it is a bias.
    if (const size_t at = name.find("_bias"); at != std::string::npos && at + 5 == name.size())
      name[at] = '.';
    model.gguf.addTensor(nameOf(row, name), tensor);
  }
  const std::string file = scratch(std::string(row.model) + row.variant + ".gguf");
  model.gguf.write(file);
  return file;
}

class GgufModels : public testing::TestWithParam<Row> {};

TEST_P(GgufModels, HaveTheGoldenLogits) {
  Tensors golden = goldenOf(GetParam().model);
  const std::string executable = compile(write(GetParam()), {"--precision", "f32"});
  ASSERT_NE(executable, "");
  constexpr double tolerance = 2e-4;
  auto logits = [&](const char *ids) {
    return runLogits(executable, {{golden[ids].integers()}})["logits"].values;
  };
  EXPECT_LE(compare(logits("input_ids"), golden["logits"].values).max, tolerance);
  // Beyond the original context. Longrope has other numbers for texts that are longer than it.
  if (golden.count("long.input_ids")) {
    EXPECT_LE(compare(logits("long.input_ids"), golden["long.logits"].values).max, tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(, GgufModels, testing::ValuesIn(rows),
                         [](const testing::TestParamInfo<Row> &info) {
                           std::string name = info.param.model + std::string(info.param.variant);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace
