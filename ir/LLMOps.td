//===- LLMOps.td - the operations of the llm dialect ----------------------===//
//
// In the order in which a token meets them: weights, embedding, norms, linear, rope, attention and its cache,
// elementwise, rows, fusion.
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_LLMOPS_TD
#define TENON_IR_LLMOPS_TD

include "ir/Interfaces.td"
include "ir/LLMDialect.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// [rows, columns] in f32; rows are known at run time.
def LLM_Rows : 2DTensorOf<[F32]>;

class LLM_Op<string mnemonic, list<Trait> traits = []> : Op<LLM_Dialect, mnemonic, traits>;

// Reads and writes rows; its result follows from its operands.
class LLM_RowsOp<string mnemonic, list<Trait> traits = []>
    : LLM_Op<mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<ReferenceOpInterface>], traits)>;

// Can be written in an architecture file.
def LLM_Template : DeclareOpInterfaceMethods<TemplateOpInterface>;
defvar LLM_InferType = InferTypeOpAdaptor;

//===----------------------------------------------------------------------===//
// Weights: evaluated by the compiler
//===----------------------------------------------------------------------===//

class LLM_WeightOpBase<string mnemonic, list<Trait> traits = []>
    : LLM_Op<mnemonic, !listconcat([Pure, WeightOpInterface], traits)> {
  let results = (outs LLM_WeightType:$result);
}

def LLM_WeightOp : LLM_WeightOpBase<"weight"> {
  let summary = "a tensor of the checkpoint";
  let description = [{
    Names a tensor as the checkpoint does and says how it is stored there.

    ```mlir
    %w = llm.weight "model.layers.0.self_attn.q_proj.weight" : !llm.weight<576x576xbf16>
    ```
  }];
  let arguments = (ins StrAttr:$tensor);
  let assemblyFormat = "$tensor attr-dict `:` type($result)";
}

def LLM_WeightConcatOp : LLM_WeightOpBase<"weight_concat", [LLM_InferType]> {
  let summary = "stacks matrices of equal width, or joins vectors";
  let description = [{
    ```mlir
    %qkv = llm.weight_concat %q, %k, %v : !llm.weight<576x576xq4_1>, !llm.weight<192x576xq4_1>, !llm.weight<192x576xq4_1>
    ```
    All inputs have the same columns and storage; the result is `!llm.weight<960x576xq4_1>`. Slices that make up a
    weight in its order are that weight.
  }];
  let arguments = (ins Variadic<LLM_WeightType>:$inputs);
  let assemblyFormat = "$inputs attr-dict `:` type($inputs)";
  let hasFolder = 1;
}

def LLM_WeightDeinterleaveOp : LLM_WeightOpBase<"weight_deinterleave", [SameOperandsAndResultType]> {
  let summary = "reorders the rows of each head from interleaved to half-split rotary order";
  let description = [{
    Row `2 i` of a head becomes row `i`, row `2 i + 1` becomes row `i + head_dim / 2`. GGUF files of the llama family
    store Q and K in interleaved order; this restores the order of the original checkpoint.

    ```mlir
    %1 = llm.weight_deinterleave %0 heads 9 : !llm.weight<576x576xq4_1>
    ```
  }];
  let arguments = (ins LLM_WeightType:$input, ConfinedAttr<I64Attr, [IntPositive]>:$heads);
  let assemblyFormat = "$input `heads` $heads attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def LLM_WeightSliceOp : LLM_WeightOpBase<"weight_slice", [LLM_InferType]> {
  let summary = "a run of rows, or one of every group of rows";
  let description = [{
    Rows `begin` to `end`, or of a vector these elements: the part of a fused checkpoint tensor that one projection
    needs; of a stack these rows of each matrix. With `every` the rows are groups of that many, and the run is taken from each: a tensor that holds
    query, key and value of head 0, then those of head 1, and so on.

    ```mlir
    %1 = llm.weight_slice %0 rows 0 to 64 : !llm.weight<192x64xf32>            // !llm.weight<64x64xf32>
    %2 = llm.weight_slice %0 rows 16 to 32 every 48 : !llm.weight<192x64xf32>  // !llm.weight<64x64xf32>
    ```
  }];
  let arguments = (ins LLM_WeightType:$input, I64Attr:$begin, I64Attr:$end,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$every);
  let assemblyFormat = "$input `rows` $begin `to` $end (`every` $every^)? attr-dict `:` type($input)";
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "int64_t":$begin, "int64_t":$end), [{
    build($_builder, $_state, input, begin, end, ::mlir::IntegerAttr());
  }]>];
  let extraClassDeclaration = [{
    // The row of the input that row `row` of the result is.
    int64_t getSourceRow(int64_t row);
  }];
}

