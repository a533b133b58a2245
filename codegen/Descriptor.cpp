// See Descriptor.h. The order of the fields is that of runtime/kernel_abi.h.
#include "codegen/Descriptor.h"
#include "codegen/ConstantFields.h"
#include "codegen/Cost.h"
#include "codegen/ProgramEmitter.h"
#include "ir/Sched.h"
#include "runtime/kernel_abi.h"
#include "llvm/IR/IRBuilder.h"

using namespace mlir;

namespace tenon {

namespace {

constexpr uint64_t digestPlaceholder = 0x7477656967687421; // arbitrary, unlikely in code

// tenon_cache_layout
llvm::Constant *makeCacheLayout(llvm::Module &object, llm::CacheType cache, int64_t layers) {
  if (!cache)
    return Fields(object).i32(0).i32(0).i64(0).i64(0).make();
  return Fields(object)
      .i32(layers)
      .i32(cache.getHeads())
      .i64(TENON_BLOCK_TOKENS * cache.getKeyBytes())
      .i64(TENON_BLOCK_TOKENS * cache.getValueBytes())
      .make();
}

llvm::Constant *declareProgram(llvm::Module &object, const Twine &name) {
  llvm::Type *pointer = llvm::PointerType::getUnqual(object.getContext());
  auto type = llvm::FunctionType::get(llvm::Type::getVoidTy(object.getContext()),
                                      {pointer, pointer, pointer, pointer}, false);
  auto *function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, object);
  function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  return function;
}

// What a program gives beside `result`: how many, and a table of tenon_hidden.
std::pair<int64_t, llvm::Constant *> getHiddens(llvm::Module &object, sched::ProgramOp program,
                                                StringRef result) {
  SmallVector<llvm::Constant *> hiddens;
  if (program)
    program.walk([&](sched::OutputOp output) {
      if (output.getName() == result)
        return;
      auto buffer = output.getBuffer().getDefiningOp<sched::BufferOp>();
      hiddens.push_back(Fields(object)
                            .text(output.getName())
                            .i64(*buffer.getOffset())
                            .i64(sched::getColumns(buffer.getType()))
                            .make());
    });
  return {hiddens.size(), makeTable(object, hiddens)};
}

// tenon_stages
llvm::Constant *makeStages(llvm::Module &object, sched::ProgramOp program) {
  SmallVector<llvm::Constant *> stages;
  bool met = true;
  if (program)
    for (Operation &op : program.getBody().front()) {
      met |= isa<sched::BarrierOp>(op);
      auto stage = dyn_cast<sched::StageOp>(op);
      if (!stage)
        continue;
      sched::KernelOp kernel = sched::getKernel(stage);
      KernelCost cost = getKernelCost(kernel.getBody());
      stages.push_back(Fields(object)
                           .text(stage.getKernel())
                           .i32(sched::isScored(stage))
                           .i32(met)
                           .i64(cost.weightBytes)
                           .i64(cost.contextBytes)
                           .i64(cost.rowFlops)
                           .i64(cost.pairFlops)
                           .make());
      met = false;
    }
  return Fields(object).i64(stages.size()).add(makeTable(object, stages)).make();
}

tenon_dtype getCacheType(Type element) {
  return element.isF32()    ? TENON_F32
         : element.isBF16() ? TENON_BF16
         : element.isF16()  ? TENON_F16
                            : TENON_I8;
}

} // namespace

int64_t getWeightBytes(ModuleOp module) {
  int64_t bytes = 0;
  for (auto weight : module.getOps<sched::WeightOp>())
    bytes = std::max<int64_t>(bytes, weight.getOffset() + weight.getBytes());
  return bytes;
}

