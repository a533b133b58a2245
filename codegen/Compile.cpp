// See Compile.h.
#include "codegen/Compile.h"
#include "codegen/ArtefactWriter.h"
#include "codegen/Descriptor.h"
#include "codegen/Error.h"
#include "codegen/Linker.h"
#include "codegen/PassFailure.h"
#include "codegen/Version.h"
#include "codegen/WeightWriter.h"
#include "codegen/reference/NumericalCheck.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace tenon::llm;

namespace tenon {

namespace {

// The cache's element type where --kv-dtype does not say: that of the activations, but never wider
// than bf16 for quantised weights.
std::string getDefaultCacheType(StringRef precision, ModuleOp module) {
  if (precision == "f32" || precision == "f16" || precision == "bf16")
    return precision.str();
  if (precision != "stored")
    return "bf16";
  bool isF32 = true;
  module.walk([&](WeightOp op) {
    WeightType type = op.getResult().getType();
    isF32 &= type.getRank() == 1 || type.getStorage() == Storage::F32;
  });
  return isF32 ? "f32" : "bf16";
}

llvm::Error checkName(StringRef option, StringRef value, ArrayRef<StringRef> accepted) {
  if (llvm::is_contained(accepted, value))
    return llvm::Error::success();
  return refused(option + ": unknown type '" + value +
                 "'; accepted: " + llvm::join(accepted, ", "));
}

// Looks at the module between two passes.
class Look : public PassWrapper<Look, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Look)

  explicit Look(std::function<void()> look) : look(std::move(look)) {}
  StringRef getArgument() const override { return "tenon-look"; }
  void runOnOperation() override { look(); }

private:
  std::function<void()> look;
};

class Compiler {
public:
  Compiler(ModuleOp module, WeightSource *weights, const ModelFacts &facts,
           const CompileOptions &options)
      : module(module), weights(weights), facts(facts), options(options) {}

  llvm::Error run() {
    std::optional<Phase> last = llvm::StringSwitch<std::optional<Phase>>(options.emit)
                                    .Case("textbook", Phase::textbook)
                                    .Case("llm", Phase::weights)
                                    .Cases({"sched", "llvm", "obj", "exe", "lib"}, Phase::schedule)
                                    .Default(std::nullopt);
    if (!last)
      return refused("--emit: unknown form '" + options.emit +
                     "'; accepted: exe, lib, obj, llvm, sched, llm, textbook");
    if (llvm::Error error = runPasses(*last))
      return error;
    if (*last != Phase::schedule || options.emit == "sched")
      return writeText(print());

    std::string sched = print();
    progress("generating code");
    TargetOptions machine = options.machine;
    machine.form = options.emit == "llvm" ? CodeForm::text : CodeForm::object;
    llvm::Expected<NativeCode> native = backend->compile(module, machine);
    if (!native)
      return native.takeError();
    if (native->getForm() == CodeForm::text)
      return writeText(llvm::join(native->getParts(), "\n"));
    if (options.emit == "obj")
      return linkObjects(native->getParts(), LinkForm::object, options.libraryFolder,
                         options.output);
    return writeArtefact(*native, sched);
  }

  llvm::Error runPasses(Phase last) {
    llvm::Expected<std::unique_ptr<Backend>> made = createBackend(options.target);
    if (!made)
      return made.takeError();
    backend = std::move(*made);
    if (llvm::Error error = checkName("--precision", options.precision,
                                      {"stored", "f32", "bf16", "f16", "int8", "int4"}))
      return error;
    if (!options.cacheType.empty())
      if (llvm::Error error =
              checkName("--kv-dtype", options.cacheType, {"f32", "bf16", "f16", "int8"}))
        return error;
    for (const std::string &name : options.disabledPasses)
      if (!PassInfo::lookup(name))
        return refused("--disable: unknown pass '" + name +
                       "'; docs/reference/passes.md lists them");
    pipeline.precision = options.precision;
    pipeline.cacheType = options.cacheType;
    pipeline.disabled = options.disabledPasses;
    pipeline.insertions = options.insertions;
    backend->configure(pipeline);
    if (pipeline.cacheType.empty())
      pipeline.cacheType = getDefaultCacheType(options.precision, module);
    // The first error becomes the one line that the user sees.
    std::string message;
    ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
        llvm::errs() << "warning: " << diagnostic << '\n';
      else if (diagnostic.getSeverity() == DiagnosticSeverity::Error && message.empty())
        message = diagnostic.str();
      return success();
    });
    if (last != Phase::textbook)
      module->setAttr("llm.target", StringAttr::get(module.getContext(), options.target));
    llvm::Error dumped = llvm::Error::success();
    int dumps = 0;
    pipeline.atPoint = [&](StringRef point, OpPassManager &manager) {
      manager.addPass(std::make_unique<Look>([this, point, &dumped, &dumps] {
        if (point == "after-weights")
          graph = print();
        if (options.atPoint)
          options.atPoint(point, module);
        if (!options.dumpFolder.empty() && !dumped)
          dumped = dump(point, dumps++);
      }));
    };
    PassManager manager(module.getContext());
    if (options.verifyNumerically) {
      NumericalCheckOptions check;
      check.progress = options.progress;
      addNumericalCheck(manager, std::move(check));
    }
    buildPipeline(manager, pipeline, last);
    PassFailure failure(
        (options.output.empty() || options.output == "-" ? "tenon" : options.output) +
            ".failed.mlir",
        options.getPlugin);
    failure.watch(manager);
    if (options.beforePasses)
      options.beforePasses(manager);
    if (failed(manager.run(module))) {
      llvm::consumeError(std::move(dumped));
      return failure.explain(message);
    }
    return dumped;
  }

