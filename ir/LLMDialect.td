//===- LLMDialect.td - the llm dialect, its types and attributes ---------===//
//
// `llm` is the graph level: one operation for one idea of a paper.
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_LLMDIALECT_TD
#define TENON_IR_LLMDIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def LLM_Dialect : Dialect {
  let name = "llm";
  let summary = "Transformer graphs at the level a paper uses";
  let description = [{
    Activations are `tensor<?xCxf32>`: one row for each token of a *ragged* batch, without padding. A
    `!llm.batch` value carries what the rows mean: token ids, positions, which sequence a row belongs to,
    block tables and the rows to be scored. Weights are values too, of type `!llm.weight`; everything that
    can be done to them while compiling (concatenate, permute, convert, pack) is an operation on those values,
    evaluated lazily when the executable is written. The KV cache is a value threaded through `llm.kv_append`,
    so that the order of its updates is in the IR.
  }];
  let cppNamespace = "::tenon::llm";
  let dependentDialects = ["::mlir::func::FuncDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class LLM_Type<string name, string typeMnemonic> : TypeDef<LLM_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def LLM_BatchType : LLM_Type<"Batch", "batch"> {
  let summary = "a ragged batch: what each row of an activation is";
  let description = [{
    T tokens of S sequences one after another, R of them to be scored:

    ```
    rows       t0 t1 t2 t3 | t4 | t5 t6
    sequence   0  0  0  0  | 1  | 2  2
    position   0  1  2  3  | 9  | 4  5
    ```

    Where a decoder attends to an encoder's rows, the batch also tells how many rows each sequence has there: its *memory*.
  }];
}

def LLM_WeightType : LLM_Type<"Weight", "weight"> {
  let summary = "a tensor known while compiling";
  let description = [{
    `!llm.weight<960x576xq4_1>` is a matrix of 960 rows (outputs) and 576 columns (inputs) in the storage format
    `q4_1`; `!llm.weight<960x576xq4_1, x16k4>` is the same matrix in a packed layout that kernels read. A stack of
    matrices, one for each expert, is `!llm.weight<8x1536x576xq4_1>`.
    Storage formats carry the names of GGUF in lower case, `f64` is for tables.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::tenon::Storage":$storage,
                        "::tenon::llm::Layout":$layout);
  let hasCustomAssemblyFormat = 1;
  let builders = [TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape, "::tenon::Storage":$storage), [{
    return $_get($_ctxt, shape, storage, ::tenon::llm::Layout::plain);
  }]>];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    int64_t getNumElements() const;
    // A matrix is [rows, columns]; a vector is one row. The rows of a stack are those of all its matrices.
    int64_t getRows() const { return getNumElements() / getColumns(); }
    // Rows of one matrix of a stack, or of the matrix.
    int64_t getMatrixRows() const { return getRank() == 1 ? 1 : getShape()[getRank() - 2]; }
    int64_t getColumns() const { return getShape().back(); }
    // Bytes in the weights section. Packed: rows are padded to 16, columns to the step of the layout.
    int64_t getByteSize() const;
    WeightType withStorage(::tenon::Storage storage) const;
    WeightType withLayout(::tenon::llm::Layout layout) const;
  }];
}

def LLM_CacheType : LLM_Type<"Cache", "cache"> {
  let summary = "the KV cache of all layers";
  let description = [{
    `!llm.cache<30 x [k: 3x64xbf16, v: 3x64xbf16]>`: for each of 30 layers and each cached position a key row of 3
    heads of 64 elements and a value row of as many heads. In `!llm.cache<27 x [k: 1x576xbf16, v: 512 of k]>` the value
    of a head is the first 512 elements of its key, which is all that is stored (arXiv:2405.04434).
    Elements are f32, bf16, f16 or i8; the latter count in steps of a scale (bf16) that 32 neighbours of a row share.
    `!llm.cache<6 x [k: 8x64xbf16, v: 8x64xbf16], memory>` is the cache of cross-attention: its positions are those of the
    encoder's tokens, written once by `@encode`.
  }];
  let parameters = (ins "int64_t":$layers, "int64_t":$heads, "int64_t":$headDim, "int64_t":$valueDim,
                        "bool":$valuesInKeys, "::mlir::Type":$elementType, "bool":$memory);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    // Columns of a key row, and of a value row.
    int64_t getWidth() const { return getHeads() * getHeadDim(); }
    int64_t getValueWidth() const { return getHeads() * getValueDim(); }
    // i8: a row has a scale for each so many elements, and for what is left of it.
    static constexpr int64_t groupSize = 32;
    bool isQuantised() const { return getElementType().isInteger(8); }
    static int64_t getGroups(int64_t dim) { return (dim + groupSize - 1) / groupSize; }
    static ::mlir::Type getScaleType(::mlir::MLIRContext *context) { return ::mlir::BFloat16Type::get(context); }
    // Bytes that one head's key takes, and its value: 0 where that is part of the key.
    int64_t getKeyBytes() const { return getRowBytes(getHeadDim()); }
    int64_t getValueBytes() const { return getValuesInKeys() ? 0 : getRowBytes(getValueDim()); }
    // Of one position of one layer.
    int64_t getPositionBytes() const { return getHeads() * (getKeyBytes() + getValueBytes()); }
    // Of `dim` elements and their scales.
    int64_t getRowBytes(int64_t dim) const;
    CacheType withLayers(int64_t layers) const;
  }];
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class LLM_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::tenon::llm";
  let genSpecializedAttr = 0;
}
class LLM_EnumAttr<I32EnumAttr info, string attrMnemonic> : EnumAttr<LLM_Dialect, info, attrMnemonic> {
  let assemblyFormat = "$value";
}

