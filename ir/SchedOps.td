//===- SchedOps.td - the sched dialect ------------------------------------===//
//
// `sched` is what every backend consumes: which kernel runs when, on which bytes, cut in which way, and where
// threads have to wait for each other.
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_SCHEDOPS_TD
#define TENON_IR_SCHEDOPS_TD

include "ir/LLMDialect.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Sched_Dialect : Dialect {
  let name = "sched";
  let summary = "Stages, slices, barriers and buffers";
  let description = [{
    A `sched.program` is one function that every thread of a team runs. Its stages call kernels, each cut into one slice
    for each thread; a `sched.barrier` stands wherever a stage reads what another thread wrote. Kernels
    are shared: layers of equal shape call the same one. Buffers are rows in an arena, at offsets that count bytes
    *for each row*: the buffer `at 2304` begins at `2304 * rows`.
  }];
  let cppNamespace = "::tenon::sched";
  let dependentDialects = ["::tenon::llm::LLMDialect", "::mlir::memref::MemRefDialect"];
  let useDefaultAttributePrinterParser = 1;
}

def Sched_Slice : I32EnumAttr<"Slice", "how a stage is cut into work for the threads", [
  I32EnumAttrCase<"columns", 0>, // each thread computes some columns (output rows of the weight) of all rows
  I32EnumAttrCase<"rows", 1>,    // each thread computes some rows (tokens)
  I32EnumAttrCase<"heads", 2>,   // each thread computes some (row, KV head) pairs
  I32EnumAttrCase<"none", 3>,    // thread 0 does all
]> {
  let cppNamespace = "::tenon::sched";
  let genSpecializedAttr = 0;
}
def Sched_SliceAttr : EnumAttr<Sched_Dialect, Sched_Slice, "slice"> { let assemblyFormat = "$value"; }

def Sched_Space : I32EnumAttr<"Space", "which rows a buffer has", [
  I32EnumAttrCase<"tokens", 0>, // one row for each token of the batch
  I32EnumAttrCase<"scored", 1>, // one row for each row to be scored
]> {
  let cppNamespace = "::tenon::sched";
  let genSpecializedAttr = 0;
}
def Sched_SpaceAttr : EnumAttr<Sched_Dialect, Sched_Space, "space"> { let assemblyFormat = "$value"; }

class Sched_Op<string mnemonic, list<Trait> traits = []> : Op<Sched_Dialect, mnemonic, traits>;

def Sched_Buffer : MemRefRankOf<[F32], [2]>;
def Sched_Operand : AnyTypeOf<[Sched_Buffer, LLM_WeightType, LLM_CacheType]>;

def Sched_WeightOp : Sched_Op<"weight", [Symbol, IsolatedFromAbove, SingleBlock, NoRegionArguments]> {
  let summary = "bytes in the weights section, and the recipe that makes them";
  let description = [{
    ```mlir
    sched.weight @w1 at 4096 bytes 345600 : !llm.weight<960x576xq4_1, x16k4> {
      %q = llm.weight "blk.0.attn_q.weight" : !llm.weight<576x576xq4_1>
      ...
      sched.yield %packed : !llm.weight<960x576xq4_1, x16k4>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$offset, I64Attr:$bytes, TypeAttrOf<LLM_WeightType>:$type);
  let regions = (region SizedRegion<1>:$recipe);
  let assemblyFormat = "$sym_name `at` $offset `bytes` $bytes `:` $type attr-dict-with-keyword $recipe";
}

def Sched_KernelOp : Sched_Op<"kernel", [Symbol, IsolatedFromAbove, SingleBlock]> {
  let summary = "what a kernel computes";
  let description = [{
    The body is its meaning in the `llm` dialect. `kind` is the name by which a backend finds its implementation;
    without one the body is decomposed. Arguments are activations, weights and a layer of the cache in the order of
    their use; the batch is always argument 0.

    ```mlir
    sched.kernel @norm_qkv kind "norm_qkv" (%batch: !llm.batch, %x: tensor<?x576xf32>, ...) -> tensor<?x960xf32> {
      ...
      sched.yield %y : tensor<?x960xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$kind, TypeAttrOf<FunctionType>:$function_type);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // Operands, then results.
    ::mlir::FunctionType getType() { return getFunctionType(); }
    ::mlir::Operation *getTerminator() { return getBody().front().getTerminator(); }
  }];
}

