// See CpuBackend.h.
//
// For each level:
//
//   sched.program ─emitProgram─▶ programs ──────────────────────────────────────────O3─▶ object
//         └─ what it calls ─▶ kernel + shape ◀─ what that needs of <level>.bc ──────O3─▶ object
#include "codegen/cpu/CpuBackend.h"
#include "codegen/Decomposed.h"
#include "codegen/Error.h"
#include "codegen/cpu/KernelBitcode.h"
#include "codegen/cpu/KernelSet.h"
#include "codegen/cpu/Level.h"
#include "codegen/kernels/KernelMatch.h"
#include "passes/Remarks.h"
#include "llvm/Support/MemoryBuffer.h"
#include <map>

using namespace mlir;

namespace tenon::cpu {

void CpuBackend::configure(PipelineOptions &options) const { options.pack = true; }

namespace {

// One level: a unit for the programs, and units for the kernels and shapes that they call. These
// read the bitcode that lies here.
class LevelCompiler {
public:
  LevelCompiler(ModuleOp module, const Level &level)
      : module(module), level(level), target{level.cpu.str(), level.features.str()} {}

  llvm::Error open(llvm::StringRef kernelFolder) {
    std::string path = (kernelFolder + "/" + level.bitcode + ".bc").str();
    auto read = llvm::MemoryBuffer::getFile(path);
    if (!read)
      return lacking("cannot read the CPU kernels " + path + ": " + read.getError().message());
    file = std::move(*read);
    return addBitcode(nullptr, *file);
  }

  llvm::Expected<VariantInfo> addUnits(std::vector<CodeUnit> &units) {
    std::string suffix = level.bitcode.str();
    SpecialisationSet called("tenon_" + suffix);
    CodeUnit &programs = units.emplace_back("programs", target, Effort::glue);
    for (auto program : module.getOps<sched::ProgramOp>())
      if (llvm::Error error = emitProgram(
              program, ("tenon_" + program.getSymName() + "_" + suffix).str(), programs.getModule(),
              [&](sched::StageOp stage, bool isDecode) { return get(stage, isDecode); }, called))
        return error;
    llvm::ArrayRef<Specialisation> kernels = called.getAll();
    while (!kernels.empty()) {
      llvm::Expected<size_t> count = countTogether(kernels);
      if (!count)
        return count.takeError();
      if (llvm::Error error =
              define(kernels.take_front(*count), units.emplace_back(kernels[0].symbol, target)))
        return error;
      kernels = kernels.drop_front(*count);
    }
    return VariantInfo{level.name.str(), level.required.str(), suffix, scratch};
  }

private:
  KernelCall get(sched::StageOp stage, bool isDecode) {
    sched::KernelOp kernel = sched::getKernel(stage);
    std::optional<KernelMatch> match = matchSet(stage, kernel, isDecode);
    if (!match)
      match = matchKernel(stage, kernel, isDecode, llm::Layout::x16k2);
    if (!match) {
      emitMissed(stage, "cpu-kernels", kernel.getSymName() + " runs as its meaning", "no kernel");
      return decomposed.get(stage, kernel);
    }
    scratch = std::max(scratch, match->scratch);
    return KernelCall{match->function, match->shape, match->io};
  }

  // The kernel of a registered set that has code for this level.
  std::optional<KernelMatch> matchSet(sched::StageOp stage, sched::KernelOp kernel, bool isDecode) {
    for (const KernelSet &set : getKernelSets()) {
      if (set.bitcode(level.bitcode).empty())
        continue;
      if (std::optional<KernelMatch> match = set.match(stage, kernel, isDecode)) {
        setOf.try_emplace(match->function, &set);
        emitPassed(stage, "cpu-kernels",
                   kernel.getSymName() + " by " + match->function + " of " + set.name);
        return match;
      }
    }
    return std::nullopt;
  }

  // A unit costs some milliseconds by itself, so that small kernels share one.
  static constexpr size_t maxUnitBytes = 48 << 10;

  // How many of the first kernels become one unit.
  llvm::Expected<size_t> countTogether(llvm::ArrayRef<Specialisation> kernels) {
    const KernelSet *set = setOf.lookup(kernels[0].function);
    if (set && !bitcode.count(set))
      if (llvm::Error error = addBitcode(set, {set->bitcode(level.bitcode), set->name}))
        return error;
    size_t bytes = 0, count = 0;
    for (const Specialisation &kernel : kernels) {
      bool alone = decomposed.contains(kernel.function);
      bytes += bitcode.at(set).getSize(kernel.function);
      if (count > 0 && (alone || bytes > maxUnitBytes || setOf.lookup(kernel.function) != set))
        break;
      ++count;
      if (alone)
        break;
    }
    return count;
  }

  llvm::Error define(llvm::ArrayRef<Specialisation> kernels, CodeUnit &unit) {
    std::vector<std::string> functions;
    for (const Specialisation &kernel : kernels) {
      emitSpecialisation(kernel, unit.getModule());
      functions.push_back(kernel.function);
    }
    if (decomposed.contains(functions[0]))
      return decomposed.lower(functions[0], unit.getModule());
    const KernelSet *set = setOf.lookup(functions[0]);
    unit.complete = [own = &bitcode.at(nullptr), theirs = set ? &bitcode.at(set) : nullptr,
                     &level = level, functions](llvm::Module &code) -> llvm::Error {
      if (theirs)
        if (llvm::Error error = theirs->linkInto(code))
          return error;
      if (llvm::Error error = own->linkInto(code))
        return error;
      for (const std::string &function : functions)
        if (code.getFunction(function)->isDeclaration())
          return internal("no kernel " + function + " for " + level.name);
      return llvm::Error::success();
    };
    return llvm::Error::success();
  }

  llvm::Error addBitcode(const KernelSet *set, llvm::MemoryBufferRef buffer) {
    llvm::Expected<KernelBitcode> opened = KernelBitcode::open(buffer);
    if (!opened)
      return opened.takeError();
    bitcode.emplace(set, std::move(*opened));
    return llvm::Error::success();
  }

  ModuleOp module;
  const Level &level;
  CpuTarget target;
  DecomposedKernels decomposed;
  std::unique_ptr<llvm::MemoryBuffer> file;
  std::map<const KernelSet *, KernelBitcode> bitcode; // null: Tenon's own
  llvm::StringMap<const KernelSet *> setOf;           // by function
  int64_t scratch = 64;
};

} // namespace

llvm::Expected<NativeCode> CpuBackend::compile(ModuleOp module, const TargetOptions &options) {
  llvm::Expected<SmallVector<const Level *>> levels = selectLevels(options.cpus);
  if (!levels)
    return levels.takeError();
  std::vector<std::unique_ptr<LevelCompiler>> compilers;
  std::vector<CodeUnit> units;
  SmallVector<VariantInfo> variants;
  for (const Level *level : *levels) {
    LevelCompiler &compiler =
        *compilers.emplace_back(std::make_unique<LevelCompiler>(module, *level));
    if (llvm::Error error = compiler.open(options.kernelFolder))
      return error;
    llvm::Expected<VariantInfo> variant = compiler.addUnits(units);
    if (!variant)
      return variant.takeError();
    variants.push_back(*variant);
  }

  NativeCode native(options.form);
  if (llvm::Error error = native.add(std::move(units)))
    return error;
  if (llvm::Error error = native.addDescriptor(module, getName(), /*maxThreads=*/0, variants))
    return error;
  return native;
}

} // namespace tenon::cpu