def LLM_Layout : LLM_Enum<"Layout", "how the bytes of a weight are arranged", [
  I32EnumAttrCase<"plain", 0>,
  I32EnumAttrCase<"x16k1", 1>, // 16 rows interleaved, 1 column
  I32EnumAttrCase<"x16k2", 2>, // 16 rows interleaved, 2 consecutive columns a row
  I32EnumAttrCase<"x16k4", 4>, // 16 rows interleaved, 4 consecutive columns a row
  I32EnumAttrCase<"x1k8", 8>,  // rows one after another, padded to 8 columns
]>;
def LLM_LayoutAttr : LLM_EnumAttr<LLM_Layout, "layout">;

def LLM_RopeStyle : LLM_Enum<"RopeStyle", "which elements of a head form a rotated pair", [
  I32EnumAttrCase<"half", 0>,        // (i, i + dim / 2)
  I32EnumAttrCase<"interleaved", 1>, // (2 i, 2 i + 1)
]>;
def LLM_RopeStyleAttr : LLM_EnumAttr<LLM_RopeStyle, "rope_style">;

def LLM_SinusoidOrder : LLM_Enum<"SinusoidOrder", "where sines and cosines stand in a row", [
  I32EnumAttrCase<"interleaved", 0>, // sine and cosine of each frequency side by side
  I32EnumAttrCase<"halves", 1>,      // all sines, then all cosines
]>;
def LLM_SinusoidOrderAttr : LLM_EnumAttr<LLM_SinusoidOrder, "sinusoid_order">;

def LLM_Activation : LLM_Enum<"ActivationKind", "an elementwise function", [
  I32EnumAttrCase<"silu", 0>,
  I32EnumAttrCase<"gelu", 1>,
  I32EnumAttrCase<"gelu_tanh", 2>,
  I32EnumAttrCase<"quick_gelu", 3>,
  I32EnumAttrCase<"relu", 4>,
  I32EnumAttrCase<"sigmoid", 5>,
]>;

def LLM_GroupScore : LLM_Enum<"GroupScore", "what the best experts of a group are judged by", [
  I32EnumAttrCase<"largest", 0>,     // the largest score
  I32EnumAttrCase<"largest_two", 1>, // the sum of the two largest
]>;
def LLM_GroupScoreAttr : LLM_EnumAttr<LLM_GroupScore, "group_score">;
def LLM_ActivationAttr : LLM_EnumAttr<LLM_Activation, "activation_kind">;

def LLM_KeyRows : LLM_Enum<"KeyRows", "what the rows of K and V are", [
  I32EnumAttrCase<"tokens", 0>,  // the tokens of this batch
  I32EnumAttrCase<"context", 1>, // all cached positions of its sequences, one sequence after another
  I32EnumAttrCase<"memory", 2>,  // what an encoder made of its sequences, one sequence after another
]>;
def LLM_KeyRowsAttr : LLM_EnumAttr<LLM_KeyRows, "key_rows">;

def LLM_BiasIndex : LLM_Enum<"BiasIndex", "what chooses an entry of a score bias", [
  I32EnumAttrCase<"distance", 0>, // key position - query position
  I32EnumAttrCase<"key", 1>,      // key position
]>;
def LLM_BiasIndexAttr : LLM_EnumAttr<LLM_BiasIndex, "bias_index">;

#endif // TENON_IR_LLMDIALECT_TD
