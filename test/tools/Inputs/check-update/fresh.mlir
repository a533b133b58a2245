// Two prefixes over two sections.
// RUN: tenon-opt %s -split-input-file \
// RUN:   --pass-pipeline='builtin.module(func.func(llm-fuse-linear-residual))' | FileCheck %s
// RUN: tenon-opt %s --split-input-file --llm-split-phases --mlir-print-debuginfo | FileCheck %s --check-prefix=PHASES
// RUN: tenon-opt %s -split-input-file -verify-diagnostics -o /dev/null
// CHECK lines written by tenon-check-update.

// The sum joins its product.
// CHECK-LABEL: func.func @fires(
// CHECK-SAME:  %[[ARG0:[^:]+]]: tensor<?x8xf32>, %[[ARG1:[^:]+]]: !llm.weight<8x8xf32>) -> tensor<?x8xf32> {
// CHECK-NEXT:    %[[V0:.*]] = llm.fused @linear_residual -> tensor<?x8xf32> {
// CHECK-NEXT:      %[[V1:.*]] = llm.linear %[[ARG0]], %[[ARG1]] : tensor<?x8xf32>, <8x8xf32>
// CHECK-NEXT:      %[[V2:.*]] = llm.add %[[ARG0]], %[[V1]] : tensor<?x8xf32>
// CHECK-NEXT:      llm.yield %[[V2]] : tensor<?x8xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[V0]] : tensor<?x8xf32>
// CHECK-NEXT:  }
// PHASES-LABEL: func.func @fires(
// PHASES-SAME:  %[[ARG0:[^:]+]]: tensor<?x8xf32>{{.*}}, %[[ARG1:[^:]+]]: !llm.weight<8x8xf32>{{.*}}) -> tensor<?x8xf32> {
// PHASES-NEXT:    %[[V0:.*]] = llm.linear %[[ARG0]], %[[ARG1]] : tensor<?x8xf32>, <8x8xf32>
// PHASES-NEXT:    %[[V1:.*]] = llm.add %[[ARG0]], %[[V0]] : tensor<?x8xf32>
// PHASES-NEXT:    return %[[V1]] : tensor<?x8xf32>
// PHASES-NEXT:  }
func.func @fires(%x: tensor<?x8xf32>, %w: !llm.weight<8x8xf32>) -> tensor<?x8xf32> {
  %l = llm.linear %x, %w : tensor<?x8xf32>, !llm.weight<8x8xf32>
  %s = llm.add %x, %l : tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}

// -----

// What FileCheck reads as patterns, and a value that has two results.
// CHECK:       module attributes {llm.model = "{{\[}}[A]] {{[{]}}{B}} 100%c"} {
// PHASES:       module attributes {llm.model = "{{\[}}[A]] {{[{]}}{B}} 100%c"} {
// PHASES-LABEL: func.func @prefill(
// PHASES-SAME:  %[[ARG0:[^:]+]]: !llm.batch{{.*}}, %[[ARG1:[^:]+]]: !llm.cache<1 x [k: 1x8xf32, v: 1x8xf32]>{{.*}}) -> tensor<?x8xf32> {
// PHASES-NEXT:    %[[V0:.*]]:2 = llm.fused @two -> tensor<?x8xf32>, tensor<?x8xf32> {
// PHASES-NEXT:      %[[V1:.*]], %[[V2:.*]] = llm.kv_read %[[ARG1]], %[[ARG0]] layer 0 : <1 x [k: 1x8xf32, v: 1x8xf32]>
// PHASES-NEXT:      llm.yield %[[V1]], %[[V2]] : tensor<?x8xf32>, tensor<?x8xf32>
// PHASES-NEXT:    }
// PHASES-NEXT:    %[[V3:.*]] = llm.add %[[V0]]#0, %[[V0]]#1 : tensor<?x8xf32>
// PHASES-NEXT:    return %[[V3]] : tensor<?x8xf32>
// PHASES-NEXT:  }
// PHASES-LABEL: func.func @decode(
// PHASES-SAME:  %[[ARG0:[^:]+]]: !llm.batch{{.*}}, %[[ARG1:[^:]+]]: !llm.cache<1 x [k: 1x8xf32, v: 1x8xf32]>{{.*}}) -> tensor<?x8xf32> attributes {llm.phase = "decode"} {
// PHASES-NEXT:    %[[V0:.*]]:2 = llm.fused @two -> tensor<?x8xf32>, tensor<?x8xf32> {
// PHASES-NEXT:      %[[V1:.*]], %[[V2:.*]] = llm.kv_read %[[ARG1]], %[[ARG0]] layer 0 : <1 x [k: 1x8xf32, v: 1x8xf32]>
// PHASES-NEXT:      llm.yield %[[V1]], %[[V2]] : tensor<?x8xf32>, tensor<?x8xf32>
// PHASES-NEXT:    }
// PHASES-NEXT:    %[[V3:.*]] = llm.add %[[V0]]#0, %[[V0]]#1 : tensor<?x8xf32>
// PHASES-NEXT:    return %[[V3]] : tensor<?x8xf32>
// PHASES-NEXT:  }
module attributes {llm.model = "[[A]] {{B}} 100%c"} {
  // A comment stays.
  // CHECK-LABEL: func.func @main(
  // CHECK-SAME:  %[[ARG0:[^:]+]]: !llm.batch, %[[ARG1:[^:]+]]: !llm.cache<1 x [k: 1x8xf32, v: 1x8xf32]>) -> tensor<?x8xf32> {
  // CHECK-NEXT:    %[[V0:.*]]:2 = llm.fused @two -> tensor<?x8xf32>, tensor<?x8xf32> {
  // CHECK-NEXT:      %[[V1:.*]], %[[V2:.*]] = llm.kv_read %[[ARG1]], %[[ARG0]] layer 0 : <1 x [k: 1x8xf32, v: 1x8xf32]>
  // CHECK-NEXT:      llm.yield %[[V1]], %[[V2]] : tensor<?x8xf32>, tensor<?x8xf32>
  // CHECK-NEXT:    }
  // CHECK-NEXT:    %[[V3:.*]] = llm.add %[[V0]]#0, %[[V0]]#1 : tensor<?x8xf32>
  // CHECK-NEXT:    return %[[V3]] : tensor<?x8xf32>
  // CHECK-NEXT:  }
  func.func @main(%b: !llm.batch, %c: !llm.cache<1 x [k: 1x8xf32, v: 1x8xf32]>) -> tensor<?x8xf32> {
    %f:2 = llm.fused @two -> tensor<?x8xf32>, tensor<?x8xf32> {
      %k, %v = llm.kv_read %c, %b layer 0 : !llm.cache<1 x [k: 1x8xf32, v: 1x8xf32]>
      llm.yield %k, %v : tensor<?x8xf32>, tensor<?x8xf32>
    }
    %s = llm.add %f#0, %f#1 : tensor<?x8xf32>
    return %s : tensor<?x8xf32>
  }
}
