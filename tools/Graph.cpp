// tenon graph MODEL -o F.svg|F.html [--phase NAME] [--function NAME]: draws what the passes have
// made of a model at a point of the pipeline.
#include "codegen/Error.h"
#include "mlir/IR/MLIRContext.h"
#include "plugin/Loader.h"
#include "tools/Command.h"
#include "tools/Modules.h"
#include "tools/graph/HtmlPage.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;

namespace tenon {

namespace {

struct GraphArguments {
  ModelArguments model;
  CompileOptions options;
  std::string output, phase, function;
};

struct NamedPhase {
  StringRef name;
  Phase phase;
};

// By the names of the pipeline's points, without their `after-`.
constexpr NamedPhase phases[] = {
    {"textbook", Phase::textbook}, {"simplify", Phase::textbook},
    {"cache", Phase::cache},       {"specialise", Phase::specialise},
    {"fuse", Phase::fuse},         {"attention", Phase::attention},
    {"weights", Phase::weights},   {"schedule", Phase::schedule},
};

llvm::Expected<NamedPhase> findPhase(StringRef name) {
  name.consume_front("after-");
  for (const NamedPhase &phase : phases)
    if (phase.name == name)
      return phase;
  auto names = llvm::map_range(phases, [](const NamedPhase &phase) { return phase.name; });
  return refused("--phase: unknown phase '" + name + "'; accepted: " + llvm::join(names, ", "));
}

class GraphCommand {
public:
  explicit GraphCommand(const GraphArguments &arguments) : arguments(arguments) {}

  llvm::Error run() {
    StringRef output = arguments.output;
    if (!output.ends_with(".svg") && !output.ends_with(".html"))
      return refused("-o " + output + ": unknown form; accepted: a name in .svg or .html");
    if (llvm::Error error = holdsIR(arguments.model.path) ? readIR() : runPipeline())
      return error;
    llvm::Expected<std::string> function = chooseFunction();
    if (!function)
      return function.takeError();
    llvm::Expected<graph::Graph> graph = graph::buildGraph(*module, *function);
    if (!graph)
      return graph.takeError();
    return write(*graph, graph::makeCaption(*graph, remark));
  }

private:
  // A file of IR is drawn as it is; an executable also has its schedule.
  llvm::Error readIR() {
    StringRef path = arguments.model.path, phase = arguments.phase;
    phase.consume_front("after-");
    if (!phase.empty() && (path.ends_with(".mlir") || (phase != "weights" && phase != "schedule")))
      return refused("--phase " + phase + ": " + path +
                     (path.ends_with(".mlir") ? " is drawn as it is"
                                              : " holds the phases weights and schedule"));
    auto read = readModule(context, path, phase == "schedule" ? "sched" : "llm");
    if (!read)
      return read.takeError();
    module = std::move(*read);
    return llvm::Error::success();
  }

  llvm::Error runPipeline() {
    llvm::Expected<NamedPhase> phase =
        findPhase(arguments.phase.empty() ? "weights" : StringRef(arguments.phase));
    if (!phase)
      return phase.takeError();
    llvm::Expected<Model> model = load();
    if (!model)
      return model.takeError();
    module = std::move(model->module);
    remark = phase->name == "textbook" ? "textbook" : "after " + phase->name.str();
    if (!model->weights)
      remark += " · storage unknown";
    if (phase->name == "textbook")
      return llvm::Error::success(); // before any pass
    CompileOptions options = arguments.options;
    options.insertions = PluginLoader::get().getInsertions();
    return runPasses(*module, options, phase->phase);
  }

  // Shapes need no weights; how they are stored is worth opening them, if they are there.
  llvm::Expected<Model> load() {
    llvm::Expected<Model> model = arguments.model.load(context);
    if (model || !arguments.model.options.weights.empty())
      return model;
    llvm::errs() << "note: " << llvm::toString(model.takeError())
                 << "; drawn without knowing how weights are stored\n";
    return arguments.model.load(context, /*needWeights=*/false);
  }

  llvm::Expected<std::string> chooseFunction() {
    std::vector<std::string> names = graph::getFunctionNames(*module);
    if (names.empty())
      return refused(arguments.model.path + ": has no function to draw");
    if (arguments.function.empty())
      return llvm::is_contained(names, "decode") ? "decode" : names.front();
    StringRef wanted = arguments.function;
    wanted.consume_front("@");
    if (!llvm::is_contained(names, wanted))
      return refused("--function: no function '" + wanted +
                     "' here; accepted: " + llvm::join(names, ", "));
    return wanted.str();
  }

  llvm::Error write(const graph::Graph &graph, const graph::Caption &caption) {
    std::error_code code;
    llvm::raw_fd_ostream out(arguments.output, code);
    if (!code) {
      StringRef(arguments.output).ends_with(".svg") ? graph::writeSvg(graph, caption, out)
                                                    : graph::writeHtml(graph, caption, out);
      out.flush();
      code = out.error();
      out.clear_error();
    }
    if (code)
      return refused("cannot write " + arguments.output + ": " + code.message());
    return llvm::Error::success();
  }

  const GraphArguments &arguments;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
  std::string remark; // which phase it is
};

} // namespace

Action addGraph(CLI::App &app) {
  auto arguments = std::make_shared<GraphArguments>();
  arguments->model.add(app);
  app.get_option("MODEL")->description(
      "a model YAML, a Hugging Face folder, a .gguf or .mlir file, or a compiled executable");
  app.add_option("-o", arguments->output, "F.svg or F.html")->required();
  app.add_option("--phase", arguments->phase,
                 "textbook, simplify, cache, specialise, fuse, attention, weights (default) or "
                 "schedule");
  app.add_option("--function", arguments->function,
                 "main, encode, prefill or decode; default: decode, or the first");
  app.add_option("--target", arguments->options.target, "cpu, cuda or reference");
  app.add_option("--precision", arguments->options.precision,
                 "stored, f32, bf16, f16, int8 or int4");
  app.add_option("--kv-dtype", arguments->options.cacheType,
                 "element of the KV cache: f32, bf16, f16 or int8");
  app.add_option("--disable", arguments->options.disabledPasses, "leave out a pass")
      ->delimiter(',');
  return [=]() -> llvm::Error { return GraphCommand(*arguments).run(); };
}

} // namespace tenon
