// Two prefixes over two sections.
// RUN: tenon-opt %s -split-input-file \
// RUN:   --pass-pipeline='builtin.module(func.func(llm-fuse-linear-residual))' | FileCheck %s
// RUN: tenon-opt %s --split-input-file --llm-split-phases --mlir-print-debuginfo | FileCheck %s --check-prefix=PHASES
// RUN: tenon-opt %s -split-input-file -verify-diagnostics -o /dev/null
// CHECK lines written by tenon-check-update.

// The sum joins its product.
// CHECK-LABEL: func.func @fires(
// CHECK-NEXT:    %[[OLD:.*]] = llm.linear
func.func @fires(%x: tensor<?x8xf32>, %w: !llm.weight<8x8xf32>) -> tensor<?x8xf32> {
  %l = llm.linear %x, %w : tensor<?x8xf32>, !llm.weight<8x8xf32>
  %s = llm.add %x, %l : tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @gone(

// -----

// What FileCheck reads as patterns, and a value that has two results.
// PHASES: an older line
module attributes {llm.model = "[[A]] {{B}} 100%c"} {
  // A comment stays.
  func.func @main(%b: !llm.batch, %c: !llm.cache<1 x [k: 1x8xf32, v: 1x8xf32]>) -> tensor<?x8xf32> {
    %f:2 = llm.fused @two -> tensor<?x8xf32>, tensor<?x8xf32> {
      %k, %v = llm.kv_read %c, %b layer 0 : !llm.cache<1 x [k: 1x8xf32, v: 1x8xf32]>
      llm.yield %k, %v : tensor<?x8xf32>, tensor<?x8xf32>
    }
    %s = llm.add %f#0, %f#1 : tensor<?x8xf32>
    return %s : tensor<?x8xf32>
  }
}
