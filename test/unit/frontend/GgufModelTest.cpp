// GGUF files as models: small ones made here, and SmolLM2 where it is installed.
#include "Support.h"
#include "llvm/Support/Endian.h"
#include <cstdlib>

using namespace tenon;
using namespace tenon::test;
namespace endian = llvm::support::endian;

namespace {

// Writes version 3 with F32 tensors of zeros.
class GgufWriter {
public:
  void addString(const std::string &key, const std::string &value) {
    addKey(key, 8);
    string(keys, value);
  }
  void addInteger(const std::string &key, uint32_t value) {
    addKey(key, 4);
    number<uint32_t>(keys, value);
  }
  void addFloat(const std::string &key, float value) {
    addKey(key, 6);
    number<float>(keys, value);
  }
  void addIntegers(const std::string &key, const std::vector<uint32_t> &values) {
    addKey(key, 9);
    number<uint32_t>(keys, 4);
    number<uint64_t>(keys, values.size());
    for (uint32_t value : values)
      number<uint32_t>(keys, value);
  }
  // `shape` is outermost first.
  void addTensor(const std::string &name, std::vector<uint64_t> shape) {
    ++tensorCount;
    string(tensors, name);
    number<uint32_t>(tensors, shape.size());
    uint64_t bytes = 4;
    for (auto size = shape.rbegin(); size != shape.rend(); ++size) {
      number<uint64_t>(tensors, *size);
      bytes *= *size;
    }
    number<uint32_t>(tensors, 0);
    number<uint64_t>(tensors, dataBytes);
    dataBytes += llvm::alignTo(bytes, 32);
  }
  std::string finish() const {
    std::string file = "GGUF";
    number<uint32_t>(file, 3);
    number<uint64_t>(file, tensorCount);
    number<uint64_t>(file, keyCount);
    file += keys + tensors;
    file.resize(llvm::alignTo(file.size(), 32));
    return file + std::string(dataBytes, '\0');
  }

private:
  void addKey(const std::string &key, uint32_t type) {
    ++keyCount;
    string(keys, key);
    number<uint32_t>(keys, type);
  }
  template <typename T> static void number(std::string &out, T value) {
    char bytes[sizeof(T)];
    endian::write<T>(bytes, value, llvm::endianness::little);
    out.append(bytes, sizeof(T));
  }
  static void string(std::string &out, const std::string &text) {
    number<uint64_t>(out, text.size());
    out += text;
  }

  std::string keys, tensors;
  uint64_t keyCount = 0, tensorCount = 0, dataBytes = 0;
};

// One layer of width 8, 2 heads, 1 key head, 6 tokens.
GgufWriter smallModel(bool tied, const std::string &architecture = "llama") {
  GgufWriter gguf;
  gguf.addString("general.architecture", architecture);
  gguf.addString("general.name", "anything");
  gguf.addInteger(architecture + ".block_count", 1);
  gguf.addInteger(architecture + ".context_length", 16);
  gguf.addInteger(architecture + ".embedding_length", 8);
  gguf.addInteger(architecture + ".feed_forward_length", 12);
  gguf.addInteger(architecture + ".attention.head_count", 2);
  gguf.addInteger(architecture + ".attention.head_count_kv", 1);
  gguf.addFloat(architecture + ".attention.layer_norm_rms_epsilon", 1e-5f);
  gguf.addTensor("token_embd.weight", {6, 8});
  for (const char *norm : {"output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"})
    gguf.addTensor(norm, {8});
  gguf.addTensor("blk.0.attn_q.weight", {8, 8});
  gguf.addTensor("blk.0.attn_k.weight", {4, 8});
  gguf.addTensor("blk.0.attn_v.weight", {4, 8});
  gguf.addTensor("blk.0.attn_output.weight", {8, 8});
  gguf.addTensor("blk.0.ffn_gate.weight", {12, 8});
  gguf.addTensor("blk.0.ffn_up.weight", {12, 8});
  gguf.addTensor("blk.0.ffn_down.weight", {8, 12});
  if (!tied)
    gguf.addTensor("output.weight", {6, 8});
  return gguf;
}

class GgufModel : public testing::Test {
protected:
  Folder folder;
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  ModelOptions options = planOptions();