def LLM_WeightReshapeOp : LLM_WeightOpBase<"weight_reshape"> {
  let summary = "the same rows as a stack of matrices, or the elements as a vector";
  let description = [{
    What is stored does not change: matrices of equal size that lie one after another are a stack, and the biases of all
    experts one vector.

    ```mlir
    %s = llm.weight_reshape %w : !llm.weight<192x64xf32> to !llm.weight<4x48x64xf32>
    %b = llm.weight_reshape %c : !llm.weight<4x48xf32> to !llm.weight<192xf32>
    ```
  }];
  let arguments = (ins LLM_WeightType:$input);
  let assemblyFormat = "$input attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def LLM_WeightTransposeOp : LLM_WeightOpBase<"weight_transpose", [LLM_InferType]> {
  let summary = "swaps the rows and columns of a matrix, or of each matrix of a stack";
  let description = [{
    For checkpoints that store a product's matrix as `[in, out]`. The storage has no groups of columns, which would not
    stay together. What is swapped twice is as it was.

    ```mlir
    %1 = llm.weight_transpose %0 : !llm.weight<64x192xf32>   // !llm.weight<192x64xf32>
    ```
  }];
  let arguments = (ins LLM_WeightType:$input);
  let assemblyFormat = "$input attr-dict `:` type($input)";
  let hasFolder = 1;
}

def LLM_WeightConvertOp : LLM_WeightOpBase<"weight_convert"> {
  let summary = "stores a weight in another format";
  let description = [{
    Decodes to numbers and rounds them to the storage of the result. Towards `q8_0` and `q4_1` this is quantisation in
    groups of 32 along the columns: symmetric, or with a minimum.

    ```mlir
    %1 = llm.weight_convert %0 : !llm.weight<576x576xq4_1> to !llm.weight<576x576xf32>
    ```
  }];
  let arguments = (ins LLM_WeightType:$input);
  let assemblyFormat = "$input attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def LLM_WeightPackOp : LLM_WeightOpBase<"weight_pack"> {
  let summary = "arranges a weight in the layout that kernels read";
  let description = [{
    ```mlir
    %1 = llm.weight_pack %0 : !llm.weight<960x576xq4_1> to !llm.weight<960x576xq4_1, x16k4>
    ```
  }];
  let arguments = (ins LLM_WeightType:$input);
  let assemblyFormat = "$input attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
}

def LLM_RopeFrequenciesOp : LLM_WeightOpBase<"rope_frequencies", [LLM_InferType]> {
  let summary = "the angular frequency of each rotated pair";
  let description = [{
    `theta ^ (-2 i / dim)` radians per position for pair `i`, in f64 (RoFormer, arXiv:2104.09864). `llama3` scaling divides the
    frequencies of long wavelengths by `factor` and blends between `low` and `high` (Llama 3.1 model card);
    `linear` divides all of them, `divided` each by its own number of the list `by`. `yarn` (arXiv:2309.00071) divides those of pairs that turn less than `slow` (1) times
    in the original context, keeps those that turn more than `fast` (32) times, and blends between them by the index of
    the pair. `longrope` (arXiv:2402.13753) has two such lists: the result has a row of frequencies for sequences up
    to `original` tokens, divided by `short`, and a row for longer ones, divided by `long`. `dynamic` leaves them
    as they are: `llm.rope_angles` stretches them by the length of the sequence.

    ```mlir
    %f = llm.rope_frequencies dim 64 theta 1.000000e+05                          // !llm.weight<32xf64>
    %g = llm.rope_frequencies dim 4 theta 1.000000e+04
       scaling {type = "longrope", original = 4096.0, short = [1.0, 1.5], long = [1.0, 8.0]}   // !llm.weight<2x2xf64>
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntPositive]>:$dim, F64Attr:$theta,
                       OptionalAttr<DictionaryAttr>:$scaling);
  let assemblyFormat = "`dim` $dim `theta` $theta (`scaling` $scaling^)? attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // The table, in double precision.
    ::llvm::SmallVector<double> evaluate();
    // What the scaling multiplies cosines and sines by: its number `attention`, or else 0.1 ln(factor) + 1 for
    // `yarn` and sqrt(1 + ln(factor) / ln(original)) for `longrope`.
    double getAngleFactor();
  }];
}

def LLM_SinusoidalOp : LLM_WeightOpBase<"sinusoidal"> {
  let summary = "a table of sines and cosines of positions";
  let description = [{
    Row p has the sine and the cosine of `p 10000^(-2 i / columns)` for each i (arXiv:1706.03762, section 3.5): side by side
    (`interleaved`), or all sines before all cosines (`halves`).

    ```mlir
    %t = llm.sinusoidal interleaved : !llm.weight<512x512xf32>
    ```
  }];
  let arguments = (ins LLM_SinusoidOrderAttr:$order);
  let assemblyFormat = "`` $order attr-dict `:` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // Rows `first` to `first + count`, computed in double precision.
    ::llvm::SmallVector<float> evaluate(int64_t first, int64_t count);
  }];
}

def LLM_AlibiOp : LLM_WeightOpBase<"alibi", [LLM_InferType]> {
  let summary = "the score bias of ALiBi: a slope for each head times the position";
  let description = [{
    Entry n of head h is `scale slope(h) (n - origin)` (arXiv:2108.12409). Slopes are `2^(-largest (h + 1) / m)` for a number
    of heads m that is a power of two; other numbers take the slopes of the next lower power and then every other one
    of the next higher. With `bfloat16` the slope, the position and their product are rounded to that type, before
    `scale`, as Falcon's checkpoints (arXiv:2311.16867) were trained.

    ```mlir
    %b = llm.alibi heads 8 length 2048 origin 2047        // !llm.weight<8x2048xf32>: distances -2047 to 0
    %c = llm.alibi heads 8 length 2048 scale 1.250000e-01 bfloat16    // keys 0 to 2047
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntPositive]>:$heads, ConfinedAttr<I64Attr, [IntPositive]>:$length,
                       DefaultValuedAttr<I64Attr, "0">:$origin, DefaultValuedAttr<F64Attr, "8.0">:$largest,
                       DefaultValuedAttr<F64Attr, "1.0">:$scale, UnitAttr:$bfloat16);
  let assemblyFormat = [{
    `heads` $heads `length` $length (`origin` $origin^)? (`largest` $largest^)? (`scale` $scale^)?
    (`bfloat16` $bfloat16^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // The row of one head.
    ::llvm::SmallVector<float> evaluate(int64_t head);
  }];
}

def LLM_RelativeBiasOp : LLM_WeightOpBase<"relative_bias", [LLM_InferType]> {
  let summary = "a learned score bias for each bucket of distances, spread out by distance";
  let description = [{
    The input has a row for each bucket and a column for each head; entry n of head h is the input at the bucket of
    distance `n - max_distance`, key minus query (arXiv:1910.10683, section 2.1). The first half of the buckets hold one distance each, the
    others ever more, up to `max_distance`, from where on all are in the last. `bidirectional` gives keys before
    the query half of the buckets and those after it the others; without it the distances above 0 share bucket 0.

    ```mlir
    %b = llm.relative_bias %w max_distance 128 bidirectional : !llm.weight<32x8xf32>   // !llm.weight<8x257xf32>
    %c = llm.relative_bias %w max_distance 128 : !llm.weight<32x8xf32>                 // !llm.weight<8x129xf32>
    ```
  }];
  let arguments = (ins LLM_WeightType:$input, ConfinedAttr<I64Attr, [IntPositive]>:$max_distance,
                       UnitAttr:$bidirectional);
  let assemblyFormat = "$input `max_distance` $max_distance (`bidirectional` $bidirectional^)? attr-dict `:` type($input)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // The bucket of a distance, key minus query.
    int64_t getBucket(int64_t distance);
  }];
}

