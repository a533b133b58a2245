//   add ─┬─ norm ─      fused @residual_norm ─┬─ norm
//        └─ sum     ─▶                        └─ sum
//
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(llm-fuse-residual-norm))' | FileCheck %s

// The weight is found after the sum, and moves before it.
// CHECK-LABEL: func.func @fires
// CHECK-NEXT:    %[[W:.*]] = llm.weight
// CHECK-NEXT:    %[[F:.*]]:2 = llm.fused @residual_norm -> tensor<?x8xf32>, tensor<?x8xf32> {
// CHECK-NEXT:      %[[S:.*]] = llm.add
// CHECK-NEXT:      %[[N:.*]] = llm.rms_norm %[[S]], %[[W]]
// CHECK-NEXT:      llm.yield %[[S]], %[[N]]
// CHECK-NEXT:    }
// CHECK-NEXT:    llm.mul %[[F]]#0, %[[F]]#1
func.func @fires(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %s = llm.add %x, %y : tensor<?x8xf32>
  %w = llm.weight "norm" : <8xf32>
  %n = llm.rms_norm %s, %w eps 1.0e-05 : tensor<?x8xf32>, !llm.weight<8xf32>
  %m = llm.mul %s, %n : tensor<?x8xf32>
  return %m : tensor<?x8xf32>
}

// Left alone: the norm is inside another fusion, and what the other one reads is no sum.
// CHECK-LABEL: func.func @taken
// CHECK-NEXT:    llm.add
// CHECK-NEXT:    llm.fused @other
// CHECK-NOT:     llm.fused
func.func @taken(%x: tensor<?x8xf32>, %w: !llm.weight<8xf32>) -> tensor<?x8xf32> {
  %s = llm.add %x, %x : tensor<?x8xf32>
  %f = llm.fused @other -> tensor<?x8xf32> {
    %n = llm.rms_norm %s, %w eps 1.0e-05 : tensor<?x8xf32>, !llm.weight<8xf32>
    llm.yield %n : tensor<?x8xf32>
  }
  %m = llm.rms_norm %f, %w eps 1.0e-05 : tensor<?x8xf32>, !llm.weight<8xf32>
  return %m : tensor<?x8xf32>
}

// A norm of single heads is as good.
// CHECK-LABEL: func.func @norm_of_heads
// CHECK-NEXT:    llm.fused @residual_norm
// CHECK-NEXT:      llm.add
// CHECK-NEXT:      llm.rms_norm %{{.*}}, %{{.*}} heads 2
func.func @norm_of_heads(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %w: !llm.weight<4xf32>) -> tensor<?x8xf32> {
  %s = llm.add %x, %y : tensor<?x8xf32>
  %n = llm.rms_norm %s, %w heads 2 eps 1.0e-05 : tensor<?x8xf32>, !llm.weight<4xf32>
  return %n : tensor<?x8xf32>
}

// LayerNorm; its weights move before the sum.
// CHECK-LABEL: func.func @layer_norm
// CHECK-NEXT:    llm.weight "w"
// CHECK-NEXT:    llm.weight "b"
// CHECK-NEXT:    llm.fused @residual_norm
// CHECK-NEXT:      llm.add
// CHECK-NEXT:      llm.layer_norm
func.func @layer_norm(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %s = llm.add %x, %y : tensor<?x8xf32>
  %w = llm.weight "w" : <8xf32>
  %b = llm.weight "b" : <8xf32>
  %n = llm.layer_norm %s, %w, %b eps 1.0e-05 : tensor<?x8xf32>, !llm.weight<8xf32>, !llm.weight<8xf32>
  return %n : tensor<?x8xf32>
}
