// See KernelJit.h.
#include "codegen/reference/KernelJit.h"
#include "codegen/Error.h"
#include "codegen/KernelLowering.h"
#include "codegen/ObjectEmitter.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"

using namespace mlir;

namespace tenon {

KernelJit::KernelJit() = default;
KernelJit::~KernelJit() = default;

llvm::Error KernelJit::start() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto host = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!host)
    return host.takeError();
  auto made = host->createTargetMachine();
  if (!made)
    return made.takeError();
  machine = std::move(*made);
  auto engine = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(*host)).create();
  if (!engine)
    return engine.takeError();
  jit = std::move(*engine);
  // malloc, free and the functions of the C library's mathematics.
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      jit->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  jit->getMainJITDylib().addGenerator(std::move(*process));
  return llvm::Error::success();
}

llvm::Expected<tenon_kernel *> KernelJit::get(sched::KernelOp kernel,
                                              ArrayRef<sched::Space> spaces) {
  kernel.setSymName("");
  kernel.setKind("");
  std::string key;
  llvm::raw_string_ostream stream(key);
  kernel->print(stream, OpPrintingFlags().useLocalScope());
  for (sched::Space space : spaces)
    key += space == sched::Space::scored ? 's' : 't';
  auto [entry, isNew] = known.try_emplace(key, nullptr);
  if (!isNew)
    return entry->second;
  kernel.setSymName("kernel" + std::to_string(known.size()));
  llvm::Expected<tenon_kernel *> compiled = compile(kernel, spaces);
  if (!compiled) {
    known.erase(entry);
    return compiled.takeError();
  }
  return entry->second = *compiled;
}

llvm::Expected<tenon_kernel *> KernelJit::compile(sched::KernelOp kernel,
                                                  ArrayRef<sched::Space> spaces) {
  if (!jit)
    if (llvm::Error error = start())
      return error;
  auto context = std::make_unique<llvm::LLVMContext>();
  KernelToLower request{kernel, llvm::SmallVector<sched::Space>(spaces)};
  llvm::Expected<std::unique_ptr<llvm::Module>> module = lowerKernels(request, *context);
  if (!module) {
    // The kernel's name means nothing to anyone.
    std::string message = llvm::toString(module.takeError());
    StringRef reason = message;
    reason.consume_front(("kernel @" + kernel.getSymName() + ": ").str());
    return refused(reason);
  }
  setTarget(**module, *machine);
  CpuTarget target{machine->getTargetCPU().str(), machine->getTargetFeatureString().str()};
  optimise(**module, *machine, target,
           [&](const llvm::GlobalValue &value) { return value.getName() == kernel.getSymName(); });
  if (llvm::Error error =
          jit->addIRModule(llvm::orc::ThreadSafeModule(std::move(*module), std::move(context))))
    return error;
  auto address = jit->lookup(kernel.getSymName());
  if (!address)
    return address.takeError();
  return address->toPtr<tenon_kernel *>();
}

} // namespace tenon