private:
  // Writes <folder>/NN-<point>.mlir.
  llvm::Error dump(StringRef point, int number) {
    if (std::error_code code = llvm::sys::fs::create_directories(options.dumpFolder))
      return refused("cannot make the folder " + options.dumpFolder + ": " + code.message());
    std::string path = options.dumpFolder + llvm::formatv("/{0:02}-{1}.mlir", number, point).str();
    return writeFile(path, [&](raw_ostream &out) { out << print(); });
  }

  std::string print() {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream);
    return text + "\n";
  }

  llvm::Error writeText(StringRef text) {
    return writeFile(options.output, [&](raw_ostream &out) { out << text; });
  }

  llvm::Error writeFile(StringRef path, function_ref<void(raw_ostream &)> write) {
    std::error_code code;
    llvm::raw_fd_ostream out(path, code);
    if (!code) {
      write(out);
      out.flush();
      code = out.error();
      out.clear_error();
    }
    return code ? refused("cannot write " + path + ": " + code.message()) : llvm::Error::success();
  }

  //===--------------------------------------------------------------------===//
  // Executables and libraries
  //===--------------------------------------------------------------------===//

  // Everything is written under another name first: a failed compilation leaves what was there.
  llvm::Error writeArtefact(const NativeCode &native, StringRef sched) {
    std::string draft = options.output + ".tmp",
                sidecar = options.sidecar ? options.output + ".weights" : "";
    auto cleanup = llvm::scope_exit([&] { (void)llvm::sys::fs::remove(draft); });
    progress("linking");
    LinkForm form = options.emit == "lib" ? LinkForm::library : LinkForm::executable;
    if (llvm::Error error = linkObjects(native.getParts(), form, options.libraryFolder, draft))
      return error;
    progress("packing weights");
    llvm::Expected<uint64_t> digest = options.sidecar ? writeSidecar(sidecar) : uint64_t(0);
    if (!digest)
      return digest.takeError();
    if (llvm::Error error = appendSections(draft, native, sched, sidecar, *digest))
      return error;
    if (llvm::Error error = stamp(draft, *digest))
      return error;
    if (std::error_code code = llvm::sys::fs::rename(draft, options.output))
      return refused("cannot write " + options.output + ": " + code.message());
    return llvm::Error::success();
  }

  llvm::Expected<uint64_t> writeSidecar(StringRef path) {
    std::error_code code;
    llvm::raw_fd_ostream out(path, code);
    if (code)
      return refused("cannot write " + path + ": " + code.message());
    ArtefactWriter artefact(out);
    llvm::Expected<uint64_t> digest = writeWeightSection(artefact, out);
    if (digest)
      artefact.finish();
    return digest;
  }

  llvm::Expected<uint64_t> writeWeightSection(ArtefactWriter &artefact, llvm::raw_fd_ostream &out) {
    // Whole huge pages written at once are kept as such by file systems that can, and mapped as
    // such: a quarter more bandwidth in decode, and fewer page faults at the start.
    out.SetBufferSize(TENON_HUGE_PAGE);
    artefact.begin("weights", getWeightBytes(module) < TENON_HUGE_PAGE ? 4096 : TENON_HUGE_PAGE);
    out.flush();
    llvm::Expected<uint64_t> digest = writeWeights(module, *weights, out);
    if (digest)
      artefact.end(*digest);
    return digest;
  }

  llvm::Error appendSections(StringRef path, const NativeCode &native, StringRef sched,
                             StringRef sidecar, uint64_t &digest) {
    std::error_code code;
    llvm::raw_fd_ostream out(path, code, llvm::sys::fs::CD_OpenExisting, llvm::sys::fs::FA_Write,
                             llvm::sys::fs::OF_None);
    if (code)
      return refused("cannot write " + path + ": " + code.message());
    uint64_t end = 0;
    if ((code = llvm::sys::fs::file_size(path, end)))
      return refused("cannot write " + path + ": " + code.message());
    out.seek(end);
    ArtefactWriter artefact(out);
    if (sidecar.empty()) {
      llvm::Expected<uint64_t> written = writeWeightSection(artefact, out);
      if (!written)
        return written.takeError();
      digest = *written;
    }
    if (!facts.tokenizer.empty())
      artefact.add("tokenizer", llvm::toStringRef(facts.tokenizer));
    artefact.add("meta", getMeta(native, sidecar));
    artefact.add("llm", graph);
    artefact.add("sched", sched);
    artefact.add("licenses", options.licences);
    artefact.finish();
    out.flush();
    code = out.error();
    out.clear_error();
    return code ? refused("cannot write " + path + ": " + code.message()) : llvm::Error::success();
  }

  std::string getMeta(const NativeCode &native, StringRef sidecar) {
    llvm::json::Object meta{
        {"model", facts.name},
        {"architecture", facts.architecture},
        {"tenon_version", TENON_VERSION},
        {"target", backend->getName()},
        {"precision", pipeline.precision},
        {"kv_dtype", pipeline.cacheType},
        {"context", module->getAttrOfType<IntegerAttr>("llm.context").getInt()},
        {"parameters", facts.parameters},
        {"config_digest", facts.digest},
        {"isa", native.getVariants()},
        {"flags", llvm::json::Object{{"emit", options.emit}, {"disable", options.disabledPasses}}},
        {"generation", getGeneration()},
        {"tokenizer", !facts.tokenizer.empty()},
        {"onednn_path", options.onednnPath},
        {"weights_file", llvm::sys::path::filename(sidecar)},
    };
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(std::move(meta));
    return text;
  }

  llvm::json::Object getGeneration() {
    llvm::json::Object generation{{"eos", facts.eos}, {"stop", facts.stop}};
    if (facts.decoderStart)
      generation["decoder_start"] = *facts.decoderStart;
    return generation;
  }

  // The digest of the weights is known only once they are written, behind the code.
  llvm::Error stamp(StringRef path, uint64_t digest) {
    uint64_t bytes = 0;
    if (std::error_code code = llvm::sys::fs::file_size(path, bytes))
      return refused("cannot read " + path + ": " + code.message());
    llvm::Expected<llvm::sys::fs::file_t> file = llvm::sys::fs::openNativeFileForReadWrite(
        path, llvm::sys::fs::CD_OpenExisting, llvm::sys::fs::OF_None);
    if (!file)
      return file.takeError();
    std::error_code code;
    llvm::sys::fs::mapped_file_region image(*file, llvm::sys::fs::mapped_file_region::readwrite,
                                            bytes, 0, code);
    (void)llvm::sys::fs::closeFile(*file);
    if (code)
      return refused("cannot map " + path + ": " + code.message());
    if (!stampDigest({image.data(), codeBytes(image)}, getWeightBytes(module), digest))
      return internal("the linked file has no place for the digest of its weights");
    return llvm::Error::success();
  }

  // The native code ends where the first section begins.
  static size_t codeBytes(const llvm::sys::fs::mapped_file_region &image) {
    tenon_trailer trailer;
    std::memcpy(&trailer, image.const_data() + image.size() - sizeof trailer, sizeof trailer);
    tenon_section first;
    std::memcpy(&first, image.const_data() + trailer.table_offset, sizeof first);
    return first.offset;
  }

  void progress(StringRef what) {
    if (options.progress)
      options.progress(what);
  }

  ModuleOp module;
  WeightSource *weights;
  const ModelFacts &facts;
  const CompileOptions &options;
  PipelineOptions pipeline;
  std::unique_ptr<Backend> backend;
  std::string graph; // the llm module before it is scheduled
};

} // namespace

llvm::Error compileModel(ModuleOp module, WeightSource *weights, const ModelFacts &facts,
                         const CompileOptions &options) {
  return Compiler(module, weights, facts, options).run();
}

llvm::Error runPasses(ModuleOp module, const CompileOptions &options, Phase last) {
  return Compiler(module, nullptr, {}, options).runPasses(last);
}

} // namespace tenon