//===----------------------------------------------------------------------===//
// Embedding, norms, linear
//===----------------------------------------------------------------------===//

def LLM_EmbeddingOp : LLM_RowsOp<"embedding", [LLM_Template, LLM_InferType]> {
  let summary = "looks up the row of each token id";
  let description = [{
    `out[t] = table[ids[t]]`.

    ```mlir
    %x = llm.embedding %batch, %table : !llm.weight<49152x576xq8_0>   // tensor<?x576xf32>
    ```
  }];
  let arguments = (ins LLM_BatchType:$batch, LLM_WeightType:$table);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$batch `,` $table attr-dict `:` type($table)";
  let hasVerifier = 1;
}

def LLM_PositionEmbeddingOp : LLM_RowsOp<"position_embedding", [LLM_Template, LLM_InferType]> {
  let summary = "looks up the row of each token's position";
  let description = [{
    `out[t] = table[positions[t] + offset]`: learned positions (arXiv:1706.03762, section 3.5), which are added to the
    embedding of the tokens. Some tables begin with `offset` rows that belong to no position.

    ```mlir
    %p = llm.position_embedding %batch, %table : !llm.weight<1024x768xf32>             // tensor<?x768xf32>
    %q = llm.position_embedding %batch, %table offset 2 : !llm.weight<2050x768xf32>
    ```
  }];
  let arguments = (ins LLM_BatchType:$batch, LLM_WeightType:$table,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$offset);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$batch `,` $table (`offset` $offset^)? attr-dict `:` type($table)";
  let hasVerifier = 1;
}

def LLM_TypeEmbeddingOp : LLM_RowsOp<"type_embedding", [LLM_Template, LLM_InferType]> {
  let summary = "looks up the row of each token's type";
  let description = [{
    `out[t] = table[types[t]]`: which of several joined texts a token belongs to (arXiv:1810.04805, section 3).

    ```mlir
    %s = llm.type_embedding %batch, %table : !llm.weight<2x768xf32>   // tensor<?x768xf32>
    ```
  }];
  let arguments = (ins LLM_BatchType:$batch, LLM_WeightType:$table);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$batch `,` $table attr-dict `:` type($table)";
  let hasVerifier = 1;
}

