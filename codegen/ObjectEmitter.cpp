// See ObjectEmitter.h.
#include "codegen/ObjectEmitter.h"
#include "codegen/Error.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Internalize.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SCCP.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace tenon {

void initialiseTargets() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(const CpuTarget &target) {
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  std::string error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return internal(error);
  llvm::TargetOptions options;
  return std::unique_ptr<llvm::TargetMachine>(
      backend->createTargetMachine(triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
                                   std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

void setTarget(llvm::Module &module, const llvm::TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
}

// Inlines what must be inlined from the outside in, and drops what is dead for the constants of the
// caller before going deeper. LLVM's own inliner goes from the inside out: it would first simplify,
// for any shape, code that no shape of this module reaches.
static void inlineMandatory(llvm::Function &function, llvm::FunctionAnalysisManager &analyses) {
  llvm::FunctionPassManager prune;
  prune.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
  prune.addPass(llvm::SCCPPass());
  prune.addPass(llvm::EarlyCSEPass());
  prune.addPass(llvm::SimplifyCFGPass());
  while (true) {
    llvm::SmallVector<llvm::CallBase *> calls;
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction))
        if (llvm::Function *callee = call->getCalledFunction();
            callee && !callee->isDeclaration() && callee != &function &&
            call->hasFnAttr(llvm::Attribute::AlwaysInline))
          calls.push_back(call);
    bool changed = false;
    for (llvm::CallBase *call : calls) {
      llvm::InlineFunctionInfo info;
      changed |= llvm::InlineFunction(*call, info).isSuccess();
    }
    if (!changed)
      return;
    analyses.invalidate(function, llvm::PreservedAnalyses::none());
    analyses.invalidate(function, prune.run(function, analyses));
  }
}

void optimise(llvm::Module &module, llvm::TargetMachine &machine, const CpuTarget &target,
              llvm::function_ref<bool(const llvm::GlobalValue &)> keep,
              llvm::OptimizationLevel level) {
  llvm::internalizeModule(module, keep);
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.removeFnAttr("tune-cpu");
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", target.features);
    function.addFnAttr("prefer-vector-width", "512");
  }

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  if (level == llvm::OptimizationLevel::O3) {
    for (llvm::Function &function : module)
      if (!function.isDeclaration() && !function.hasLocalLinkage())
        inlineMandatory(function, functions);
    llvm::GlobalDCEPass().run(module, modules);
    modules.invalidate(module, llvm::PreservedAnalyses::none());
  }
  builder.buildPerModuleDefaultPipeline(level).run(module, modules);
}

llvm::Expected<std::string> emitObject(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return internal("the target cannot emit objects");
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

std::string printModule(const llvm::Module &module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

} // namespace tenon
