// See CpuBackend.h.
//
//   for each level:   kernels/<level>.bc ──link what is needed──┐
//                     sched.program ──emitProgram──▶ LLVM module ──O3──▶ object
#include "codegen/cpu/CpuBackend.h"
#include "codegen/Decomposed.h"
#include "codegen/Error.h"
#include "codegen/cpu/KernelMatch.h"
#include "codegen/cpu/KernelSet.h"
#include "codegen/cpu/Level.h"
#include "passes/Remarks.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/MemoryBuffer.h"
#include <set>

using namespace mlir;

namespace tenon::cpu {

void CpuBackend::configure(PipelineOptions &options) const { options.pack = true; }

namespace {

// One level: both programs and the kernels they call.
class LevelCompiler {
public:
  LevelCompiler(ModuleOp module, const Level &level, const TargetOptions &options)
      : module(module), level(level), options(options),
        target{level.cpu.str(), level.features.str()}, code(level.name, context), decomposed(code) {
  }

  llvm::Error run(NativeCode &native, VariantInfo &variant) {
    llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine = createTargetMachine(target);
    if (!machine)
      return machine.takeError();
    setTarget(code, **machine);

    std::string suffix = level.bitcode.str();
    for (auto program : module.getOps<sched::ProgramOp>())
      if (llvm::Error error = emitProgram(
              program, ("tenon_" + program.getSymName() + "_" + suffix).str(), code,
              [&](sched::StageOp stage, bool isDecode) { return get(stage, isDecode); }))
        return error;
    if (llvm::Error error = linkKernels())
      return error;
    optimise(code, **machine, target,
             [](const llvm::GlobalValue &value) { return value.getName().starts_with("tenon_"); });
    variant = {level.name.str(), level.required.str(), suffix, scratch};
    return native.add(code, **machine);
  }

private:
  llvm::Expected<KernelCall> get(sched::StageOp stage, bool isDecode) {
    auto kernel =
        SymbolTable::lookupNearestSymbolFrom<sched::KernelOp>(stage, stage.getKernelAttr());
    std::optional<KernelMatch> match = matchSet(stage, kernel, isDecode);
    if (!match)
      match = matchKernel(stage, kernel, isDecode);
    if (!match) {
      emitMissed(stage, "cpu-kernels", kernel.getSymName() + " runs as its meaning", "no kernel");
      return decomposed.get(stage, kernel);
    }
    scratch = std::max(scratch, match->scratch);
    called.insert(match->function);
    llvm::Type *pointer = llvm::PointerType::getUnqual(context);
    auto type =
        llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer, pointer}, false);
    llvm::FunctionCallee callee = code.getOrInsertFunction(match->function, type);
    return KernelCall{cast<llvm::Function>(callee.getCallee()), match->shape, match->io};
  }

  // The kernel of a registered set that has code for this level.
  std::optional<KernelMatch> matchSet(sched::StageOp stage, sched::KernelOp kernel, bool isDecode) {
    for (const KernelSet &set : getKernelSets()) {
      if (set.bitcode(level.bitcode).empty())
        continue;
      if (std::optional<KernelMatch> match = set.match(stage, kernel, isDecode)) {
        usedSets.insert(&set);
        emitPassed(stage, "cpu-kernels",
                   kernel.getSymName() + " by " + match->function + " of " + set.name);
        return match;
      }
    }
    return std::nullopt;
  }

  llvm::Error linkKernels() {
    for (const KernelSet *set : usedSets)
      if (llvm::Error error =
              link({set->bitcode(level.bitcode), set->name}, "kernels of " + set->name))
        return error;
    std::string path = options.kernelFolder + "/" + level.bitcode.str() + ".bc";
    auto buffer = llvm::MemoryBuffer::getFile(path);
    if (!buffer)
      return lacking("cannot read the CPU kernels " + path + ": " + buffer.getError().message());
    if (llvm::Error error = link(**buffer, "kernels of " + path))
      return error;
    for (const std::string &name : called)
      if (code.getFunction(name)->isDeclaration())
        return internal("no kernel " + name + " for " + level.name);
    return llvm::Error::success();
  }

  llvm::Error link(llvm::MemoryBufferRef bitcode, const llvm::Twine &what) {
    auto kernels = llvm::parseBitcodeFile(bitcode, context);
    if (!kernels)
      return refused(what + ": " + llvm::toString(kernels.takeError()));
    (*kernels)->setDataLayout(code.getDataLayout());
    (*kernels)->setTargetTriple(code.getTargetTriple());
    if (llvm::Linker::linkModules(code, std::move(*kernels), llvm::Linker::LinkOnlyNeeded))
      return refused("cannot link the " + what);
    return llvm::Error::success();
  }

  ModuleOp module;
  const Level &level;
  const TargetOptions &options;
  CpuTarget target;
  llvm::LLVMContext context;
  llvm::Module code;
  DecomposedKernels decomposed;
  llvm::SetVector<const KernelSet *> usedSets;
  std::set<std::string> called; // kernels
  int64_t scratch = 64;
};

} // namespace

llvm::Expected<NativeCode> CpuBackend::compile(ModuleOp module, const TargetOptions &options) {
  llvm::Expected<SmallVector<const Level *>> levels = selectLevels(options.cpus);
  if (!levels)
    return levels.takeError();
  NativeCode native(options.form);
  SmallVector<VariantInfo> variants;
  for (const Level *level : *levels)
    if (llvm::Error error =
            LevelCompiler(module, *level, options).run(native, variants.emplace_back()))
      return error;

  if (llvm::Error error = native.addDescriptor(module, getName(), /*maxThreads=*/0, variants))
    return error;
  return native;
}

} // namespace tenon::cpu
