// tenon plan MODEL: parameters, memory and the shapes of attention, from the graph alone; needs no
// weights.
#include "codegen/Error.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/Graph.h"
#include "passes/Pipeline.h"
#include "tools/Command.h"
#include "tools/DevicePlan.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace tenon::llm;

namespace tenon {

namespace {

struct PlanArguments {
  ModelArguments model;
  int64_t batch = 1, prompt = 4, steps = 2;
  std::string cacheType = "f16", target, precision = "stored";
  bool json = false;
};

using Shape = SmallVector<int64_t, 4>;

// One forward pass: T tokens of each sequence meet a cache that then holds `length` positions.
struct PlannedPhase {
  std::string name;
  int64_t tokens, length;
  std::vector<std::pair<std::string, Shape>> tensors;
};

struct Plan {
  std::string model;
  int64_t parameters = 0, weightBytes = 0, cacheBytes = 0, memoryBytes = 0, context = 0;
  std::vector<PlannedPhase> phases;
  std::optional<DevicePlan> device; // with --target cuda
};

// Bytes of all checkpoint tensors, each once.
int64_t getStoredBytes(ModuleOp module) {
  int64_t bytes = 0;
  llvm::StringSet<> seen;
  module.walk([&](WeightOp op) {
    if (seen.insert(op.getTensor()).second)
      bytes += op.getResult().getType().getByteSize();
  });
  return bytes;
}

// One step of a phase: `tokens` of each sequence, behind which the cache has `length` positions,
// and the memory of an encoder-decoder `memory` rows.
PlannedPhase planPhase(std::string name, int64_t batch, int64_t tokens, int64_t length,
                       int64_t memory, ModuleOp module) {
  PlannedPhase phase{std::move(name), tokens, length, {}};
  auto function =
      module.lookupSymbol<func::FuncOp>(phase.name == "decode" ? "prefill" : phase.name);
  auto add = [&](StringRef tensor, Shape shape) {
    phase.tensors.push_back({tensor.str(), std::move(shape)});
  };
  auto addProjections = [&](int64_t width, int64_t heads, int64_t kvHeads, int64_t dim,
                            int64_t valueDim) {
    add("hidden", {batch, tokens, width});
    add("q", {batch, heads, tokens, dim});
    add("k", {batch, kvHeads, tokens, dim});
    add("v", {batch, kvHeads, tokens, valueDim});
  };
  // Layers are alike: the first of each kind.
  function.walk([&](AttentionOp op) {
    int64_t kvHeads = op.getNumKvHeads();
    addProjections(getColumns(op.getQuery()), op.getNumHeads(), kvHeads, op.getHeadDim(),
                   getColumns(op.getValue()) / kvHeads);
    add("scores", {batch, int64_t(op.getNumHeads()), tokens, tokens});
    return WalkResult::interrupt();
  });
  function.walk([&](PagedAttentionOp op) {
    CacheType cache = op.getCache().getType();
    if (cache.getMemory())
      return WalkResult::advance();
    int64_t heads = op.getNumHeads(), dim = cache.getHeadDim(), valueDim = cache.getValueDim();
    addProjections(getColumns(op.getQuery()), heads, cache.getHeads(), dim, valueDim);
    add("k_cache", {batch, cache.getHeads(), length, dim});
    add("v_cache", {batch, cache.getHeads(), length, valueDim});
    add("scores", {batch, heads, tokens, length});
    return WalkResult::interrupt(); // layers are alike
  });
  auto addMemory = [&](CacheType cache) {
    add("k_memory", {batch, cache.getHeads(), memory, cache.getHeadDim()});
    add("v_memory", {batch, cache.getHeads(), memory, cache.getHeadDim()});
    return WalkResult::interrupt();
  };
  function.walk([&](KVAppendOp op) {
    CacheType cache = op.getCache().getType();
    return cache.getMemory() ? addMemory(cache) : WalkResult::advance();
  });
  function.walk([&](PagedAttentionOp op) {
    CacheType cache = op.getCache().getType();
    if (!cache.getMemory())
      return WalkResult::advance();
    addMemory(cache);
    add("scores", {batch, int64_t(op.getNumHeads()), tokens, memory});
    return WalkResult::interrupt();
  });
  if (!phase.tensors.empty())
    function.walk([&](EmbeddingOp op) { phase.tensors[0].second.back() = getColumns(op); });
  if (getNamedResult(function, "logits"))
    add("logits", {batch, phase.name == "encode" ? tokens : 1,
                   module->getAttrOfType<IntegerAttr>("llm.vocab").getInt()});
  return phase;
}

llvm::Expected<Plan> makePlan(const PlanArguments &arguments) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  llvm::Expected<Model> model = arguments.model.load(context, /*needWeights=*/false);
  if (!model)
    return model.takeError();
  if (arguments.prompt + arguments.steps > model->context)
    return refused("--prompt " + llvm::Twine(arguments.prompt) + " and --steps " +
                   llvm::Twine(arguments.steps) + " do not fit the context of " +
                   llvm::Twine(model->context));

  Plan plan;
  plan.model = model->name;
  plan.parameters = model->parameters;
  plan.context = model->context;
  plan.weightBytes = getStoredBytes(*model->module);
  PipelineOptions pipeline;
  pipeline.cacheType = arguments.cacheType;
  PassManager manager(&context);
  buildPipeline(manager, pipeline, Phase::attention);
  if (failed(manager.run(*model->module)))
    return refused(model->name + ": the graph cannot be planned");

