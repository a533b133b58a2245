//===- Passes.td - every pass, in pipeline order --------------------------===//
//
// One record here, one .cpp, one test, one name. Pipeline.cpp shows the order they run in. The last
// argument of a record is what the pass promises about the numbers: SameIO unless it says otherwise.
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_TD
#define TENON_PASSES_TD

include "passes/PassBase.td"

def LLMAbsorbLatent : TenonPass<"llm-absorb-latent", "::mlir::func::FuncOp", Lossy<1>> {
  let summary = "attend to latent rows instead of the keys and values made from them";
  let description = [{
    Where each head's key is a projection of one latent row beside a part that all heads share, and its value another
    projection of that row (arXiv:2405.04434), queries are projected instead, and the mixture of latent rows afterwards.
    Attention then has one key head, `[latent, shared]`, whose first columns are the value: that row is all that a cache
    has to keep.

    ```mlir
    %kn = llm.linear %c, %wk                         %qc = llm.head_linear (plain part of %q), %wk^T
    %k = llm.join_heads %kn, (repeat_kv %kr)         %ql = llm.join_heads %qc, (rotated part of %q)
    %v = llm.linear %c, %wv                    ─▶    %k = llm.join_heads %c, %kr heads 1
    %y = llm.attention %q, %k, %v, %batch            %v = llm.slice %k
           heads 16 kv_heads 16                      %m = llm.attention %ql, %k, %v, %batch heads 16 kv_heads 1
                                                     %y = llm.head_linear %m, %wv
    ```
  }];
}

def LLMInsertKVCache : TenonPass<"llm-insert-kv-cache", "::mlir::ModuleOp", Lossy<15, PhaseMap>> {
  let summary = "thread a KV cache through attention";
  let description = [{
    Every attention over the tokens of its own batch becomes an append to the cache and an attention over the whole
    cached context. Keys and values are stored as they are *before* `llm.repeat_kv`. Bidirectional attention stays as
    it is: an encoder sees whole sequences at once.

    ```mlir
    %kr = llm.repeat_kv %k ...                       %c1 = llm.kv_append %c0, %k, %v, %batch layer 0
    %vr = llm.repeat_kv %v ...                  ─▶   %kc, %vc = llm.kv_read %c1, %batch layer 0
    %y = llm.attention %q, %kr, %vr, %batch          %kr = llm.repeat_kv %kc ... ; %vr = llm.repeat_kv %vc ...
                        ... keys tokens              %y = llm.attention %q, %kr, %vr, %batch ... keys context
    ```

    The keys and values of attention over a memory move to `@encoder`, which writes them to a cache of their own, once;
    `@main` takes that cache instead of the encoder's rows.

    ```mlir
    func @encoder(%b) -> memory                      func @encoder(%b, %m0) -> %m1
      return %x                                        %k = llm.linear %x ; %v = llm.linear %x
                                               ─▶      %m1 = llm.kv_append %m0, %k, %v, %b layer 0
    func @main(%batch, %memory)                      func @main(%batch, %m)
      %k = llm.linear %memory ; %v = ...               %k, %v = llm.kv_read %m, %batch layer 0
      llm.attention %q, %k, %v ... keys memory         llm.attention %q, %k, %v ... keys memory
    ```
  }];
  let options = [Option<"dtype", "dtype", "std::string", "\"f32\"", "element of the cache: f32, bf16, f16 or int8">];
}

def LLMSplitPhases : TenonPass<"llm-split-phases", "::mlir::ModuleOp", PhaseMap> {
  let summary = "make @encode, @prefill and @decode from @encoder and @main";
  let description = [{
    `@prefill` and `@decode` are copies of `@main` at first. `@decode` carries `llm.phase = "decode"`: each sequence brings
    exactly one token, whose row is scored; later passes use that. `@encoder` becomes `@encode`, and so does a `@main`
    whose attention is bidirectional: a model that only encodes has no other phase.
  }];
}

def LLMGatherScoredRows : TenonPass<"llm-gather-scored-rows", "::mlir::ModuleOp", PhaseMap> {
  let summary = "let only the rows to be scored reach the LM head";
  let description = [{
    Puts `llm.gather_rows` between the residual stream and the final norm of every function but `@decode`, in which all
    rows are scored.
  }];
}

def LLMFuseNormQKV : TenonPass<"llm-fuse-norm-qkv", "::mlir::func::FuncOp"> {
  let summary = "join a norm and the Q, K and V projections";
  let description = [{
    ```
             x                              x
             │                              │
            norm                     ┌ fused @norm_qkv ┐
          ┌──┼──┐                    │      norm       │
          Q  K  V         ─▶         │ linear [Q; K; V]│
          │  │  │                    └────────┬────────┘
                                     slice  slice  slice
    ```
    One pass over the activations and one stream of weights instead of three. It fires when the norm is of
    whole rows, the three projections are its only users, have the same columns and storage, and all or none have a bias.
    Queries and keys may be normed themselves before they are rotated.
  }];
}

