// See ProgramEmitter.h.
#include "codegen/ProgramEmitter.h"
#include "codegen/Operands.h"
#include "llvm/IR/IRBuilder.h"
#include <cstddef>

using namespace mlir;

namespace tenon {

ArenaSize getArenaSize(ModuleOp module) {
  ArenaSize size;
  for (auto program : module.getOps<sched::ProgramOp>()) {
    size.tokenBytes = std::max<int64_t>(size.tokenBytes, program.getTokenBytes());
    size.scoredBytes = std::max<int64_t>(size.scoredBytes, program.getScoredBytes());
  }
  return size;
}

namespace {

class ProgramEmitter {
public:
  ProgramEmitter(sched::ProgramOp program, StringRef name, llvm::Module &module,
                 KernelProvider getKernel, SpecialisationSet &kernels)
      : program(program), module(module), getKernel(getKernel), kernels(kernels),
        builder(module.getContext()), operands(locateOperands(program)) {
    llvm::Type *pointer = builder.getPtrTy();
    auto type =
        llvm::FunctionType::get(builder.getVoidTy(), {pointer, pointer, pointer, pointer}, false);
    function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
    env = function->getArg(0);
    arena = function->getArg(1);
    weights = function->getArg(2);
    cache = function->getArg(3);
  }

  llvm::Error run() {
    builder.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", function));
    llvm::Value *batch = loadPointer(env, offsetof(tenon_env, batch));
    tokens = loadInt32(batch, offsetof(tenon_batch, tokens));
    scored = loadInt32(batch, offsetof(tenon_batch, scored));
    cacheBlocks = loadInt64(env, offsetof(tenon_env, cache_blocks));
    memoryCache = loadPointer(env, offsetof(tenon_env, memory_cache));
    memoryBlocks = loadInt64(env, offsetof(tenon_env, memory_blocks));
    llvm::Value *services = loadPointer(env, offsetof(tenon_env, services));
    barrier = loadPointer(services, offsetof(tenon_services, barrier));
    mark = loadPointer(services, offsetof(tenon_services, mark));
    // Buffers of scored rows lie behind those of tokens.
    ArenaSize size = getArenaSize(program->getParentOfType<ModuleOp>());
    scoredArena =
        builder.CreatePtrAdd(arena, builder.CreateMul(tokens, builder.getInt64(size.tokenBytes)));
    io = builder.CreateAlloca(llvm::ArrayType::get(builder.getPtrTy(), countOperands()));

    for (Operation &op : program.getBody().front())
      if (llvm::Error error = emit(op))
        return error;
    builder.CreateRetVoid();
    return llvm::Error::success();
  }

private:
  llvm::Error emit(Operation &op) {
    if (isa<sched::BarrierOp>(op)) {
      auto type = llvm::FunctionType::get(builder.getVoidTy(), {builder.getPtrTy()}, false);
      builder.CreateCall(type, barrier, {env});
    }
    if (auto stage = dyn_cast<sched::StageOp>(op))
      return emitStage(stage);
    for (Value value : op.getResults())
      pointers[value] = emitAddress(operands.lookup(value));
    return llvm::Error::success();
  }

  llvm::Value *emitAddress(const tenon_operand &operand) {
    auto scaled = [&](llvm::Value *base, llvm::Value *by) {
      return builder.CreatePtrAdd(base, builder.CreateMul(by, builder.getInt64(operand.scale)));
    };
    llvm::Value *base = weights;
    if (operand.place == TENON_AT_TOKENS)
      base = scaled(arena, tokens);
    else if (operand.place == TENON_AT_SCORED)
      base = scaled(scoredArena, scored);
    else if (operand.place == TENON_AT_CACHE)
      base = scaled(cache, cacheBlocks);
    else if (operand.place == TENON_AT_MEMORY)
      base = scaled(memoryCache, memoryBlocks);
    return at(base, operand.offset);
  }

  llvm::Error emitStage(sched::StageOp stage) {
    llvm::Expected<KernelCall> call = getKernel(stage, program.getSymName() == "decode");
    if (!call)
      return call.takeError();
    for (auto [i, operand] : llvm::enumerate(call->io))
      builder.CreateStore(pointers.lookup(stage.getOperand(operand)), at(io, i * sizeof(void *)));
    std::string symbol =
        kernels.get(call->function, call->shape, stage.getKernel(), program.getSymName());
    builder.CreateCall(declareSpecialisation(symbol, module), {io, env});
    emitMark();
    return llvm::Error::success();
  }

  // if (services->mark) services->mark(env, stage number)
  void emitMark() {
    auto *call = llvm::BasicBlock::Create(module.getContext(), "mark", function);
    auto *next = llvm::BasicBlock::Create(module.getContext(), "next", function);
    builder.CreateCondBr(builder.CreateIsNotNull(mark), call, next);
    builder.SetInsertPoint(call);
    auto type = llvm::FunctionType::get(builder.getVoidTy(),
                                        {builder.getPtrTy(), builder.getInt32Ty()}, false);
    builder.CreateCall(type, mark, {env, builder.getInt32(stages++)});
    builder.CreateBr(next);
    builder.SetInsertPoint(next);
  }

  llvm::Value *at(llvm::Value *pointer, int64_t bytes) {
    return bytes ? builder.CreateConstGEP1_64(builder.getInt8Ty(), pointer, bytes) : pointer;
  }
  llvm::Value *loadPointer(llvm::Value *base, int64_t offset) {
    return builder.CreateLoad(builder.getPtrTy(), at(base, offset));
  }
  llvm::Value *loadInt64(llvm::Value *base, int64_t offset) {
    return builder.CreateLoad(builder.getInt64Ty(), at(base, offset));
  }
  llvm::Value *loadInt32(llvm::Value *base, int64_t offset) {
    return builder.CreateSExt(builder.CreateLoad(builder.getInt32Ty(), at(base, offset)),
                              builder.getInt64Ty());
  }

  int64_t countOperands() {
    int64_t most = 1;
    program.walk(
        [&](sched::StageOp stage) { most = std::max<int64_t>(most, stage.getNumOperands()); });
    return most;
  }

  sched::ProgramOp program;
  llvm::Module &module;
  KernelProvider getKernel;
  SpecialisationSet &kernels;
  llvm::IRBuilder<> builder;
  llvm::Function *function;
  llvm::Value *env, *arena, *weights, *cache;
  llvm::Value *memoryCache, *memoryBlocks;
  llvm::Value *tokens, *scored, *cacheBlocks, *barrier, *mark, *scoredArena, *io;
  int32_t stages = 0; // so far
  llvm::DenseMap<Value, tenon_operand> operands;
  llvm::DenseMap<Value, llvm::Value *> pointers;
};

} // namespace

llvm::Error emitProgram(sched::ProgramOp program, StringRef name, llvm::Module &module,
                        KernelProvider getKernel, SpecialisationSet &kernels) {
  return ProgramEmitter(program, name, module, getKernel, kernels).run();
}

} // namespace tenon
