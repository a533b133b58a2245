//===- Interfaces.td - what an operation must offer to take part ----------===//
#ifndef TENON_IR_INTERFACES_TD
#define TENON_IR_INTERFACES_TD

include "mlir/IR/OpBase.td"

def TemplateOpInterface : OpInterface<"TemplateOpInterface"> {
  let cppNamespace = "::tenon";
  let description = [{
    An operation that an architecture file may write by its mnemonic. The frontend knows nothing else of
    operations, so those of a plugin are written in the same way.
  }];
  let methods = [
    StaticInterfaceMethod<
      [{Builds the operation from the named arguments of a template node and returns its value. Every argument
        that is read is marked as used; errors are reported at the argument's place in the file.}],
      "::mlir::FailureOr<::mlir::Value>", "buildFromTemplate", (ins "::tenon::TemplateArgs &":$args)>,
  ];
}

def ReferenceOpInterface : OpInterface<"ReferenceOpInterface"> {
  let cppNamespace = "::tenon";
  let description = [{
    The meaning of an operation in plain MLIR (linalg, arith, math, tensor, scf). It is the semantics against which
    fusions are checked, the code of the `reference` backend, and the fallback where a backend has no kernel.
  }];
  let methods = [
    InterfaceMethod<
      [{Emits the decomposition, reading operands from `mapping` and entering every result in it.}],
      "::mlir::LogicalResult", "decompose",
      (ins "::mlir::OpBuilder &":$builder, "::tenon::ReferenceMapping &":$mapping)>,
  ];
}

def WeightOpInterface : OpInterface<"WeightOpInterface"> {
  let cppNamespace = "::tenon";
  let description = [{
    An operation on `!llm.weight` values. It costs nothing at run time: the compiler evaluates it, a block of rows
    at a time, when it writes the executable.
  }];
}

def NormOpInterface : OpInterface<"NormOpInterface"> {
  let cppNamespace = "::tenon";
  let description = [{
    A normalisation of each row, or of equal parts of it. Its first operand are the rows, the others are weights.
    Fusions join one whose parts are whole rows with the products that read it.
  }];
  let methods = [
    InterfaceMethod<"The rows.", "::mlir::Value", "getNormInput", (ins), [{
      return $_op.getInput();
    }]>,
    InterfaceMethod<"How many equal parts of a row are normalised by themselves.", "int64_t", "getNormHeads", (ins), [{
      return $_op.getHeads();
    }]>,
  ];
}

def CachedOpInterface : OpInterface<"CachedOpInterface"> {
  let cppNamespace = "::tenon";
  let description = [{An operation that reads or writes one layer of the KV cache (attribute `layer`).}];
  let methods = [
    InterfaceMethod<"The layer it touches.", "int64_t", "getCacheLayer", (ins), [{
      return $_op.getLayer();
    }]>,
    InterfaceMethod<"Makes it touch another layer.", "void", "setCacheLayer", (ins "int64_t":$layer), [{
      $_op.setLayer(layer);
    }]>,
  ];
}

#endif // TENON_IR_INTERFACES_TD
