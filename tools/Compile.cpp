// tenon compile MODEL [-o OUT]; also the part that `tenon run` shares.
#include "codegen/Error.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/Remarks.h"
#include "plugin/Loader.h"
#include "tools/Command.h"
#include "tools/Locations.h"
#include "tools/Timing.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <chrono>

using namespace mlir;

namespace tenon {

void ModelArguments::add(CLI::App &app) {
  app.add_option("MODEL", path, "a model YAML, a Hugging Face folder or a .gguf file")->required();
  app.add_option("--set", sets, "replace a number of the model: --set layers=2")
      ->type_name("KEY=VALUE");
  app.add_option("--load-plugin", plugins, "a plugin's library")->type_name("FILE");
  app.add_option("--weights", options.weights, "a checkpoint, or random:SEED")->type_name("PATH");
  app.add_option("--context", options.context, "longest sequence")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 30));
  app.add_flag("--allow-unused-config", options.allowUnusedConfig,
               "accept config keys that are not understood");
}

llvm::Expected<ModelOptions> ModelArguments::resolve() const {
  ModelOptions resolved = options;
  resolved.modelsDirectory = getModelsFolder();
  for (const std::string &plugin : plugins)
    if (llvm::Error error = PluginLoader::get().load(plugin))
      return error;
  for (llvm::StringRef set : sets) {
    auto [key, value] = set.split('=');
    if (key.empty() || value.empty())
      return refused("--set " + set + ": expected key=value");
    resolved.sets.push_back({key.str(), value.str()});
  }
  return resolved;
}

llvm::Expected<Model> ModelArguments::load(MLIRContext &context, bool needWeights) const {
  llvm::Expected<ModelOptions> resolved = resolve();
  if (!resolved)
    return resolved.takeError();
  PluginLoader &loader = PluginLoader::get();
  context.appendDialectRegistry(loader.getDialects());
  resolved->needWeights = needWeights;
  // A model file may name plugins of its own.
  resolved->loadPlugin = [&](llvm::StringRef plugin, llvm::StringRef folder) {
    llvm::Error error = loader.require(plugin, folder);
    context.appendDialectRegistry(loader.getDialects());
    return error;
  };
  return loadModel(context, path, *resolved);
}

void CompileArguments::add(CLI::App &app) {
  model.add(app);
  app.add_option("--target", options.target, "cpu, cuda or reference");
  app.add_option("--precision", options.precision, "stored, f32, bf16, f16, int8 or int4");
  app.add_option("--kv-dtype", options.cacheType,
                 "element of the KV cache: f32, bf16, f16 or int8");
  app.add_option("--weights-form", weightsForm, "appended or sidecar")
      ->check(CLI::IsMember({"appended", "sidecar"}));
  app.add_option("--mcpu", cpus,
                 "native, or a list of avx512-amx, avx512-bf16, avx512-vnni, x86-64-v3, x86-64-v2; "
                 "for cuda of sm_90 and the like");
  app.add_option("--disable", options.disabledPasses, "leave out a pass: --disable=llm-fuse-rope")
      ->delimiter(',');
  app.add_option("--insert-at", insertions,
                 "run a pass at an extension point: --insert-at=after-fuse:my-pass")
      ->type_name("POINT:PASS");
  app.add_option("--remarks", remarks, "print what passes did and did not do: passed, missed")
      ->delimiter(',')
      ->check(CLI::IsMember({"passed", "missed"}));
  app.add_flag("--emit-hidden", model.options.emitHidden,
               "let `OUT logits --hidden` see every layer");
  app.add_option("--dump-phases", options.dumpFolder,
                 "write the IR after each phase into a folder");
  app.add_flag("--verify-each-numerically", options.verifyNumerically,
               "run the model before and after each pass on random weights and compare");
}

std::vector<std::string> CompileArguments::listOptionalPasses() const {
  std::vector<std::string> passes = getOptionalPasses();
  for (const Plugin &plugin : PluginLoader::get().getPlugins())
    for (const Insertion &insertion : plugin.insertions)
      passes.push_back(insertion.pass);
  for (llvm::StringRef text : insertions)
    passes.push_back(text.split(':').second.split('{').first.str());
  return passes;
}