void emitDescriptor(llvm::Module &object, ModuleOp module, StringRef target, int32_t maxThreads,
                    ArrayRef<VariantInfo> variants, llvm::Constant *device) {
  llvm::LLVMContext &context = object.getContext();
  SmallVector<llvm::Constant *> entries;
  auto declare = [&](StringRef phase, const VariantInfo &variant) -> llvm::Constant * {
    if (!module.lookupSymbol<sched::ProgramOp>(phase))
      return llvm::ConstantPointerNull::get(llvm::PointerType::getUnqual(context));
    return declareProgram(object, "tenon_" + phase + "_" + variant.suffix);
  };
  for (const VariantInfo &variant : variants)
    entries.push_back(Fields(object)
                          .text(variant.name)
                          .text(variant.features)
                          .add(declare("prefill", variant))
                          .add(declare("decode", variant))
                          .i64(variant.scratchBytes)
                          .add(declare("encode", variant))
                          .make());

  llm::CacheType cache, memory;
  int64_t layers = 0, memoryLayers = 0;
  module.walk([&](sched::CacheOp op) {
    bool isMemory = op.getType().getMemory();
    (isMemory ? memory : cache) = op.getType();
    int64_t &count = isMemory ? memoryLayers : layers;
    count = std::max<int64_t>(count, op.getLayer() + 1);
  });
  auto prefill = module.lookupSymbol<sched::ProgramOp>("prefill");
  auto decode = module.lookupSymbol<sched::ProgramOp>("decode");
  auto encode = module.lookupSymbol<sched::ProgramOp>("encode");

  // Dynamic scaling keeps cached keys; frequencies in two rows do not go together.
  int64_t recomputeBeyond = 0;
  bool keysByLength = false;
  module.walk([&](llm::RopeAnglesOp op) {
    keysByLength |= op.getOriginal() != 0;
    if (op.getFrequencies().getType().getRank() == 2)
      recomputeBeyond = op.getOriginal();
  });

  auto attribute = [&](StringRef name) {
    auto number = module->getAttrOfType<IntegerAttr>(name);
    return number ? number.getInt() : 0;
  };
  ArenaSize arena = getArenaSize(module);
  auto outputs = getHiddens(object, prefill ? prefill : encode, "logits");
  auto encoderOutputs = getHiddens(object, prefill ? encode : sched::ProgramOp(), "memory");
  llvm::Constant *compiled = Fields(object)
                                 .i32(TENON_KERNEL_ABI)
                                 .i32(variants.size())
                                 .add(makeTable(object, entries))
                                 .text(target)
                                 .i32(maxThreads)
                                 .i32(attribute("llm.vocab"))
                                 .i32(attribute("llm.context"))
                                 .i64(arena.tokenBytes)
                                 .i64(arena.scoredBytes)
                                 .i64(0) // logits come first; see sched-plan-buffers
                                 .i32(cache ? getCacheType(cache.getElementType()) : TENON_F32)
                                 .add(makeCacheLayout(object, cache, layers))
                                 .i64(getWeightBytes(module))
                                 .i64(digestPlaceholder)
                                 .i64(outputs.first)
                                 .add(outputs.second)
                                 .i32(recomputeBeyond)
                                 .i32(keysByLength)
                                 .i64(encoderOutputs.first)
                                 .add(encoderOutputs.second)
                                 .add(makeCacheLayout(object, memory, memoryLayers))
                                 .i32(attribute("llm.encoder_vocab"))
                                 .i64(attribute("llm.token_types"))
                                 .add(makeStages(object, prefill))
                                 .add(makeStages(object, decode))
                                 .add(makeStages(object, encode))
                                 .add(device ? device : makeTable(object, {}))
                                 .make();
  auto *global =
      new llvm::GlobalVariable(object, compiled->getType(), /*isConstant=*/true,
                               llvm::GlobalValue::ExternalLinkage, compiled, "tenon_compiled");
  global->setVisibility(llvm::GlobalValue::HiddenVisibility);
  assert(object.getDataLayout().getTypeAllocSize(compiled->getType()) == sizeof(tenon_compiled));
}

bool stampDigest(llvm::MutableArrayRef<char> image, int64_t weightBytes, uint64_t digest) {
  char mark[16];
  std::memcpy(mark, &weightBytes, 8);
  std::memcpy(mark + 8, &digestPlaceholder, 8);
  StringRef text(image.data(), image.size()), pattern(mark, sizeof mark);
  size_t place = text.find(pattern);
  if (place == StringRef::npos || text.find(pattern, place + 1) != StringRef::npos)
    return false;
  std::memcpy(image.data() + place + 8, &digest, 8);
  return true;
}

} // namespace tenon
