//   gate   up             fused @gated_experts
//   silu    │      ─▶       gate, silu, up, *
//     └─ * ─┘
//
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(llm-fuse-gated-experts))' | FileCheck %s

// CHECK-LABEL: func.func @fires
// CHECK-SAME:    (%[[X:.*]]: tensor<?x8xf32>, %[[C:.*]]: tensor<?x2xf32>, %[[G:.*]]: !llm.weight<4x16x8xf32>, %[[U:.*]]: !llm.weight<4x16x8xf32>)
// CHECK-NEXT:    %[[F:.*]] = llm.fused @gated_experts -> tensor<?x32xf32> {
// CHECK-NEXT:      %[[GATE:.*]] = llm.expert_linear %[[X]], %[[C]], %[[G]]
// CHECK-NEXT:      %[[ACT:.*]] = llm.activation silu %[[GATE]]
// CHECK-NEXT:      %[[UP:.*]] = llm.expert_linear %[[X]], %[[C]], %[[U]]
// CHECK-NEXT:      %[[MUL:.*]] = llm.mul %[[ACT]], %[[UP]]
// CHECK-NEXT:      llm.yield %[[MUL]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[F]]
func.func @fires(%x: tensor<?x8xf32>, %c: tensor<?x2xf32>, %wg: !llm.weight<4x16x8xf32>, %wu: !llm.weight<4x16x8xf32>)
    -> tensor<?x32xf32> {
  %g = llm.expert_linear %x, %c, %wg : tensor<?x8xf32>, tensor<?x2xf32>, !llm.weight<4x16x8xf32>
  %a = llm.activation silu %g : tensor<?x32xf32>
  %u = llm.expert_linear %x, %c, %wu : tensor<?x8xf32>, tensor<?x2xf32>, !llm.weight<4x16x8xf32>
  %m = llm.mul %a, %u : tensor<?x32xf32>
  return %m : tensor<?x32xf32>
}

// Other choices, or a gate that is read elsewhere.
// CHECK-LABEL: func.func @stays
// CHECK-NOT:     llm.fused
func.func @stays(%x: tensor<?x8xf32>, %c: tensor<?x2xf32>, %d: tensor<?x2xf32>, %wg: !llm.weight<4x16x8xf32>,
                 %wu: !llm.weight<4x16x8xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>) {
  %g = llm.expert_linear %x, %c, %wg : tensor<?x8xf32>, tensor<?x2xf32>, !llm.weight<4x16x8xf32>
  %a = llm.activation silu %g : tensor<?x32xf32>
  %u = llm.expert_linear %x, %d, %wu : tensor<?x8xf32>, tensor<?x2xf32>, !llm.weight<4x16x8xf32>
  %m = llm.mul %a, %u : tensor<?x32xf32>
  %h = llm.expert_linear %x, %d, %wg : tensor<?x8xf32>, tensor<?x2xf32>, !llm.weight<4x16x8xf32>
  %b = llm.activation silu %h : tensor<?x32xf32>
  %v = llm.expert_linear %x, %d, %wu : tensor<?x8xf32>, tensor<?x2xf32>, !llm.weight<4x16x8xf32>
  %n = llm.mul %b, %v : tensor<?x32xf32>
  return %m, %n, %h : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>
}
