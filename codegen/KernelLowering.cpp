// Lowers sched.kernel operations to LLVM IR; see KernelLowering.h.
//
// Every kernel becomes two functions. The inner one is built in MLIR over memrefs:
//
//   func.func @NAME.body(batch: ids, positions, sequence_of, starts, lengths, block_table,
//                        scored_rows, types, memory_lengths, memory_table,
//                        operands: rows memref<?xCxf32, strided<[?, 1]>>, weight memref<NxKxf32>,
//                        cache: k and v, and the scales of each; results: rows)
//
// The outer one has the C signature, is built in LLVM IR, and fills in the descriptors of those
// memrefs.
#include "codegen/KernelLowering.h"
#include "ir/Reference.h"
#include "runtime/kernel_abi.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Transforms.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/ControlFlow/Transforms/BufferDeallocationOpInterfaceImpl.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/Transforms/AllocationOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/BufferDeallocationOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/IRBuilder.h"
#include <cstddef>

using namespace mlir;

namespace tenon {

bool areKeysByElement(llm::CacheType cache) {
  return cache.isQuantised() && !cache.getValuesInKeys();
}

void registerReferenceDialects(DialectRegistry &registry) {
  registry.insert<llm::LLMDialect, sched::SchedDialect, func::FuncDialect, arith::ArithDialect,
                  math::MathDialect, tensor::TensorDialect, linalg::LinalgDialect, scf::SCFDialect,
                  affine::AffineDialect, bufferization::BufferizationDialect, memref::MemRefDialect,
                  cf::ControlFlowDialect, LLVM::LLVMDialect>();
  // Bufferisation.
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerSubsetOpInterfaceExternalModels(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerSubsetOpInterfaceExternalModels(registry);
  // Deallocation.
  memref::registerAllocationOpInterfaceExternalModels(registry);
  scf::registerBufferDeallocationOpInterfaceExternalModels(registry);
  cf::registerBufferDeallocationOpInterfaceExternalModels(registry);
  // LLVM.
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  registerConvertFuncToLLVMInterface(registry);
  index::registerConvertIndexToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  registerConvertMemRefToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

//===----------------------------------------------------------------------===//
// The inner function
//===----------------------------------------------------------------------===//

namespace {

// memref<?xi32> for a field of the batch.
MemRefType getFieldType(OpBuilder &builder, int64_t rank = 1) {
  return MemRefType::get(SmallVector<int64_t>(rank, ShapedType::kDynamic), builder.getI32Type());
}

// memref<?xCxf32, strided<[?, 1]>>
MemRefType getRowsType(OpBuilder &builder, RankedTensorType type) {
  auto layout =
      StridedLayoutAttr::get(builder.getContext(), /*offset=*/0, {ShapedType::kDynamic, 1});
  return MemRefType::get(type.getShape(), type.getElementType(), layout);
}

// What is kept of the keys or the values of a layer, [blocks, heads, TENON_BLOCK_TOKENS, extent]:
// the elements, or their scales. In memory heads come before blocks, and a block's scales,
// [groups, TENON_BLOCK_TOKENS], before its elements.
struct CachePart {
  bool ofValues; // they lie behind all keys
  Type element;
  int64_t extent;
  int64_t offset; // bytes, in a block
  int64_t blockStride, rowStride, stride;
};

static_assert(llm::CacheType::groupSize == TENON_CACHE_GROUP);

SmallVector<CachePart> getCacheParts(llm::CacheType type) {
  SmallVector<CachePart> parts;
  auto add = [&](bool ofValues, int64_t dim) {
    int64_t block = TENON_BLOCK_TOKENS * type.getRowBytes(dim), groups = type.getGroups(dim);
    Type element = type.getElementType(), scale = type.getScaleType(type.getContext());
    int64_t scaleBytes = type.isQuantised() ? TENON_BLOCK_TOKENS * groups * 2 : 0;
    bool byElement = !ofValues && areKeysByElement(type);
    parts.push_back({ofValues, element, dim, scaleBytes,
                     block * 8 / element.getIntOrFloatBitWidth(), byElement ? 1 : dim,
                     byElement ? TENON_BLOCK_TOKENS : 1});
    if (type.isQuantised())
      parts.push_back({ofValues, scale, groups, 0, block / 2, 1, TENON_BLOCK_TOKENS});
  };
  add(false, type.getHeadDim());
  if (!type.getValuesInKeys())
    add(true, type.getValueDim());
  return parts;
}

MemRefType getPartType(const CachePart &part, int64_t heads) {
  auto layout =
      StridedLayoutAttr::get(part.element.getContext(), /*offset=*/0,
                             {part.blockStride, ShapedType::kDynamic, part.rowStride, part.stride});
  return MemRefType::get({ShapedType::kDynamic, heads, TENON_BLOCK_TOKENS, part.extent},
                         part.element, layout);
}

// Null if the weight is not plain f32 or f64.
MemRefType getWeightType(OpBuilder &builder, llm::WeightType type) {
  if (type.getLayout() != llm::Layout::plain)
    return {};
  if (type.getStorage() == Storage::F32)
    return MemRefType::get(type.getShape(), builder.getF32Type());
  if (type.getStorage() == Storage::F64)
    return MemRefType::get(type.getShape(), builder.getF64Type());
  return {};
}

std::string describe(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

llvm::Error refuse(sched::KernelOp kernel, const llvm::Twine &reason) {
  return llvm::createStringError("kernel @" + kernel.getSymName() + ": " + reason);
}

std::string getBodyName(sched::KernelOp kernel) { return (kernel.getSymName() + ".body").str(); }

// The memref arguments of the inner function: the batch's fields, operands, results.
llvm::Expected<SmallVector<Type>> getArgumentTypes(OpBuilder &builder,
                                                   const KernelToLower &kernel) {
  sched::KernelOp op = kernel.op;
  FunctionType type = op.getType();
  if (kernel.spaces.size() != type.getNumInputs() - 1 + type.getNumResults())
    return refuse(op, "spaces are given for " + llvm::Twine(kernel.spaces.size()) +
                          " of its operands and results");

  SmallVector<Type> types(5, getFieldType(builder));
  types.push_back(getFieldType(builder, /*rank=*/2));
  types.append(3, getFieldType(builder));
  types.push_back(getFieldType(builder, /*rank=*/2));
  int caches = 0;
  for (Type input : type.getInputs().drop_front()) {
    if (auto rows = dyn_cast<RankedTensorType>(input)) {
      types.push_back(getRowsType(builder, rows));
    } else if (auto cache = dyn_cast<llm::CacheType>(input)) {
      for (const CachePart &part : getCacheParts(cache))
        types.push_back(getPartType(part, cache.getHeads()));
      if (++caches > 1)
        return refuse(op, "has more than one cache operand");
    } else if (auto weight = dyn_cast<llm::WeightType>(input)) {
      MemRefType buffer = getWeightType(builder, weight);
      if (!buffer)
        return refuse(op, "no reference lowering for packed or quantised weights, got " +
                              describe(weight));
      types.push_back(buffer);
    } else {
      return refuse(op, "cannot take an operand of type " + describe(input));
    }
  }
  for (Type result : type.getResults()) {
    auto rows = dyn_cast<RankedTensorType>(result);
    if (!rows)
      return refuse(op, "cannot give a result of type " + describe(result));
    types.push_back(getRowsType(builder, rows));
  }
  return types;
}

// The last state of the cache that the body makes; null if it only reads.
Value getFinalCache(sched::KernelOp op) {
  Value last;
  op.getBody().walk([&](ReferenceOpInterface inner) {
    for (Value result : inner->getResults())
      if (isa<llm::CacheType>(result.getType()))
        last = result;
  });
  return last;
}

// Results are written to their arguments, the cache in place.
LogicalResult buildBody(OpBuilder &builder, sched::KernelOp op, ArrayRef<Type> types) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = op.getLoc();
  auto function =
      func::FuncOp::create(builder, loc, getBodyName(op), builder.getFunctionType(types, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());

  auto argument = function.args_begin();
  auto tensorOf = [&](BlockArgument buffer, bool writable = false) -> Value {
    auto type = cast<MemRefType>(buffer.getType());
    return bufferization::ToTensorOp::create(
        builder, loc, RankedTensorType::get(type.getShape(), type.getElementType()), buffer,
        /*restrict=*/true, writable);
  };
  auto next = [&] { return tensorOf(*argument++); };

  ReferenceMapping mapping;
  ReferenceBatch batch;
  for (Value *field : {&batch.ids, &batch.positions, &batch.sequenceOf, &batch.starts,
                       &batch.lengths, &batch.blockTable, &batch.scoredRows, &batch.types,
                       &batch.memoryLengths, &batch.memoryTable})
    *field = next();
  Block &body = op.getBody().front();
  mapping.map(body.getArgument(0), batch);
  SmallVector<BlockArgument> cacheParts;
  for (BlockArgument operand : body.getArguments().drop_front()) {
    if (auto cache = dyn_cast<llm::CacheType>(operand.getType())) {
      auto nextPart = [&] {
        cacheParts.push_back(*argument++);
        return tensorOf(cacheParts.back(), /*writable=*/true);
      };
      auto nextHalf = [&] {
        Value elements = nextPart();
        return ReferenceRows{elements, cache.isQuantised() ? nextPart() : Value()};
      };
      ReferenceRows key = nextHalf();
      mapping.map(operand, ReferenceCache{key, cache.getValuesInKeys() ? key : nextHalf()});
    } else {
      mapping.map(operand, next());
    }
  }
  if (failed(decomposeBlock(body, builder, mapping)))
    return failure();

  auto write = [&](Value value, Value buffer, bool restrict) {
    bufferization::MaterializeInDestinationOp::create(builder, loc, Type(), value, buffer, restrict,
                                                      /*writable=*/true);
  };
  if (Value last = getFinalCache(op)) {
    ReferenceCache cache = mapping.lookupCache(last);
    auto part = cacheParts.begin();
    for (Value value :
         {cache.key.elements, cache.key.scales, cache.value.elements, cache.value.scales})
      if (value && part != cacheParts.end()) // values in keys are written with them
        write(value, *part++, /*restrict=*/false);
  }
  for (Value result : op.getTerminator()->getOperands())
    write(mapping.lookup(result), *argument++, /*restrict=*/true);
  func::ReturnOp::create(builder, loc);
  return success();
}

//===----------------------------------------------------------------------===//
// From tensors to LLVM
//===----------------------------------------------------------------------===//

// Joins elementwise operations where nothing is computed twice, and spells out roundings to bf16,
// for which not every C library has a function.
LogicalResult simplifyTensors(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  linalg::populateElementwiseOpsFusionPatterns(patterns, [](OpOperand *operand) {
    auto consumer = cast<linalg::LinalgOp>(operand->getOwner());
    return operand->get().hasOneUse() && consumer.getNumReductionLoops() == 0 &&
           consumer.getMatchingIndexingMap(operand).isPermutation();
  });
  arith::populateExpandBFloat16Patterns(patterns);
  return applyPatternsGreedily(module, std::move(patterns));
}

LogicalResult bufferise(ModuleOp module) {
  IRRewriter rewriter(module.getContext());
  if (failed(bufferization::eliminateEmptyTensors(rewriter, module)))
    return failure();
  bufferization::OneShotBufferizationOptions options;
  options.bufferAlignment = 0; // malloc's own: an aligned-up pointer would defeat alias analysis
  options.allowReturnAllocsFromLoops = true;
  bufferization::BufferizationState state;
  if (failed(bufferization::runOneShotBufferize(module, options, state)))
    return failure();
  bufferization::hoistBuffersFromLoops(module);

  PassManager passes(module.getContext());
  passes.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  passes.addNestedPass<func::FuncOp>(createCSEPass());
  return passes.run(module);
}

// Copies become loops. What is left after canonicalisation never copies a cache: that was updated
// in place.
LogicalResult expandCopies(ModuleOp module) {
  SmallVector<memref::CopyOp> copies;
  module.walk([&](memref::CopyOp copy) { copies.push_back(copy); });
  for (memref::CopyOp copy : copies) {
    if (cast<MemRefType>(copy.getTarget().getType()).getRank() == 4 &&
        isa<BlockArgument>(copy.getTarget()))
      return copy.emitError() << "the cache is not updated in place";
    OpBuilder builder(copy);
    linalg::makeMemRefCopyOp(builder, copy.getLoc(), copy.getSource(), copy.getTarget());
    copy.erase();
  }
  return success();
}

// erf has no LLVM intrinsic: it is called in the C library.
LogicalResult callLibm(ModuleOp module) {
  ConversionTarget target(*module.getContext());
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  target.addIllegalOp<math::ErfOp>();
  RewritePatternSet patterns(module.getContext());
  populateMathToLibmConversionPatterns(patterns);
  return applyPartialConversion(module, target, std::move(patterns));
}

// Only innermost loops are worth unrolling: heads and their like would swell the code.
LogicalResult expandToLoops(ModuleOp module) {
  MLIRContext *context = module.getContext();
  auto unroll = LLVM::LoopUnrollAttr::get(context, /*disable=*/BoolAttr::get(context, true), {}, {},
                                          {}, {}, {}, {});
  auto annotation = LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {}, {}, {}, {}, {},
                                                  {}, {}, {}, {}, {}, {});
  SmallVector<linalg::LinalgOp> ops;
  module.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
  IRRewriter rewriter(context);
  for (linalg::LinalgOp op : ops) {
    rewriter.setInsertionPoint(op);
    FailureOr<linalg::LinalgLoops> loops = linalg::linalgOpToLoops(rewriter, op);
    if (failed(loops))
      return failure();
    for (Operation *loop : ArrayRef(*loops).drop_back(loops->empty() ? 0 : 1))
      loop->setAttr("loop_annotation", annotation);
    rewriter.eraseOp(op);
  }
  return success();
}

LogicalResult addDeallocations(ModuleOp module) {
  PassManager passes(module.getContext());
  bufferization::buildBufferDeallocationPipeline(passes);
  return passes.run(module);
}

LogicalResult lowerToLLVM(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(memref::createExpandStridedMetadataPass());
  passes.addPass(createLowerAffinePass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(module);
}

//===----------------------------------------------------------------------===//
// The outer function
//===----------------------------------------------------------------------===//

static_assert(sizeof(void *) == 8, "struct offsets are those of a 64-bit target");

class Wrapper {
public:
  Wrapper(llvm::Module &module, KernelToLower kernel)
      : module(module), kernel(std::move(kernel)), b(module.getContext()) {}

  void build() {
    llvm::Type *pointer = b.getPtrTy();
    auto *type =
        llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer}, /*isVarArg=*/false);
    auto *function = llvm::Function::Create(type, llvm::Function::ExternalLinkage,
                                            kernel.op.getSymName(), module);
    function->addFnAttr(llvm::Attribute::NoUnwind);
    shape = function->getArg(0), io = function->getArg(1), env = function->getArg(2);
    auto *entry = llvm::BasicBlock::Create(b.getContext(), "entry", function);
    auto *work = llvm::BasicBlock::Create(b.getContext(), "work", function);
    auto *done = llvm::BasicBlock::Create(b.getContext(), "done", function);
    b.SetInsertPoint(entry);
    b.CreateCondBr(b.CreateIsNull(load(b.getInt32Ty(), env, offsetof(tenon_env, thread))), work,
                   done);
    b.SetInsertPoint(done);
    b.CreateRetVoid();
    b.SetInsertPoint(work);

    addBatch();
    FunctionType signature = kernel.op.getType();
    size_t index = 0;
    for (Type input : signature.getInputs().drop_front())
      addOperand(input, index++);
    for (Type result : signature.getResults())
      addOperand(result, index++);
    callBody();
    b.CreateBr(done);
  }

private:
  llvm::Value *constant(int64_t value) { return b.getInt64(value); }

  llvm::Value *load(llvm::Type *type, llvm::Value *base, int64_t offset) {
    return b.CreateLoad(type, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, offset));
  }

  // A dense row-major array.
  void addDense(llvm::Value *data, ArrayRef<llvm::Value *> sizes) {
    SmallVector<llvm::Value *> strides(sizes.size(), constant(1));
    for (size_t i = sizes.size() - 1; i > 0; --i)
      strides[i - 1] = b.CreateNSWMul(strides[i], sizes[i]);
    addStrided(data, sizes, strides);
  }

  // A memref descriptor as arguments: allocated and aligned pointer, offset, sizes, strides. No two
  // of them overlap.
  void addStrided(llvm::Value *data, ArrayRef<llvm::Value *> sizes,
                  ArrayRef<llvm::Value *> strides) {
    noAlias.push_back(arguments.size() + 1);
    arguments.append({data, data, constant(0)});
    arguments.append(sizes.begin(), sizes.end());
    arguments.append(strides.begin(), strides.end());
  }

  void addBatch() {
    llvm::Value *batch = load(b.getPtrTy(), env, offsetof(tenon_env, batch));
    auto count = [&](int64_t offset) {
      return b.CreateSExt(load(b.getInt32Ty(), batch, offset), b.getInt64Ty());
    };
    auto field = [&](int64_t offset) { return load(b.getPtrTy(), batch, offset); };
    tokens = count(offsetof(tenon_batch, tokens));
    scored = count(offsetof(tenon_batch, scored));
    llvm::Value *sequences = count(offsetof(tenon_batch, sequences));
    addDense(field(offsetof(tenon_batch, ids)), tokens);
    addDense(field(offsetof(tenon_batch, positions)), tokens);
    addDense(field(offsetof(tenon_batch, sequence_of)), tokens);
    addDense(field(offsetof(tenon_batch, starts)), b.CreateNSWAdd(sequences, constant(1)));
    addDense(field(offsetof(tenon_batch, lengths)), sequences);
    addDense(field(offsetof(tenon_batch, block_table)),
             {sequences, count(offsetof(tenon_batch, max_blocks))});
    addDense(field(offsetof(tenon_batch, scored_rows)), scored);
    addDense(field(offsetof(tenon_batch, types)), tokens);
    addDense(field(offsetof(tenon_batch, memory_lengths)), sequences);
    addDense(field(offsetof(tenon_batch, memory_table)),
             {sequences, count(offsetof(tenon_batch, memory_max_blocks))});
  }

  // io[index]
  void addOperand(Type type, size_t index) {
    llvm::Value *data = load(b.getPtrTy(), io, index * sizeof(void *));
    if (auto cache = dyn_cast<llm::CacheType>(type))
      return addCache(cache, data);
    if (auto weight = dyn_cast<llm::WeightType>(type))
      return addDense(data, llvm::map_to_vector(weight.getShape(),
                                                [&](int64_t extent) { return constant(extent); }));
    auto rows = cast<RankedTensorType>(type);
    llvm::Value *stride = load(b.getInt64Ty(), shape, strides++ * sizeof(int64_t));
    llvm::Value *count = kernel.spaces[index] == sched::Space::scored ? scored : tokens;
    addStrided(data, {count, constant(rows.getDimSize(1))}, {stride, constant(1)});
  }

  void addCache(llm::CacheType type, llvm::Value *data) {
    llvm::Value *blocks = load(b.getInt64Ty(), env,
                               type.getMemory() ? offsetof(tenon_env, memory_blocks)
                                                : offsetof(tenon_env, cache_blocks));
    llvm::Value *keyBytes =
        b.CreateMul(blocks, constant(TENON_BLOCK_TOKENS * type.getHeads() * type.getKeyBytes()));
    for (const CachePart &part : getCacheParts(type)) {
      llvm::Value *first = constant(part.offset);
      if (part.ofValues)
        first = b.CreateAdd(first, keyBytes);
      addStrided(
          b.CreatePtrAdd(data, first),
          {blocks, constant(type.getHeads()), constant(TENON_BLOCK_TOKENS), constant(part.extent)},
          {constant(part.blockStride), b.CreateMul(blocks, constant(part.blockStride)),
           constant(part.rowStride), constant(part.stride)});
    }
  }

  void callBody() {
    llvm::Function *body = module.getFunction(getBodyName(kernel.op));
    body->setLinkage(llvm::Function::InternalLinkage);
    body->addFnAttr(llvm::Attribute::NoUnwind);
    for (unsigned argument : noAlias)
      body->addParamAttr(argument, llvm::Attribute::NoAlias);
    b.CreateCall(body, arguments);
  }

  llvm::Module &module;
  KernelToLower kernel;
  llvm::IRBuilder<> b;
  llvm::Value *shape = nullptr, *io = nullptr, *env = nullptr, *tokens = nullptr, *scored = nullptr;
  int64_t strides = 0; // read from `shape` so far
  SmallVector<llvm::Value *> arguments;
  SmallVector<unsigned> noAlias;
};

} // namespace

llvm::Expected<std::unique_ptr<llvm::Module>> lowerKernels(ArrayRef<KernelToLower> kernels,
                                                           llvm::LLVMContext &llvmContext) {
  if (kernels.empty())
    return std::make_unique<llvm::Module>("kernels", llvmContext);
  MLIRContext *context = kernels.front().op->getContext();
  DialectRegistry registry;
  registerReferenceDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadDialect<arith::ArithDialect, math::MathDialect, tensor::TensorDialect,
                       linalg::LinalgDialect, scf::SCFDialect, bufferization::BufferizationDialect,
                       LLVM::LLVMDialect>();

  std::string message;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (message.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      message = diagnostic.str();
    return success();
  });
  auto fail = [&](const llvm::Twine &where) {
    return llvm::createStringError(where + ": " + message);
  };

  OpBuilder builder(context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToEnd(module->getBody());
  for (const KernelToLower &kernel : kernels) {
    llvm::Expected<SmallVector<Type>> types = getArgumentTypes(builder, kernel);
    if (!types)
      return types.takeError();
    if (failed(buildBody(builder, kernel.op, *types)))
      return fail("kernel @" + sched::KernelOp(kernel.op).getSymName());
  }
  if (failed(simplifyTensors(*module)) || failed(bufferise(*module)) ||
      failed(expandCopies(*module)) || failed(callLibm(*module)) ||
      failed(addDeallocations(*module)) || failed(expandToLoops(*module)) ||
      failed(lowerToLLVM(*module)))
    return fail("lowering of kernels failed");

  std::unique_ptr<llvm::Module> result = translateModuleToLLVMIR(*module, llvmContext, "kernels");
  if (!result)
    return fail("translation of kernels failed");
  for (const KernelToLower &kernel : kernels)
    Wrapper(*result, kernel).build();
  return result;
}

} // namespace tenon
