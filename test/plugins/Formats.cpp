// A plugin that reads another kind of model description and another kind of checkpoint.
//
//   tiny.card    "card 64"                  a llama of that hidden size
//   ones.bin     "ONES"                     every tensor that is asked for, all ones
#include "plugin/TenonPlugin.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace tenon;

namespace {

llvm::Expected<std::string> readCard(llvm::StringRef path) {
  auto text = llvm::MemoryBuffer::getFile(path);
  int64_t hidden;
  if (!text || (*text)->getBuffer().split(' ').second.trim().getAsInteger(10, hidden))
    return llvm::createStringError(path + ": is no card; accepted: card HIDDEN");
  std::string size = std::to_string(hidden);
  return "model: card\narchitecture: llama\nconfig: {hidden: " + size +
         ", layers: 1, heads: 4, ffn: 128, vocab: 96, context: 32, norm_eps: 1.0e-5, "
         "tie_embeddings: true}\nweights: {file: ones.bin}\n";
}

// The tensors of a one-layer llama.
class Ones : public WeightSource {
public:
  explicit Ones(std::string path) : path(std::move(path)) {
    auto add = [&](const char *name, llvm::SmallVector<int64_t, 4> shape) {
      tensors.push_back({name, std::move(shape), Storage::F32});
    };
    add("model.embed_tokens.weight", {96, 64});
    for (const char *name : {"input_layernorm", "post_attention_layernorm"})
      add(("model.layers.0." + std::string(name) + ".weight").c_str(), {64});
    for (const char *name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      add(("model.layers.0.self_attn." + std::string(name) + ".weight").c_str(), {64, 64});
    for (const char *name : {"gate_proj", "up_proj"})
      add(("model.layers.0.mlp." + std::string(name) + ".weight").c_str(), {128, 64});
    add("model.layers.0.mlp.down_proj.weight", {64, 128});
    add("model.norm.weight", {64});
  }

  llvm::StringRef getName() const override { return path; }
  llvm::ArrayRef<TensorInfo> getTensors() const override { return tensors; }
  const TensorInfo *find(llvm::StringRef name) const override {
    for (const TensorInfo &tensor : tensors)
      if (tensor.name == name)
        return &tensor;
    return nullptr;
  }
  llvm::ArrayRef<uint8_t> getRows(const TensorInfo &tensor, int64_t, int64_t count) override {
    ones.assign(count * tensor.shape.back(), 1.0f);
    return {reinterpret_cast<const uint8_t *>(ones.data()), ones.size() * sizeof(float)};
  }

private:
  std::string path;
  std::vector<TensorInfo> tensors;
  std::vector<float> ones;
};

} // namespace

static void add(PluginRegistry &registry) {
  registry.addModelReader(
      {"card", [](llvm::StringRef path) { return path.ends_with(".card"); }, readCard});
  registry.addWeightFormat(
      {"ones", [](llvm::StringRef start) { return start.starts_with("ONES"); },
       [](llvm::StringRef path) -> llvm::Expected<std::unique_ptr<WeightSource>> {
         return std::make_unique<Ones>(path.str());
       }});
}

TENON_PLUGIN("formats", "1", add)