  void SetUp() override { options.needWeights = true; }
  std::string load(const GgufWriter &gguf) {
    llvm::Expected<Model> model =
        loadModel(context, folder.write("m.gguf", gguf.finish()), options);
    if (!model)
      return folder.relative(llvm::toString(model.takeError()));
    return print(*model->module);
  }
};

TEST_F(GgufModel, FindsTensorsUnderTheirNames) {
  std::string text = load(smallModel(/*tied=*/false));
  for (const char *line :
       {"llm.vocab = 6 : i64", "\"token_embd.weight\" : <6x8xf32>", "\"output.weight\" : <6x8xf32>",
        "eps 1.000000e-05", "llm.weight_deinterleave %4 heads 2 : <8x8xf32>", "heads 1 : <4x8xf32>",
        "theta 1.000000e+04"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

// Its rows of Q and K are as the original checkpoint has them.
TEST_F(GgufModel, Qwen3IsNotInterleaved) {
  GgufWriter gguf = smallModel(/*tied=*/true, "qwen3");
  gguf.addInteger("qwen3.attention.key_length", 4);
  gguf.addTensor("blk.0.attn_q_norm.weight", {4});
  gguf.addTensor("blk.0.attn_k_norm.weight", {4});
  std::string text = load(gguf);
  EXPECT_EQ(text.find("llm.weight_deinterleave"), std::string::npos) << text;
  for (const char *line : {"\"blk.0.attn_q_norm.weight\" : <4xf32>", "heads 2 eps 1.000000e-05",
                           "\"blk.0.attn_k_norm.weight\" : <4xf32>"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

TEST_F(GgufModel, IsTiedWithoutOutput) {
  EXPECT_EQ(load(smallModel(/*tied=*/true)).find("\"output.weight\""), std::string::npos);
}

TEST_F(GgufModel, RefusesInOneLine) {
  GgufWriter gguf = smallModel(true);
  gguf.addFloat("llama.logit_scale", 2);
  EXPECT_EQ(load(gguf), "m.gguf:llama.logit_scale: error: unknown key 'logit_scale'; "
                        "--allow-unused-config ignores such keys");
  gguf = smallModel(true);
  gguf.addInteger("llama.vocab_size", 7);
  EXPECT_EQ(load(gguf), "m.gguf:llama.vocab_size: error: 'vocab' is 7, but the tensors say 6");
  gguf = smallModel(true);
  gguf.addInteger("llama.attention.key_length", 8);
  gguf.addInteger("llama.attention.value_length", 4);
  EXPECT_EQ(load(gguf), "m.gguf:llama.attention.value_length: error: 'attention.value_length' is "
                        "4, but 'attention.key_length' says 8");
  gguf = smallModel(true);
  gguf.addString("llama.rope.scaling.type", "longrope");
  EXPECT_EQ(load(gguf), "m.gguf:llama.rope.scaling.type: error: 'rope.scaling.type' is longrope; "
                        "accepted: none, linear, yarn");
  gguf = smallModel(true);
  gguf.addInteger("llama.expert_count", 8);
  EXPECT_EQ(load(gguf),
            "m.gguf: error: 'experts_used' is missing; accepted: an integer from 1 to 16777216");
  gguf = smallModel(true);
  gguf.addIntegers("llama.rope.freq_base", {1, 2});
  EXPECT_EQ(load(gguf), "m.gguf:llama.rope.freq_base: error: 'rope.theta' must be a number from "
                        "1.0, got a list");
  gguf = smallModel(true);
  gguf.addTensor("rope_freqs.weight", {2, 2});
  EXPECT_EQ(load(gguf), "m.gguf: error: tensor 'rope_freqs.weight' is not a list of up to 4096 "
                        "numbers");
  gguf = smallModel(true);
  gguf.addTensor("rope_freqs.weight", {2}); // zeros
  EXPECT_NE(load(gguf).find("error: 'llm.rope_frequencies' op scaling divided needs a list 'by' of "
                            "2 positive numbers, one for each pair"),
            std::string::npos)
      << load(gguf);
  gguf = smallModel(true);
  gguf.addTensor("rope_factors_long.weight", {2});
  EXPECT_EQ(load(gguf),
            "m.gguf: error: tensor 'rope_factors_long.weight' is not read by architecture 'llama'");

  gguf = GgufWriter();
  EXPECT_EQ(load(gguf), "m.gguf: error: 'general.architecture' is missing");
  gguf.addString("general.architecture", "mamba");
  EXPECT_EQ(load(gguf).find("m.gguf:general.architecture: error: no architecture for 'mamba'; "
                            "accepted: bloom, "),
            0u);
  gguf = GgufWriter();
  gguf.addString("general.architecture", "llama");
  EXPECT_EQ(load(gguf), "m.gguf: error: matrix 'token_embd.weight' is missing");
  gguf.addTensor("token_embd.weight", {6, 8});
  EXPECT_EQ(load(gguf),
            "m.gguf: error: 'hidden' is missing; accepted: an integer from 1 to 1048576");
}

TEST_F(GgufModel, ReadsEndTokens) {
  GgufWriter gguf = smallModel(true);
  gguf.addInteger("tokenizer.ggml.eos_token_id", 2);
  gguf.addInteger("tokenizer.ggml.eot_token_id", 5);
  llvm::Expected<Model> model = loadModel(context, folder.write("m.gguf", gguf.finish()), options);
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(model->eos, (std::vector<int64_t>{2, 5}));
}

// A model file may name a GGUF file; then tensors have the names that they have there.
TEST_F(GgufModel, ServesAModelFile) {
  folder.write("w.gguf", smallModel(true).finish());
  std::string path = folder.write(
      "m.yaml", "model: m\narchitecture: llama\nconfig: {hidden: 8, layers: 1, heads: 2, kv_heads: "
                "1, ffn: 12, vocab: 6, context: 16, norm_eps: 1.0e-5, tie_embeddings: true}\n"
                "weights: {file: w.gguf}\n");
  EXPECT_EQ(loadError(path, options), "");
  options.sets = {{"ffn", "14"}};
  EXPECT_EQ(folder.relative(loadError(path, options)),
            "w.gguf: error: tensor 'blk.0.ffn_gate.weight' has shape [12, 8], expected [14, 8]");
}

TEST_F(GgufModel, ChecksTheDigest) {
  folder.write("w.gguf", smallModel(true).finish());
  std::string digest(64, 'a');
  std::string path = folder.write(
      "m.yaml", "model: m\narchitecture: llama\nconfig: {hidden: 8, layers: 1, heads: 2, kv_heads: "
                "1, ffn: 12, vocab: 6, context: 16, norm_eps: 1.0e-5, tie_embeddings: true}\n"
                "weights: {file: w.gguf, sha256: " +
                    digest + "}\n");
  std::string message = folder.relative(loadError(path, options));
  EXPECT_TRUE(llvm::StringRef(message).starts_with("w.gguf: error: sha256 is ")) << message;
  EXPECT_TRUE(llvm::StringRef(message).ends_with("; accepted: " + digest)) << message;
  options.needWeights = false;
  EXPECT_EQ(loadError(path, options), "");
}

TEST_F(GgufModel, LoadsSmolLM2) {
  const char *home = std::getenv("HOME");
  std::string path =
      std::string(home ? home : "") + "/.cache/tenon/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!llvm::sys::fs::exists(path))
    GTEST_SKIP() << path << " is not installed";
  llvm::Expected<Model> direct = loadModel(context, path, options);
  ASSERT_TRUE(bool(direct)) << llvm::toString(direct.takeError());
  EXPECT_EQ(direct->parameters, 134515008);
  EXPECT_EQ(direct->vocab, 49152);
  EXPECT_EQ(direct->context, 8192);
  EXPECT_EQ(direct->eos, std::vector<int64_t>{2});
  EXPECT_FALSE(direct->tokenizer.empty());
  llvm::Expected<Model> named =
      loadModel(context, std::string(TENON_MODELS_DIR) + "/smollm2-135m-instruct.yaml", options);
  ASSERT_TRUE(bool(named)) << llvm::toString(named.takeError());
  // The model file and the file's own metadata tell the same.
  auto body = [](const Model &model) {
    std::string text = print(*model.module);
    return text.substr(text.find('\n'));
  };
  EXPECT_EQ(body(*direct), body(*named));
  EXPECT_EQ(direct->tokenizer, named->tokenizer);
  EXPECT_EQ(named->stop, std::vector<std::string>{"<|im_end|>"});
}

} // namespace
