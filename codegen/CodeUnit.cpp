// See CodeUnit.h.
#include "codegen/CodeUnit.h"
#include "codegen/Error.h"
#include "codegen/Parallel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

namespace tenon {

// LLVM's default for errors is to print them and to end the process.
static void catchErrors(llvm::LLVMContext &context, std::string &message) {
  context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo *info, void *context) {
        auto &message = *static_cast<std::string *>(context);
        if (info->getSeverity() != llvm::DS_Error || !message.empty())
          return;
        llvm::raw_string_ostream stream(message);
        llvm::DiagnosticPrinterRawOStream printer(stream);
        info->print(printer);
      },
      &message);
}

CodeUnit::CodeUnit(llvm::StringRef name, CpuTarget target, Effort effort)
    : target(std::move(target)), effort(effort), context(std::make_unique<llvm::LLVMContext>()),
      module(std::make_unique<llvm::Module>(name, *context)) {
  // Whoever fills the module may ask how its structs lie in memory.
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  module->setTargetTriple(triple);
  module->setDataLayout(triple.computeDataLayout());
}

llvm::Expected<std::string> CodeUnit::compile(CodeForm form) {
  std::string message;
  catchErrors(*context, message);
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine = createTargetMachine(target);
  if (!machine)
    return machine.takeError();
  if (complete)
    if (llvm::Error error = complete(*module)) {
      if (message.empty())
        return error;
      return refused(llvm::toString(std::move(error)) + ": " + message);
    }
  if (effort == Effort::glue)
    (*machine)->setOptLevel(llvm::CodeGenOptLevel::None);
  optimise(
      *module, **machine, target,
      [](const llvm::GlobalValue &value) { return value.getName().starts_with("tenon_"); },
      effort == Effort::glue ? llvm::OptimizationLevel::O1 : llvm::OptimizationLevel::O3);

  std::string bytes;
  if (form == CodeForm::text) {
    llvm::raw_string_ostream stream(bytes);
    llvm::WriteBitcodeToFile(*module, stream);
  } else {
    llvm::Expected<std::string> object = emitObject(*module, **machine);
    if (!object)
      return object.takeError();
    bytes = std::move(*object);
  }
  if (!message.empty())
    return internal(module->getName() + ": " + message);
  return bytes;
}

// Units of one target as one module.
static llvm::Expected<std::string> printTogether(llvm::StringRef name,
                                                 llvm::ArrayRef<std::string> bitcode) {
  llvm::LLVMContext context;
  llvm::Module whole(name, context);
  for (llvm::StringRef unit : bitcode) {
    auto module = llvm::parseBitcodeFile({unit, name}, context);
    if (!module)
      return module.takeError();
    whole.setTargetTriple((*module)->getTargetTriple());
    whole.setDataLayout((*module)->getDataLayout());
    if (llvm::Linker::linkModules(whole, std::move(*module)))
      return internal("cannot put the code for " + name + " together");
  }
  return printModule(whole);
}

llvm::Expected<std::vector<std::string>> compileUnits(std::vector<CodeUnit> units, CodeForm form) {
  initialiseTargets();
  llvm::Expected<std::vector<std::string>> parts = makeAll(units.size(), [&](size_t i) {
    llvm::Expected<std::string> part = units[i].compile(form);
    units[i].release();
    return part;
  });
  if (!parts || form == CodeForm::object)
    return parts;

  std::vector<std::string> texts;
  for (size_t begin = 0, end = 0; begin < units.size(); begin = end) {
    const CpuTarget &target = units[begin].getTarget();
    while (end < units.size() && units[end].getTarget() == target)
      ++end;
    llvm::Expected<std::string> text = printTogether(
        target.cpu + target.features, llvm::ArrayRef(*parts).slice(begin, end - begin));
    if (!text)
      return text.takeError();
    texts.push_back(std::move(*text));
  }
  return texts;
}

} // namespace tenon
