//     norm                  fused @gated_mlp
//   gate   up        ─▶       norm
//   silu    │                 linear [gate; up]
//     └─ * ─┘                 silu(g) * u
//
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(llm-fuse-gated-mlp))' | FileCheck %s

// CHECK-LABEL: func.func @fires
// CHECK:         %[[W:.*]] = llm.weight_concat
// CHECK-NEXT:    %[[F:.*]] = llm.fused @gated_mlp -> tensor<?x16xf32> {
// CHECK-NEXT:      %[[N:.*]] = llm.rms_norm
// CHECK-NEXT:      %[[L:.*]] = llm.linear %[[N]], %[[W]]
// CHECK-NEXT:      %[[G:.*]] = llm.slice %[[L]] columns 0 to 16
// CHECK-NEXT:      %[[U:.*]] = llm.slice %[[L]] columns 16 to 32
// CHECK-NEXT:      %[[A:.*]] = llm.activation silu %[[G]]
// CHECK-NEXT:      %[[M:.*]] = llm.mul %[[A]], %[[U]]
// CHECK-NEXT:      llm.yield %[[M]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[F]]
func.func @fires(%x: tensor<?x8xf32>, %n: !llm.weight<8xf32>, %wg: !llm.weight<16x8xf32>, %wu: !llm.weight<16x8xf32>)
    -> tensor<?x16xf32> {
  %y = llm.rms_norm %x, %n eps 1.0e-05 : tensor<?x8xf32>, !llm.weight<8xf32>
  %g = llm.linear %y, %wg : tensor<?x8xf32>, !llm.weight<16x8xf32>
  %a = llm.activation silu %g : tensor<?x16xf32>
  %u = llm.linear %y, %wu : tensor<?x8xf32>, !llm.weight<16x8xf32>
  %m = llm.mul %a, %u : tensor<?x16xf32>
  return %m : tensor<?x16xf32>
}

// The norm has another user: it stays outside. The product may be written the other way round.
// CHECK-LABEL: func.func @norm_is_read
// CHECK:         %[[N:.*]] = llm.rms_norm
// CHECK:         llm.fused @gated_mlp
// CHECK-NEXT:      llm.linear %[[N]]
// CHECK:           llm.activation gelu
// CHECK:         return %{{.*}}, %[[N]]
func.func @norm_is_read(%x: tensor<?x8xf32>, %n: !llm.weight<8xf32>, %wg: !llm.weight<16x8xf32>, %wu: !llm.weight<16x8xf32>)
    -> (tensor<?x16xf32>, tensor<?x8xf32>) {
  %y = llm.rms_norm %x, %n eps 1.0e-05 : tensor<?x8xf32>, !llm.weight<8xf32>
  %g = llm.linear %y, %wg : tensor<?x8xf32>, !llm.weight<16x8xf32>
  %a = llm.activation gelu %g : tensor<?x16xf32>
  %u = llm.linear %y, %wu : tensor<?x8xf32>, !llm.weight<16x8xf32>
  %m = llm.mul %u, %a : tensor<?x16xf32>
  return %m, %y : tensor<?x16xf32>, tensor<?x8xf32>
}

// Left alone: gate and up are stored differently.
// CHECK-LABEL: func.func @unequal_storage
// CHECK-NOT:     llm.fused
func.func @unequal_storage(%x: tensor<?x8xf32>, %wg: !llm.weight<16x8xf32>, %wu: !llm.weight<16x8xf16>) -> tensor<?x16xf32> {
  %g = llm.linear %x, %wg : tensor<?x8xf32>, !llm.weight<16x8xf32>
  %a = llm.activation silu %g : tensor<?x16xf32>
  %u = llm.linear %x, %wu : tensor<?x8xf32>, !llm.weight<16x8xf16>
  %m = llm.mul %a, %u : tensor<?x16xf32>
  return %m : tensor<?x16xf32>
}

// Left alone: the gate is read again.
// CHECK-LABEL: func.func @gate_is_read
// CHECK-NOT:     llm.fused
func.func @gate_is_read(%x: tensor<?x8xf32>, %wg: !llm.weight<16x8xf32>, %wu: !llm.weight<16x8xf32>)
    -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %g = llm.linear %x, %wg : tensor<?x8xf32>, !llm.weight<16x8xf32>
  %a = llm.activation silu %g : tensor<?x16xf32>
  %u = llm.linear %x, %wu : tensor<?x8xf32>, !llm.weight<16x8xf32>
  %m = llm.mul %a, %u : tensor<?x16xf32>
  return %m, %g : tensor<?x16xf32>, tensor<?x16xf32>
}

// Left alone: gate and up read different rows.
// CHECK-LABEL: func.func @other_rows
// CHECK-NOT:     llm.fused
func.func @other_rows(%x: tensor<?x8xf32>, %z: tensor<?x8xf32>, %wg: !llm.weight<16x8xf32>, %wu: !llm.weight<16x8xf32>)
    -> tensor<?x16xf32> {
  %g = llm.linear %x, %wg : tensor<?x8xf32>, !llm.weight<16x8xf32>
  %a = llm.activation silu %g : tensor<?x16xf32>
  %u = llm.linear %z, %wu : tensor<?x8xf32>, !llm.weight<16x8xf32>
  %m = llm.mul %a, %u : tensor<?x16xf32>
  return %m : tensor<?x16xf32>
}

// The norm stays outside: it is of single heads.
// CHECK-LABEL: func.func @norm_of_heads
// CHECK:         %[[Y:.*]] = llm.rms_norm %{{.*}}, %{{.*}} heads 2
// CHECK:         llm.fused @gated_mlp
// CHECK-NEXT:      llm.linear %[[Y]]
func.func @norm_of_heads(%x: tensor<?x8xf32>, %n: !llm.weight<4xf32>, %wg: !llm.weight<16x8xf32>, %wu: !llm.weight<16x8xf32>) -> tensor<?x16xf32> {
  %y = llm.rms_norm %x, %n heads 2 eps 1.0e-05 : tensor<?x8xf32>, !llm.weight<4xf32>
  %g = llm.linear %y, %wg : tensor<?x8xf32>, !llm.weight<16x8xf32>
  %a = llm.activation silu %g : tensor<?x16xf32>
  %u = llm.linear %y, %wu : tensor<?x8xf32>, !llm.weight<16x8xf32>
  %m = llm.mul %a, %u : tensor<?x16xf32>
  return %m : tensor<?x16xf32>
}

// LayerNorm is as good.
// CHECK-LABEL: func.func @layer_norm
// CHECK:         llm.fused @gated_mlp
// CHECK-NEXT:      llm.layer_norm
// CHECK-NEXT:      llm.linear
func.func @layer_norm(%x: tensor<?x8xf32>, %n: !llm.weight<8xf32>, %m: !llm.weight<8xf32>, %wg: !llm.weight<16x8xf32>, %wu: !llm.weight<16x8xf32>) -> tensor<?x16xf32> {
  %y = llm.layer_norm %x, %n, %m eps 1.0e-05 : tensor<?x8xf32>, !llm.weight<8xf32>, !llm.weight<8xf32>
  %g = llm.linear %y, %wg : tensor<?x8xf32>, !llm.weight<16x8xf32>
  %u = llm.linear %y, %wu : tensor<?x8xf32>, !llm.weight<16x8xf32>
  %a = llm.activation silu %g : tensor<?x16xf32>
  %p = llm.mul %a, %u : tensor<?x16xf32>
  return %p : tensor<?x16xf32>
}
