//===- QkOps.td - the qk dialect: one operation of the plugin's own -------===//
#ifndef QK_OPS_TD
#define QK_OPS_TD

include "ir/LLMOps.td"

def Qk_Dialect : Dialect {
  let name = "qk";
  let summary = "Norm and rotation of queries and keys as one operation";
  let cppNamespace = "::qk";
  let dependentDialects = ["::tenon::llm::LLMDialect"];
}

def Qk_NormRopeOp : Op<Qk_Dialect, "norm_rope", [
    Pure, AllTypesMatch<["input", "result"]>,
    DeclareOpInterfaceMethods<TemplateOpInterface>,     // `qk.norm_rope: {...}` in an architecture file
    DeclareOpInterfaceMethods<ReferenceOpInterface>]> { // its meaning
  let summary = "`llm.rms_norm` of each head, then `llm.rope`";
  let description = [{
    ```mlir
    %r = qk.norm_rope %q, %w, %a heads 16 half eps 1.000000e-06
       : tensor<?x2048xf32>, !llm.weight<128xf32>, tensor<?x128xf32>
    ```
  }];
  let arguments = (ins LLM_Rows:$input, LLM_WeightType:$weight, LLM_Rows:$angles,
                       ConfinedAttr<I64Attr, [IntPositive]>:$heads, LLM_RopeStyleAttr:$style, F64Attr:$eps);
  let results = (outs LLM_Rows:$result);
  let assemblyFormat = [{
    $input `,` $weight `,` $angles `heads` $heads `` $style `eps` $eps attr-dict
    `:` type($input) `,` type($weight) `,` type($angles)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getHeadDim() { return getInput().getType().getDimSize(1) / getHeads(); }
  }];
}

#endif // QK_OPS_TD