def Sched_YieldOp : Sched_Op<"yield", [Pure, Terminator, ReturnLike, ParentOneOf<["KernelOp", "WeightOp"]>]> {
  let summary = "the results of a kernel or a recipe";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

def Sched_ProgramOp : Sched_Op<"program", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "one phase: its stages in order";
  let description = [{
    `arena A + B` gives the bytes that a step needs for each token and for each scored row.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DefaultValuedAttr<I64Attr, "0">:$token_bytes,
                       DefaultValuedAttr<I64Attr, "0">:$scored_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `arena` $token_bytes `+` $scored_bytes attr-dict-with-keyword $body";
}

def Sched_BufferOp : Sched_Op<"buffer", [Pure]> {
  let summary = "rows in the arena";
  let description = [{
    ```mlir
    %x = sched.buffer tokens at 2304 : memref<?x576xf32>
    ```
    `at` is absent until `sched-plan-buffers` has placed it.
  }];
  let arguments = (ins Sched_SpaceAttr:$space, OptionalAttr<I64Attr>:$offset);
  let results = (outs Sched_Buffer:$result);
  let assemblyFormat = "`` $space (`at` $offset^)? attr-dict `:` type($result)";
}

def Sched_ViewOp : Sched_Op<"view", [Pure]> {
  let summary = "some columns of a buffer";
  let arguments = (ins Sched_Buffer:$source, I64Attr:$begin);
  let results = (outs Sched_Buffer:$result);
  let assemblyFormat = "$source `from` $begin attr-dict `:` type($source) `to` type($result)";
}

def Sched_ConstantOp : Sched_Op<"constant", [Pure]> {
  let summary = "a weight as an operand";
  let arguments = (ins FlatSymbolRefAttr:$weight);
  let results = (outs LLM_WeightType:$result);
  let assemblyFormat = "$weight attr-dict `:` type($result)";
}

def Sched_CacheOp : Sched_Op<"cache", [Pure]> {
  let summary = "one layer of the KV cache as an operand";
  let arguments = (ins I64Attr:$layer);
  let results = (outs LLM_CacheType:$result);
  let assemblyFormat = "`layer` $layer attr-dict `:` type($result)";
}

def Sched_StageOp : Sched_Op<"stage", [AttrSizedOperandSegments]> {
  let summary = "a kernel at work";
  let description = [{
    ```mlir
    sched.stage @norm_qkv(%x, %w0, %w1) into(%qkv) slice columns
      : memref<?x576xf32>, !llm.weight<576xf32>, !llm.weight<960x576xq4_1, x16k4> into memref<?x960xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Sched_Operand>:$inputs, Variadic<Sched_Buffer>:$outputs,
                       Sched_SliceAttr:$slice);
  let assemblyFormat = [{
    $kernel `(` $inputs `)` `into` `(` $outputs `)` `slice` `` $slice attr-dict
    `:` type($inputs) (`into` type($outputs)^)?
  }];
  let hasVerifier = 1;
}

def Sched_BarrierOp : Sched_Op<"barrier"> {
  let summary = "no thread goes on before all have come here";
  let assemblyFormat = "attr-dict";
}

def Sched_OutputOp : Sched_Op<"output"> {
  let summary = "a buffer that the caller reads after the program";
  let arguments = (ins StrAttr:$name, Sched_Buffer:$buffer);
  let assemblyFormat = "$name $buffer attr-dict `:` type($buffer)";
}

#endif // TENON_IR_SCHEDOPS_TD
