// See Specialisation.h.
#include "codegen/Specialisation.h"
#include "llvm/IR/IRBuilder.h"

namespace tenon {

std::string SpecialisationSet::get(llvm::StringRef function, llvm::ArrayRef<uint8_t> shape,
                                   llvm::StringRef kernel, llvm::StringRef program) {
  std::string key = (function + ".").str();
  key.append(reinterpret_cast<const char *>(shape.data()), shape.size());
  auto [entry, isNew] = known.try_emplace(key, all.size());
  if (!isNew)
    return all[entry->second].symbol;

  std::string base = prefix + "." + kernel.str() + "." + function.str(), symbol = base;
  if (symbols.contains(symbol))
    symbol = base += "." + program.str();
  for (int i = 1; !symbols.insert(symbol).second; ++i)
    symbol = base + "." + std::to_string(i);
  all.push_back({symbol, function.str(), shape.vec()});
  return symbol;
}

llvm::Function *declareSpecialisation(llvm::StringRef symbol, llvm::Module &module) {
  if (llvm::Function *known = module.getFunction(symbol))
    return known;
  llvm::LLVMContext &context = module.getContext();
  llvm::Type *pointer = llvm::PointerType::getUnqual(context);
  auto *type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, pointer}, false);
  auto *function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
  function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  return function;
}

void emitSpecialisation(const Specialisation &specialisation, llvm::Module &module) {
  llvm::Function *function = declareSpecialisation(specialisation.symbol, module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(module.getContext(), "entry", function));

  auto *bytes = llvm::ConstantDataArray::get(module.getContext(),
                                             llvm::ArrayRef<uint8_t>(specialisation.shape));
  auto *shape = new llvm::GlobalVariable(module, bytes->getType(), /*isConstant=*/true,
                                         llvm::GlobalValue::PrivateLinkage, bytes,
                                         specialisation.symbol + ".shape");
  shape->setAlignment(llvm::Align(8));

  llvm::Type *pointer = builder.getPtrTy();
  auto *type = llvm::FunctionType::get(builder.getVoidTy(), {pointer, pointer, pointer}, false);
  llvm::FunctionCallee kernel = module.getOrInsertFunction(specialisation.function, type);
  llvm::CallInst *call =
      builder.CreateCall(kernel, {shape, function->getArg(0), function->getArg(1)});
  call->addFnAttr(llvm::Attribute::AlwaysInline);
  builder.CreateRetVoid();
}

} // namespace tenon