def LLMStackQKV : TenonPass<"llm-stack-qkv", "::mlir::func::FuncOp"> {
  let summary = "join projections of the same rows that attention reads";
  let description = [{
    ```
          x                     x
       ┌──┼──┐                  │
       Q  K  V    ─▶     linear [Q; K; V]
       │  │  │                  │
                        slice slice slice
    ```
    For rows that no norm of their own has made: models that norm behind each branch, and those whose MLP reads the
    same norm. Keys and values of one attention are joined, and its queries where they are of the same rows and no other
    attention reads these. The weights have the same storage, and all or none have a bias.
  }];
}

def LLMMHAToGQA : TenonPass<"llm-mha-to-gqa", "::mlir::func::FuncOp"> {
  let summary = "let query heads share key and value heads";
  let description = [{
    Attention over heads that `llm.repeat_kv` copied becomes grouped-query attention over the original heads: query head h
    reads key head `h / group`.
  }];
}

def LLMPagedAttention : TenonPass<"llm-paged-attention", "::mlir::func::FuncOp"> {
  let summary = "read keys and values where they lie in the cache";
  let description = [{`llm.kv_read` followed by `llm.attention` becomes `llm.paged_attention`, over the memory too.}];
}

def LLMFuseGatedMLP : TenonPass<"llm-fuse-gated-mlp", "::mlir::func::FuncOp"> {
  let summary = "join a norm, gate and up projections and their product";
  let description = [{
    ```
             x                               x
             │                               │
            norm                    ┌ fused @gated_mlp ┐
          ┌──┴──┐                   │       norm       │
        gate    up         ─▶       │linear [gate; up] │
          │     │                   │  act(g) * u      │
         act    │                   └────────┬─────────┘
          └─ * ─┘
    ```
    The norm is joined when it is of whole rows and the two projections are its only users.
  }];
}

def LLMFuseGatedExperts : TenonPass<"llm-fuse-gated-experts", "::mlir::func::FuncOp"> {
  let summary = "join the gate and up projections of experts and their product";
  let description = [{
    `act(llm.expert_linear ...) * llm.expert_linear ...` over the same rows and choice becomes `llm.fused @gated_experts`: rows
    are sorted by expert once, and the two results never leave the registers.
  }];
}

def LLMFuseResidualNorm : TenonPass<"llm-fuse-residual-norm", "::mlir::func::FuncOp"> {
  let summary = "join a residual sum and the norm of it";
  let description = [{
    `%s = llm.add %x, %y` and `llm.rms_norm %s` become one `llm.fused @residual_norm` with two results, the sum and its norm.
    Norms that another fusion has taken are left alone.
  }];
}

def LLMFuseLinearResidual : TenonPass<"llm-fuse-linear-residual", "::mlir::func::FuncOp"> {
  let summary = "join a projection and the residual sum after it";
  let description = [{`llm.add %x, (llm.linear ...)` becomes `llm.fused @linear_residual`; the linear has no other user.}];
}

def LLMFuseRope : TenonPass<"llm-fuse-rope", "::mlir::func::FuncOp"> {
  let summary = "join rotation, cache update and attention in @decode";
  let description = [{
    With one token for each sequence, whoever attends with a KV head may also rotate and store that head's key: no other
    work reads it in this step. So `rope(q)`, `rope(k)`, `kv_append` and `paged_attention` become `llm.fused @rope_attention`, one
    stage instead of four.
  }];
}

def LLMQuantize : TenonPass<"llm-quantize", "::mlir::ModuleOp", Lossy<400>> {
  let summary = "choose how weights are stored in the executable";
  let description = [{
    Inserts `llm.weight_convert` after `llm.weight`. Vectors become f32. `stored` leaves matrices as the checkpoint has them;
    `f32`, `bf16`, `f16` decode; `int8` and `int4` quantise in groups of 32 columns (q8_0, q4_1) and warn when the
    checkpoint was quantised already. A matrix that chooses experts is not quantised.
  }];
  let options = [Option<"precision", "precision", "std::string", "\"stored\"",
                        "stored, f32, bf16, f16, int8 or int4">];
}

def LLMPackWeights : TenonPass<"llm-pack-weights", "::mlir::ModuleOp", Lossy<2>> {
  let summary = "pack matrices for kernels";
  let description = [{
    Wraps every matrix that an operation reads in `llm.weight_pack`: 16 rows interleaved, so that one cache line feeds 16
    outputs; with `keep-rows`, matrices of bf16 and f16 stay row by row, as libraries for tensor cores read them.
  }];
  let options = [Option<"keepRows", "keep-rows", "bool", "false", "x1k8 for bf16 and f16, not x16k2">];
}

def LLMToSched : TenonPass<"llm-to-sched", "::mlir::ModuleOp", PhaseMap> {
  let summary = "turn the phases into programs of stages";
  let description = [{
    Each operation or fusion becomes a `sched.stage` that calls a `sched.kernel`; equal ones share the kernel. Slices of a
    buffer become views. Weights move to `sched.weight` recipes, placed one after another. A barrier is put before a
    stage that reads what was written since the last one.
  }];
  let dependentDialects = ["::tenon::sched::SchedDialect"];
}

def SchedPlanBuffers : TenonPass<"sched-plan-buffers", "::mlir::ModuleOp"> {
  let summary = "place buffers in the arena";
  let description = [{
    Two buffers may share bytes when a barrier stands between the last use of one and the first of the other. Largest
    first, each at the lowest offset where it fits.
  }];
}

#endif // TENON_PASSES_TD