def LLM_RMSNormOp : LLM_RowsOp<"rms_norm", [LLM_Template, NormOpInterface, AllTypesMatch<["input", "result"]>]> {
  let summary = "root mean square normalisation of each row";
  let description = [{
    `x / sqrt(mean(x^2) + eps) * w` (arXiv:1910.07467). With `heads` each of that many equal parts of a row is
    normalised by itself, all with the same weight: the norm of queries and keys (arXiv:2302.05442). With `offset` o the
    factor is `w + o`: checkpoints of the Gemma family (arXiv:2403.08295) store `w - 1`.

    ```mlir
    %y = llm.rms_norm %x, %w eps 1.000000e-05 : tensor<?x576xf32>, !llm.weight<576xf32>
    %q = llm.rms_norm %p, %v heads 16 eps 1.000000e-06 : tensor<?x2048xf32>, !llm.weight<128xf32>
    %z = llm.rms_norm %x, %w eps 1.000000e-06 offset 1.000000e+00 : tensor<?x576xf32>, !llm.weight<576xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input, LLM_WeightType:$weight,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">:$heads, F64Attr:$eps,
                       DefaultValuedAttr<F64Attr, "0.0">:$offset);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = [{
    $input `,` $weight (`heads` $heads^)? `eps` $eps (`offset` $offset^)? attr-dict
    `:` type($input) `,` type($weight)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // The width of what is normalised.
    int64_t getHeadDim() { return getInput().getType().getDimSize(1) / getHeads(); }
  }];
}

def LLM_LayerNormOp : LLM_RowsOp<"layer_norm", [LLM_Template, NormOpInterface, AllTypesMatch<["input", "result"]>]> {
  let summary = "normalisation of each row by its mean and variance";
  let description = [{
    `(x - mean(x)) / sqrt(var(x) + eps) * w + b` (arXiv:1607.06450); the variance is that of the row itself,
    `mean((x - mean(x))^2)`. The bias is optional.

    ```mlir
    %y = llm.layer_norm %x, %w, %b eps 1.000000e-05 : tensor<?x768xf32>, !llm.weight<768xf32>, !llm.weight<768xf32>
    %z = llm.layer_norm %x, %w eps 1.000000e-05 : tensor<?x768xf32>, !llm.weight<768xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input, LLM_WeightType:$weight, Optional<LLM_WeightType>:$bias, F64Attr:$eps);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = [{
    $input `,` $weight (`,` $bias^)? `eps` $eps attr-dict `:` type($input) `,` type($weight) (`,` type($bias)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // Whole rows are normalised.
    int64_t getHeads() { return 1; }
  }];
}

def LLM_LinearOp : LLM_RowsOp<"linear", [LLM_Template, LLM_InferType]> {
  let summary = "a matrix product with a weight, and an optional bias";
  let description = [{
    `y = x W^T + b`: x `[rows, K]`, W `[N, K]`, b `[N]`, y `[rows, N]`.

    ```mlir
    %y = llm.linear %x, %w : tensor<?x576xf32>, !llm.weight<1536x576xq4_1>           // tensor<?x1536xf32>
    %z = llm.linear %x, %w, %b : tensor<?x576xf32>, !llm.weight<1536x576xf32>, !llm.weight<1536xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input, LLM_WeightType:$weight, Optional<LLM_WeightType>:$bias);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = [{
    $input `,` $weight (`,` $bias^)? attr-dict `:` type($input) `,` type($weight) (`,` type($bias)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "::mlir::Value":$weight), [{
    build($_builder, $_state, input, weight, ::mlir::Value());
  }]>];
  let hasVerifier = 1;
}

def LLM_HeadLinearOp : LLM_RowsOp<"head_linear", [LLM_InferType]> {
  let summary = "each head times a matrix of its own";
  let description = [{
    A product with a block-diagonal matrix: x `[rows, H K]`, W `[H, N, K]`, y `[rows, H N]`.

    ```mlir
    %y = llm.head_linear %x, %w : tensor<?x2048xf32>, !llm.weight<16x512x128xf32>   // tensor<?x8192xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input, LLM_WeightType:$weight);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$input `,` $weight attr-dict `:` type($input) `,` type($weight)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Mixture of experts (arXiv:1701.06538, arXiv:2401.04088)
//
//   scores = softmax(linear(x))          [T, E]
//   choice = top_k(scores)               [T, K]     weights = normalise(gather_columns(scores, choice))
//   y = combine(expert_linear(act(expert_linear(x)) * expert_linear(x)), weights)
//
// What the K chosen experts of a token compute lies side by side in its row, so that everything elementwise works on
// it unchanged.
//===----------------------------------------------------------------------===//

def LLM_SoftmaxOp : LLM_RowsOp<"softmax", [LLM_Template, SameOperandsAndResultType]> {
  let summary = "makes each row a distribution";
  let description = [{
    `exp(x - max x) / sum exp(x - max x)` of each row.

    ```mlir
    %p = llm.softmax %x : tensor<?x8xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def LLM_TopKOp : LLM_RowsOp<"top_k", [LLM_Template, LLM_InferType]> {
  let summary = "the columns of the largest elements of each row";
  let description = [{
    The numbers of the `count` largest columns, the largest first, the left one first of two that are equal; small integers
    are exact in f32. A `bias` is added to the scores for this choice alone (arXiv:2408.15664). With `groups` the columns
    are so many equal groups, of which the best `top_groups` are searched (arXiv:2405.04434): groups are judged by
    their largest score or by the sum of the two largest (arXiv:2412.19437).

    ```mlir
    %c = llm.top_k %p count 2 : tensor<?x8xf32>   // tensor<?x2xf32>
    %d = llm.top_k %p, %b count 8 groups 8 top 4 by largest_two : tensor<?x256xf32>, !llm.weight<256xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input, Optional<LLM_WeightType>:$bias,
                       ConfinedAttr<I64Attr, [IntPositive]>:$count,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">:$groups,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">:$top_groups,
                       DefaultValuedAttr<LLM_GroupScoreAttr, "::tenon::llm::GroupScore::largest">:$group_score);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = [{
    $input (`,` $bias^)? `count` $count (`groups` $groups^ `top` $top_groups)? (`by` $group_score^)? attr-dict
    `:` type($input) (`,` type($bias)^)?
  }];
  let hasVerifier = 1;
}

def LLM_GatherColumnsOp : LLM_RowsOp<"gather_columns", [LLM_Template, AllTypesMatch<["indices", "result"]>]> {
  let summary = "the elements of each row in the columns that it names";
  let description = [{
    `out[t, k] = x[t, indices[t, k]]`.

    ```mlir
    %w = llm.gather_columns %p, %c : tensor<?x8xf32>, tensor<?x2xf32>   // tensor<?x2xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input, LLM_Rows:$indices);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$input `,` $indices attr-dict `:` type($input) `,` type($indices)";
}

def LLM_NormaliseOp : LLM_RowsOp<"normalise", [LLM_Template, SameOperandsAndResultType]> {
  let summary = "divides each row by its sum";
  let description = [{
    ```mlir
    %n = llm.normalise %w : tensor<?x2xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def LLM_ExpertLinearOp : LLM_RowsOp<"expert_linear", [LLM_Template, LLM_InferType]> {
  let summary = "matrix products with the weights of each token's chosen experts";
  let description = [{
    Slot k of row t is `W[choice[t, k]] x + b[choice[t, k]]`: W `[E, N, I]`, b `[E N]`, choice `[rows, K]`, y `[rows, K N]`.
    x is `[rows, I]`, the same for all slots, or `[rows, K I]`, a part for each.

    ```mlir
    %y = llm.expert_linear %x, %c, %w : tensor<?x64xf32>, tensor<?x2xf32>, !llm.weight<4x48x64xf32>   // tensor<?x96xf32>
    %z = llm.expert_linear %y, %c, %v, %b
       : tensor<?x96xf32>, tensor<?x2xf32>, !llm.weight<4x64x48xf32>, !llm.weight<256xf32>         // tensor<?x128xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input, LLM_Rows:$choice, LLM_WeightType:$weight, Optional<LLM_WeightType>:$bias);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = [{
    $input `,` $choice `,` $weight (`,` $bias^)? attr-dict
    `:` type($input) `,` type($choice) `,` type($weight) (`,` type($bias)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getSlots() { return getChoice().getType().getDimSize(1); }
    // Whether all slots read the same columns.
    bool isShared() { return getInput().getType().getDimSize(1) == getWeight().getType().getColumns(); }
  }];
}

def LLM_CombineOp : LLM_RowsOp<"combine", [LLM_Template, LLM_InferType]> {
  let summary = "the weighted sum of the parts of each row";
  let description = [{
    `out[t] = sum_k weights[t, k] x[t, k]`: x `[rows, K H]`, weights `[rows, K]`, out `[rows, H]`. With one weight it is a
    gate for the whole row.

    ```mlir
    %y = llm.combine %x, %w : tensor<?x128xf32>, tensor<?x2xf32>   // tensor<?x64xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input, LLM_Rows:$weights);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$input `,` $weights attr-dict `:` type($input) `,` type($weights)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Positions, attention, cache
//===----------------------------------------------------------------------===//

def LLM_RopeAnglesOp : LLM_RowsOp<"rope_angles", [LLM_InferType]> {
  let summary = "cosine and sine of each token's rotation";
  let description = [{
    Row t is `[cos(p f_0) .. cos(p f_n-1), sin(p f_0) .. sin(p f_n-1)]` times `factor`, p the token's position.
    One such table serves every head and layer with the same frequencies.

    With `original` N the frequencies are others for a sequence that has more than N tokens when the step is done: the second
    row of those that have two, or with `dynamic` F those of pair i times `s^(-i / (n - 1))`, where `s = F L / N - F + 1`
    for L tokens (NTK-aware scaling of the base theta). Each sequence goes by its own length.

    ```mlir
    %a = llm.rope_angles %batch, %f : !llm.weight<32xf64>                              // tensor<?x64xf32>
    %b = llm.rope_angles %batch, %g original 4096 : !llm.weight<2x32xf64>
    %c = llm.rope_angles %batch, %f original 2048 dynamic 4.000000e+00 : !llm.weight<32xf64>
    ```
  }];
  let arguments = (ins LLM_BatchType:$batch, LLM_WeightType:$frequencies,
                       DefaultValuedAttr<F64Attr, "1.0">:$factor,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$original,
                       DefaultValuedAttr<F64Attr, "0.0">:$dynamic);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = [{
    $batch `,` $frequencies (`factor` $factor^)? (`original` $original^)? (`dynamic` $dynamic^)? attr-dict
    `:` type($frequencies)
  }];
  let hasVerifier = 1;
}

def LLM_RopeOp : LLM_RowsOp<"rope", [LLM_Template, AllTypesMatch<["input", "result"]>]> {
  let summary = "rotates pairs of elements of each head by the token's angles";
  let description = [{
    For a pair (a, b) of a head: `(a cos - b sin, b cos + a sin)`. As many elements as the angles are wide are rotated,
    from element `first` on; the others pass through.

    ```mlir
    %r = llm.rope %q, %a heads 9 half : tensor<?x576xf32>, tensor<?x64xf32>
    %s = llm.rope %p, %a heads 4 interleaved first 12 : tensor<?x80xf32>, tensor<?x8xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input, LLM_Rows:$angles, ConfinedAttr<I64Attr, [IntPositive]>:$heads,
                       LLM_RopeStyleAttr:$style,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$first);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = [{
    $input `,` $angles `heads` $heads `` $style (`first` $first^)? attr-dict `:` type($input) `,` type($angles)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getHeadDim() { return getInput().getType().getDimSize(1) / getHeads(); }
  }];
}

def LLM_RepeatKVOp : LLM_RowsOp<"repeat_kv", [LLM_Template, LLM_InferType]> {
  let summary = "copies each key or value head for every query head of its group";
  let description = [{
    Head h of the result is head `h / times` of the input: the textbook form of grouped-query attention
    (arXiv:2305.13245). `llm-mha-to-gqa` removes it.

    ```mlir
    %r = llm.repeat_kv %k heads 3 times 3 : tensor<?x192xf32>   // tensor<?x576xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input, ConfinedAttr<I64Attr, [IntPositive]>:$heads,
                       ConfinedAttr<I64Attr, [IntPositive]>:$times);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$input `heads` $heads `times` $times attr-dict `:` type($input)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def LLM_JoinHeadsOp : LLM_RowsOp<"join_heads", [LLM_Template, LLM_InferType]> {
  let summary = "puts the heads of two rows side by side";
  let description = [{
    Head h of the result is head h of `lhs`, then head h of `rhs`.

    ```mlir
    %k = llm.join_heads %nope, %rope heads 4 : tensor<?x48xf32>, tensor<?x32xf32>   // tensor<?x80xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$lhs, LLM_Rows:$rhs, ConfinedAttr<I64Attr, [IntPositive]>:$heads);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$lhs `,` $rhs `heads` $heads attr-dict `:` type($lhs) `,` type($rhs)";
  let hasVerifier = 1;
}

def LLM_SliceHeadsOp : LLM_RowsOp<"slice_heads", [LLM_InferType]> {
  let summary = "a run of columns of each head";
  let description = [{
    ```mlir
    %n = llm.slice_heads %q heads 4 columns 0 to 12 : tensor<?x80xf32>   // tensor<?x48xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input, ConfinedAttr<I64Attr, [IntPositive]>:$heads, I64Attr:$begin, I64Attr:$end);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$input `heads` $heads `columns` $begin `to` $end attr-dict `:` type($input)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getHeadDim() { return getInput().getType().getDimSize(1) / getHeads(); }
  }];
}

// Optional parts of attention; 0 is none.
defvar LLM_WindowAttr = DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">;
defvar LLM_SoftcapAttr = DefaultValuedAttr<F64Attr, "0.0">;
// How a table of score biases is read; without one they mean nothing.
defvar LLM_BiasByAttr = DefaultValuedAttr<LLM_BiasIndexAttr, "::tenon::llm::BiasIndex::distance">;
defvar LLM_BiasOriginAttr = DefaultValuedAttr<I64Attr, "0">;

def LLM_AttentionOp : LLM_RowsOp<"attention", [LLM_Template, LLM_InferType, AttrSizedOperandSegments]> {
  let summary = "scaled dot-product attention within each sequence";
  let description = [{
    `softmax(scale q k^T, keys up to the query's position) v` for each head (arXiv:1706.03762). Query head h uses
    key head `h / (num_heads / num_kv_heads)`. `keys` says what the rows of K and V are: the `tokens` of this
    batch, or the whole `context` of its sequences as `llm.kv_read` gives it. With `window` w the token at
    position p sees positions `p - w + 1` to p only (arXiv:2310.06825). With `softcap` c a score s becomes
    `c tanh(s / c)` (arXiv:2408.00118). With `sinks`, a number for each head, `exp(sink)` is one more summand of the
    softmax's denominator (arXiv:2309.17453): a head need not attend to anything. Heads of values may have another
    width than those of queries and keys. `bidirectional` lets every token see all tokens of its sequence, those after
    it too: an encoder. With `keys memory` the rows of K and V come from an encoder, and every token sees all that belong
    to its sequence: cross-attention.

    With `bias` a number from a table of a row for each query head is added to each score, after scale and softcap: entry
    `clamp(x + origin, 0, N - 1)` of N, where x is the `distance` from the query's position to the key's, or the
    position of the `key`.

    ```mlir
    %y = llm.attention %q, %k, %v, %batch heads 9 kv_heads 9 scale 1.250000e-01 keys tokens
       : tensor<?x576xf32>, tensor<?x576xf32>
    %z = llm.attention %q, %k, %v, %batch heads 9 kv_heads 9 scale 1.250000e-01 keys tokens window 4096
       softcap 5.000000e+01 : tensor<?x576xf32>, tensor<?x576xf32>
    %b = llm.alibi heads 9 length 2048 origin 2047
    %u = llm.attention %q, %k, %v, %batch heads 9 kv_heads 9 scale 1.250000e-01 keys tokens
       bias %b by distance origin 2047 : tensor<?x576xf32>, tensor<?x576xf32>, !llm.weight<9x2048xf32>
    %t = llm.attention %q, %k, %w, %batch sinks(%s : !llm.weight<9xf32>) heads 9 kv_heads 9 scale 1.250000e-01
       keys tokens : tensor<?x576xf32>, tensor<?x576xf32> values tensor<?x288xf32>   // tensor<?x288xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$query, LLM_Rows:$key, LLM_Rows:$value, LLM_BatchType:$batch,
                       Optional<LLM_WeightType>:$bias, Optional<LLM_WeightType>:$sinks,
                       I64Attr:$num_heads, I64Attr:$num_kv_heads, F64Attr:$scale, LLM_KeyRowsAttr:$keys,
                       LLM_WindowAttr:$window, LLM_SoftcapAttr:$softcap,
                       LLM_BiasByAttr:$bias_by, LLM_BiasOriginAttr:$bias_origin, UnitAttr:$bidirectional);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $batch (`sinks` `(` $sinks^ `:` type($sinks) `)`)? `heads` $num_heads
    `kv_heads` $num_kv_heads `scale` $scale
    `keys` `` $keys (`bidirectional` $bidirectional^)? (`window` $window^)? (`softcap` $softcap^)?
    (`bias` $bias^ `by` `` $bias_by `origin` $bias_origin)? attr-dict `:` type($query) `,` type($key)
    `` custom<OtherType>(type($value), ref(type($key))) (`,` type($bias)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getHeadDim() { return getQuery().getType().getDimSize(1) / getNumHeads(); }
    // Whether a token sees no key behind its own position.
    bool isCausal() { return !getBidirectional() && getKeys() != KeyRows::memory; }
  }];
}

def LLM_KVAppendOp : LLM_Op<"kv_append", [Pure, AllTypesMatch<["cache", "result"]>,
                                          CachedOpInterface, DeclareOpInterfaceMethods<ReferenceOpInterface>]> {
  let summary = "stores the keys and values of this batch's tokens in one layer of the cache";
  let description = [{
    Where the cache takes its values from the keys, only those are stored.

    ```mlir
    %c1 = llm.kv_append %c0, %k, %v, %batch layer 0 : !llm.cache<30 x [k: 3x64xbf16, v: 3x64xbf16]>, tensor<?x192xf32>
    ```
  }];
  let arguments = (ins LLM_CacheType:$cache, LLM_Rows:$key, LLM_Rows:$value, LLM_BatchType:$batch,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$layer);
  let results = (outs LLM_CacheType:$result);
  let assemblyFormat = [{
    $cache `,` $key `,` $value `,` $batch `layer` $layer attr-dict `:` type($cache) `,` type($key)
    `` custom<OtherType>(type($value), ref(type($key)))
  }];
  let hasVerifier = 1;
}

def LLM_KVReadOp : LLM_Op<"kv_read", [Pure, LLM_InferType, CachedOpInterface,
                                      DeclareOpInterfaceMethods<ReferenceOpInterface>]> {
  let summary = "all cached keys and values of this batch's sequences, from one layer";
  let description = [{
    The rows of sequence 0 from position 0 on, then those of sequence 1, and so on, gathered through the block table. A
    cache of the memory is read through that of the memory.

    ```mlir
    %k, %v = llm.kv_read %c1, %batch layer 0 : !llm.cache<30 x [k: 3x64xbf16, v: 3x64xbf16]>
    ```
  }];
  let arguments = (ins LLM_CacheType:$cache, LLM_BatchType:$batch,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$layer);
  let results = (outs LLM_Rows:$key, LLM_Rows:$value);
  let assemblyFormat = "$cache `,` $batch `layer` $layer attr-dict `:` type($cache)";
  let hasVerifier = 1;
}

def LLM_PagedAttentionOp : LLM_Op<"paged_attention", [Pure, LLM_InferType, AttrSizedOperandSegments, CachedOpInterface,
                                                      DeclareOpInterfaceMethods<ReferenceOpInterface>]> {
  let summary = "attention that reads keys and values where they lie in the cache";
  let description = [{
    `llm.kv_read` and `llm.attention` in one, without the copy (PagedAttention, arXiv:2309.06180). Over a cache of the memory
    every token sees all positions of its sequence there.

    ```mlir
    %y = llm.paged_attention %q, %c1, %batch layer 0 heads 9 scale 1.250000e-01
       : tensor<?x576xf32>, !llm.cache<30 x [k: 3x64xbf16, v: 3x64xbf16]>
    ```
  }];
  let arguments = (ins LLM_Rows:$query, LLM_CacheType:$cache, LLM_BatchType:$batch,
                       Optional<LLM_WeightType>:$bias, Optional<LLM_WeightType>:$sinks,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$layer, I64Attr:$num_heads, F64Attr:$scale,
                       LLM_WindowAttr:$window, LLM_SoftcapAttr:$softcap,
                       LLM_BiasByAttr:$bias_by, LLM_BiasOriginAttr:$bias_origin);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = [{
    $query `,` $cache `,` $batch (`sinks` `(` $sinks^ `:` type($sinks) `)`)? `layer` $layer `heads` $num_heads
    `scale` $scale (`window` $window^)? (`softcap` $softcap^)?
    (`bias` $bias^ `by` `` $bias_by `origin` $bias_origin)? attr-dict
    `:` type($query) `,` type($cache) (`,` type($bias)^)?
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Elementwise and row selection
//===----------------------------------------------------------------------===//

def LLM_ActivationOp : LLM_RowsOp<"activation", [LLM_Template, SameOperandsAndResultType]> {
  let summary = "an elementwise function";
  let description = [{
    `silu` x sigmoid(x); `gelu` with erf; `gelu_tanh` its tanh approximation; `quick_gelu` x sigmoid(1.702 x);
    `relu`; `sigmoid` 1 / (1 + exp(-x)).

    ```mlir
    %y = llm.activation silu %x : tensor<?x1536xf32>
    ```
  }];
  let arguments = (ins LLM_ActivationAttr:$kind, LLM_Rows:$input);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "`` $kind $input attr-dict `:` type($input)";
}

def LLM_AddOp : LLM_RowsOp<"add", [LLM_Template, Commutative, SameOperandsAndResultType]> {
  let summary = "elementwise sum";
  let arguments = (ins LLM_Rows:$lhs, LLM_Rows:$rhs);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def LLM_MulOp : LLM_RowsOp<"mul", [LLM_Template, Commutative, SameOperandsAndResultType]> {
  let summary = "elementwise product";
  let arguments = (ins LLM_Rows:$lhs, LLM_Rows:$rhs);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def LLM_ScaleOp : LLM_RowsOp<"scale", [LLM_Template, AllTypesMatch<["input", "result"]>]> {
  let summary = "every element times a number";
  let description = [{
    `factor x`: the multipliers of embeddings, branches and logits that some models have (arXiv:2203.03466).

    ```mlir
    %y = llm.scale %x by 1.200000e+01 : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input, F64Attr:$factor);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$input `by` $factor attr-dict `:` type($input)";
  let hasFolder = 1;
}

def LLM_ShiftOp : LLM_RowsOp<"shift", [LLM_Template, AllTypesMatch<["input", "result"]>]> {
  let summary = "every element plus a number";
  let description = [{
    ```mlir
    %y = llm.shift %x by 1.000000e+00 : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input, F64Attr:$value);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$input `by` $value attr-dict `:` type($input)";
  let hasFolder = 1;
}

def LLM_ClampOp : LLM_RowsOp<"clamp", [LLM_Template, AllTypesMatch<["input", "result"]>]> {
  let summary = "cuts every element off at bounds";
  let description = [{
    `min(max(x, low), high)`; a bound may be infinite.

    ```mlir
    %y = llm.clamp %x from -7.000000e+00 to 7.000000e+00 : tensor<?x576xf32>
    %z = llm.clamp %x from 0xFFF0000000000000 to 7.000000e+00 : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input, F64Attr:$low, F64Attr:$high);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$input `from` $low `to` $high attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def LLM_SoftcapOp : LLM_RowsOp<"softcap", [LLM_Template, AllTypesMatch<["input", "result"]>]> {
  let summary = "bends every element smoothly into a range";
  let description = [{
    `cap tanh(x / cap)`, between -cap and cap: logits of Gemma 2 (arXiv:2408.00118).

    ```mlir
    %y = llm.softcap %x at 3.000000e+01 : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input, F64Attr:$cap);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$input `at` $cap attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def LLM_SliceOp : LLM_RowsOp<"slice", [LLM_InferType]> {
  let summary = "a run of columns";
  let description = [{
    ```mlir
    %k = llm.slice %qkv columns 576 to 768 : tensor<?x960xf32>   // tensor<?x192xf32>
    ```
    Costs nothing: stages read such views in place.
  }];
  let arguments = (ins LLM_Rows:$input, I64Attr:$begin, I64Attr:$end);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$input `columns` $begin `to` $end attr-dict `:` type($input)";
  let hasFolder = 1;
}

def LLM_GatherRowsOp : LLM_RowsOp<"gather_rows", [AllTypesMatch<["input", "result"]>]> {
  let summary = "the rows to be scored";
  let description = [{
    `out[r] = x[scored_rows[r]]`: what follows works on R rows instead of T.

    ```mlir
    %y = llm.gather_rows %x, %batch : tensor<?x576xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input, LLM_BatchType:$batch);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = "$input `,` $batch attr-dict `:` type($input)";
}

//===----------------------------------------------------------------------===//
// Fusion
//===----------------------------------------------------------------------===//

def LLM_FusedOp : LLM_Op<"fused", [SingleBlock, NoRegionArguments, RecursiveMemoryEffects]> {
  let summary = "operations that one kernel computes";
  let description = [{
    The body is the meaning of the fusion, what runs where no kernel has the name, and what a picture of the
    graph shows as swallowed.

    ```mlir
    %qkv = llm.fused @norm_qkv -> tensor<?x960xf32> {
      %n = llm.rms_norm %x, %w eps 1.000000e-05 : tensor<?x576xf32>, !llm.weight<576xf32>
      %y = llm.linear %n, %wqkv : tensor<?x576xf32>, !llm.weight<960x576xq4_1>
      llm.yield %y : tensor<?x960xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$kind);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$kind attr-dict `->` type($results) $body";
  let hasVerifier = 1;
}

def LLM_YieldOp : LLM_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"FusedOp">]> {
  let summary = "the results of a fusion";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

#endif // TENON_IR_LLMOPS_TD