  model->module->walk([&](func::FuncOp function) {
    for (Type type : function.getArgumentTypes())
      if (auto cache = dyn_cast<CacheType>(type))
        (cache.getMemory() ? plan.memoryBytes : plan.cacheBytes) =
            arguments.batch * plan.context * cache.getLayers() * cache.getPositionBytes();
  });
  auto addPhase = [&](std::string name, int64_t tokens, int64_t length) {
    plan.phases.push_back(planPhase(std::move(name), arguments.batch, tokens, length,
                                    arguments.prompt, *model->module));
  };
  // What has an encoder gives the prompt to it; an answer begins with one token.
  bool encodes = model->module->lookupSymbol<func::FuncOp>("encode") != nullptr;
  if (encodes)
    addPhase("encode", arguments.prompt, 0);
  if (!model->module->lookupSymbol<func::FuncOp>("prefill"))
    return plan;
  int64_t prompt = encodes ? 1 : arguments.prompt;
  addPhase("prefill", prompt, prompt);
  for (int64_t step = 1; step <= arguments.steps; ++step)
    addPhase("decode", 1, prompt + step);
  return plan;
}

// The model once more, lowered for the target.
llvm::Expected<DevicePlan> makeDevicePlan(const PlanArguments &arguments) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  llvm::Expected<Model> model = arguments.model.load(context, /*needWeights=*/false);
  if (!model)
    return model.takeError();
  CompileOptions options;
  options.target = arguments.target;
  options.precision = arguments.precision;
  options.cacheType = arguments.cacheType;
  return planOnDevice(*model->module, options, arguments.batch, arguments.prompt);
}

std::string formatBytes(int64_t bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes;
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  return llvm::formatv("{0:f2} {1}", value, units[unit]);
}

void printText(const Plan &plan, const PlanArguments &arguments) {
  llvm::outs() << "model         " << plan.model << '\n'
               << "parameters    " << plan.parameters << '\n'
               << "weights       " << formatBytes(plan.weightBytes) << '\n'
               << "KV cache      " << formatBytes(plan.cacheBytes) << " (batch " << arguments.batch
               << ", " << plan.context << " positions, " << arguments.cacheType << ")\n";
  if (plan.memoryBytes)
    llvm::outs() << "memory cache  " << formatBytes(plan.memoryBytes) << '\n';
  for (const PlannedPhase &phase : plan.phases) {
    llvm::outs() << '\n' << phase.name << ", cache length " << phase.length << '\n';
    for (const auto &[name, shape] : phase.tensors) {
      llvm::outs() << "  " << llvm::left_justify(name, 10) << " [";
      llvm::interleave(shape, llvm::outs(), ",");
      llvm::outs() << "]\n";
    }
  }
  if (plan.device)
    printText(*plan.device);
}

void printJson(const Plan &plan, const PlanArguments &arguments) {
  llvm::json::OStream json(llvm::outs(), 2);
  json.object([&] {
    json.attribute("model", plan.model);
    json.attribute("parameters", plan.parameters);
    json.attribute("weight_bytes", plan.weightBytes);
    json.attribute("kv_bytes", plan.cacheBytes);
    if (plan.memoryBytes)
      json.attribute("memory_bytes", plan.memoryBytes);
    json.attribute("kv_dtype", arguments.cacheType);
    json.attribute("batch", arguments.batch);
    json.attribute("context", plan.context);
    json.attributeArray("phases", [&] {
      for (const PlannedPhase &phase : plan.phases)
        json.object([&] {
          json.attribute("name", phase.name);
          json.attribute("tokens", phase.tokens);
          json.attribute("cache_length", phase.length);
          json.attributeObject("tensors", [&] {
            for (const auto &[name, shape] : phase.tensors)
              json.attribute(name, llvm::json::Array(shape));
          });
        });
    });
    if (plan.device)
      json.attributeObject("device", [&] { printJson(*plan.device, json); });
  });
  llvm::outs() << '\n';
}

} // namespace

Action addPlan(CLI::App &app) {
  auto arguments = std::make_shared<PlanArguments>();
  arguments->model.add(app);
  auto range = CLI::Range(int64_t(1), int64_t(1) << 20);
  app.add_option("--batch", arguments->batch, "sequences")->check(range);
  app.add_option("--prompt", arguments->prompt, "tokens of each prompt")->check(range);
  app.add_option("--steps", arguments->steps, "decode steps to show")->check(CLI::Range(0, 4096));
  app.add_option("--kv-dtype", arguments->cacheType,
                 "element of the KV cache: f32, bf16, f16 or int8")
      ->check(CLI::IsMember({"f32", "bf16", "f16", "int8"}));
  app.add_option("--target", arguments->target, "also what steps would take there: cuda")
      ->check(CLI::IsMember({"cuda"}));
  app.add_option("--precision", arguments->precision, "of the weights, with --target");
  app.add_flag("--json", arguments->json);
  return [=]() -> llvm::Error {
    llvm::Expected<Plan> plan = makePlan(*arguments);
    if (!plan)
      return plan.takeError();
    if (!arguments->target.empty()) {
      llvm::Expected<DevicePlan> device = makeDevicePlan(*arguments);
      if (!device)
        return device.takeError();
      plan->device.emplace(std::move(*device));
    }
    if (arguments->json)
      printJson(*plan, *arguments);
    else
      printText(*plan, *arguments);
    return llvm::Error::success();
  };
}

} // namespace tenon