llvm::Error CompileArguments::compile(const std::string &output, bool isQuiet) {
  // Before anything is read: the target may not be there at all.
  if (llvm::Error error = model.resolve().takeError())
    return error;
  if (llvm::Error error = createBackend(options.target).takeError())
    return error;
  auto start = std::chrono::steady_clock::now();
  Timing timing;
  if (time)
    timing.attach(options, timeTokens);
  auto progress = [&](llvm::StringRef what) {
    if (isQuiet)
      return;
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    llvm::errs() << llvm::format("[%5.2f s] ", seconds) << what << '\n';
  };

  progress("reading " + model.path);
  timing.begin("loading");
  MLIRContext context(MLIRContext::Threading::DISABLED);
  if (!remarks.empty())
    printRemarks(context, remarks, llvm::errs());
  llvm::Expected<Model> loaded = model.load(context);
  if (!loaded)
    return loaded.takeError();
  if (onLoaded)
    onLoaded(*loaded->module);
  options.insertions = PluginLoader::get().getInsertions();
  options.getPlugin = [](llvm::StringRef pass) {
    const Plugin *plugin = PluginLoader::get().findPass(pass);
    return plugin ? plugin->name : "";
  };
  for (const std::string &text : insertions) {
    llvm::Expected<Insertion> insertion = parseInsertion(text);
    if (!insertion)
      return refused("--insert-at: " + llvm::toString(insertion.takeError()));
    options.insertions.push_back(*insertion);
  }

  options.output = output;
  options.sidecar = weightsForm == "sidecar";
  options.machine.cpus = CLI::detail::split(cpus, ',');
  options.machine.kernelFolder = getKernelFolder();
  options.machine.deviceFolder = getDeviceFolder();
  options.machine.nvrtcPath = getNvrtcPath();
  options.libraryFolder = getLibraryFolder();
  options.onednnPath = getOneDNNPath();
  if (auto licences = llvm::MemoryBuffer::getFile(getLicencesFile()))
    options.licences = (*licences)->getBuffer().str();
  options.progress = [&](llvm::StringRef what) {
    timing.begin(what);
    progress(what);
  };
  ModelFacts facts{loaded->name, loaded->architecture, loaded->digest,       loaded->parameters,
                   loaded->eos,  loaded->stop,         loaded->decoderStart, loaded->tokenizer};
  timing.begin("running passes");
  if (llvm::Error error = compileModel(*loaded->module, loaded->weights.get(), facts, options))
    return error;
  timing.end();
  if (time)
    timing.print(llvm::errs());
  if (output != "-")
    progress("wrote " + output);
  return llvm::Error::success();
}

// Executables look for it beside themselves.
llvm::Error CompileArguments::bundle(const std::string &output, bool isText) const {
  if (isText || options.target != "cpu")
    return refused("--bundle-onednn: only executables and libraries for the CPU call oneDNN");
  std::string library = getOneDNNPath();
  if (library.empty())
    return lacking("--bundle-onednn: no oneDNN was found when Tenon was built");
  llvm::SmallString<128> copy(llvm::sys::path::parent_path(output));
  llvm::sys::path::append(copy, "libdnnl.so.3");
  if (llvm::sys::fs::equivalent(library, copy))
    return llvm::Error::success();
  if (std::error_code code = llvm::sys::fs::copy_file(library, copy))
    return refused("cannot write " + copy + ": " + code.message());
  return llvm::Error::success();
}

Action addCompile(CLI::App &app) {
  auto arguments = std::make_shared<CompileArguments>();
  auto output = std::make_shared<std::string>();
  arguments->add(app);
  app.add_option("-o", *output,
                 "where to write; default: the model's name, or standard output for IR");
  app.add_option("--emit", arguments->options.emit, "exe, lib, obj, llvm, sched, llm or textbook");
  app.add_flag("--bundle-onednn", arguments->bundleOneDnn,
               "put oneDNN beside the executable, for machines that have none");
  app.add_flag("--time", arguments->time,
               "print seconds of each step and pass, bytes and FLOPs of each kind of operation");
  app.add_option("--time-tokens", arguments->timeTokens,
                 "prompt and cached positions that --time reckons with; 512")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 30));
  return [=]() -> llvm::Error {
    const std::string &emit = arguments->options.emit;
    bool isText = emit == "textbook" || emit == "llm" || emit == "sched" || emit == "llvm";
    if (output->empty()) {
      llvm::StringRef stem = llvm::StringRef(arguments->model.path).rtrim('/').rsplit('/').second;
      stem = stem.empty() ? llvm::StringRef(arguments->model.path) : stem;
      *output = isText ? "-"
                       : stem.rsplit('.').first.str() + (emit == "lib"   ? ".so"
                                                         : emit == "obj" ? ".o"
                                                                         : "");
    }
    if (arguments->bundleOneDnn)
      if (llvm::Error error = arguments->bundle(*output, isText))
        return error;
    return arguments->compile(*output, isText);
  };
}

} // namespace tenon
