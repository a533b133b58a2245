// Where the pass fires, and where it stays away.
//
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(fuse-qk-norm-rope))' | FileCheck %s

// Queries and keys of a layer become one operation with two results.
// CHECK-LABEL: func.func @both
// CHECK-SAME:    %[[Q:[^ ]*]]: tensor<?x32xf32>, %[[K:[^ ]*]]: tensor<?x16xf32>
// CHECK-NEXT:    %[[F:.*]]:2 = llm.fused @qk_norm_rope -> tensor<?x32xf32>, tensor<?x16xf32> {
// CHECK-NEXT:      %[[QN:.*]] = llm.rms_norm %[[Q]], %{{.*}} heads 4
// CHECK-NEXT:      %[[QR:.*]] = llm.rope %[[QN]], %{{.*}} heads 4 half
// CHECK-NEXT:      %[[KN:.*]] = llm.rms_norm %[[K]], %{{.*}} heads 2
// CHECK-NEXT:      %[[KR:.*]] = llm.rope %[[KN]], %{{.*}} heads 2 half
// CHECK-NEXT:      llm.yield %[[QR]], %[[KR]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[F]]#0, %[[F]]#1
func.func @both(%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %wq: !llm.weight<8xf32>, %wk: !llm.weight<8xf32>, %a: tensor<?x8xf32>) -> (tensor<?x32xf32>, tensor<?x16xf32>) {
  %qn = llm.rms_norm %q, %wq heads 4 eps 1.0e-06 : tensor<?x32xf32>, !llm.weight<8xf32>
  %qr = llm.rope %qn, %a heads 4 half : tensor<?x32xf32>, tensor<?x8xf32>
  %kn = llm.rms_norm %k, %wk heads 2 eps 1.0e-06 : tensor<?x16xf32>, !llm.weight<8xf32>
  %kr = llm.rope %kn, %a heads 2 half : tensor<?x16xf32>, tensor<?x8xf32>
  return %qr, %kr : tensor<?x32xf32>, tensor<?x16xf32>
}

// Two fusions: the second rotation depends on the first.
// CHECK-LABEL: func.func @in_turn
// CHECK-NEXT:    llm.fused @qk_norm_rope -> tensor<?x32xf32> {
// CHECK:         llm.add
// CHECK-NEXT:    llm.fused @qk_norm_rope -> tensor<?x32xf32> {
func.func @in_turn(%x: tensor<?x32xf32>, %w: !llm.weight<8xf32>, %a: tensor<?x8xf32>) -> tensor<?x32xf32> {
  %n = llm.rms_norm %x, %w heads 4 eps 1.0e-06 : tensor<?x32xf32>, !llm.weight<8xf32>
  %r = llm.rope %n, %a heads 4 half : tensor<?x32xf32>, tensor<?x8xf32>
  %s = llm.add %r, %x : tensor<?x32xf32>
  %m = llm.rms_norm %s, %w heads 4 eps 1.0e-06 : tensor<?x32xf32>, !llm.weight<8xf32>
  %t = llm.rope %m, %a heads 4 half : tensor<?x32xf32>, tensor<?x8xf32>
  return %t : tensor<?x32xf32>
}

// Two fusions: they turn by different angles.
// CHECK-LABEL: func.func @other_angles
// CHECK-COUNT-2: llm.fused @qk_norm_rope
func.func @other_angles(%q: tensor<?x32xf32>, %k: tensor<?x32xf32>, %w: !llm.weight<8xf32>, %a: tensor<?x8xf32>, %b: tensor<?x8xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %qn = llm.rms_norm %q, %w heads 4 eps 1.0e-06 : tensor<?x32xf32>, !llm.weight<8xf32>
  %kn = llm.rms_norm %k, %w heads 4 eps 1.0e-06 : tensor<?x32xf32>, !llm.weight<8xf32>
  %qr = llm.rope %qn, %a heads 4 half : tensor<?x32xf32>, tensor<?x8xf32>
  %kr = llm.rope %kn, %b heads 4 half : tensor<?x32xf32>, tensor<?x8xf32>
  return %qr, %kr : tensor<?x32xf32>, tensor<?x32xf32>
}

// Left alone: a norm of whole rows, and one that others read.
// CHECK-LABEL: func.func @left_alone
// CHECK-NOT:     llm.fused
func.func @left_alone(%q: tensor<?x32xf32>, %w: !llm.weight<32xf32>, %v: !llm.weight<8xf32>, %a: tensor<?x8xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>) {
  %n = llm.rms_norm %q, %w eps 1.0e-06 : tensor<?x32xf32>, !llm.weight<32xf32>
  %r = llm.rope %n, %a heads 4 half : tensor<?x32xf32>, tensor<?x8xf32>
  %m = llm.rms_norm %q, %v heads 4 eps 1.0e-06 : tensor<?x32xf32>, !llm.weight<8xf32>
  %s = llm.rope %m, %a heads 4 half : tensor<?x32xf32>, tensor<?x8xf32>
  return %r, %s, %m : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>
}

// Left alone: llm-fuse-rope has taken the rotations.
// CHECK-LABEL: func.func @decode
// CHECK-NEXT:    llm.rms_norm
// CHECK-NEXT:    llm.rms_norm
// CHECK-NEXT:    llm.fused @rope_attention
func.func @decode(%b: !llm.batch, %q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %w: !llm.weight<8xf32>, %a: tensor<?x8xf32>, %c: !llm.cache<1 x [k: 2x8xf32, v: 2x8xf32]>) -> (tensor<?x32xf32>, !llm.cache<1 x [k: 2x8xf32, v: 2x8xf32]>) attributes {llm.phase = "decode"} {
  %qn = llm.rms_norm %q, %w heads 4 eps 1.0e-06 : tensor<?x32xf32>, !llm.weight<8xf32>
  %kn = llm.rms_norm %k, %w heads 2 eps 1.0e-06 : tensor<?x16xf32>, !llm.weight<8xf32>
  %f:2 = llm.fused @rope_attention -> tensor<?x32xf32>, !llm.cache<1 x [k: 2x8xf32, v: 2x8xf32]> {
    %qr = llm.rope %qn, %a heads 4 half : tensor<?x32xf32>, tensor<?x8xf32>
    %kr = llm.rope %kn, %a heads 2 half : tensor<?x16xf32>, tensor<?x8xf32>
    %d = llm.kv_append %c, %kr, %v, %b layer 0 : !llm.cache<1 x [k: 2x8xf32, v: 2x8xf32]>, tensor<?x16xf32>
    %y = llm.paged_attention %qr, %d, %b layer 0 heads 4 scale 0.5 : tensor<?x32xf32>, !llm.cache<1 x [k: 2x8xf32, v: 2x8xf32]>
    llm.yield %y, %d : tensor<?x32xf32>, !llm.cache<1 x [k: 2x8xf32, v: 2x8xf32]>
  }
  return %f#0, %f#1 : tensor<?x32xf32>, !llm.cache<1 x [k: 2x8xf32, v: 2x8xf32]>
}
