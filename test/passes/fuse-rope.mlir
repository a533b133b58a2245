//   q ─ rope ──────────────┐
//   k ─ rope ─ kv_append ──┴─ paged_attention   ─▶   fused @rope_attention, in @decode alone
//
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(llm-fuse-rope))' | FileCheck %s

// The fusion yields the rows and the updated cache.
// CHECK-LABEL: func.func @decode
// CHECK-NEXT:    %[[F:.*]]:2 = llm.fused @rope_attention -> tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]> {
// CHECK-NEXT:      %[[Q:.*]] = llm.rope
// CHECK-NEXT:      %[[K:.*]] = llm.rope
// CHECK-NEXT:      %[[C:.*]] = llm.kv_append %{{.*}}, %[[K]]
// CHECK-NEXT:      %[[Y:.*]] = llm.paged_attention %[[Q]], %[[C]]
// CHECK-NEXT:      llm.yield %[[Y]], %[[C]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[F]]#0, %[[F]]#1
func.func @decode(%b: !llm.batch, %q: tensor<?x64xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>,
    %t: tensor<?x8xf32>, %u: tensor<?x8xf32>, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) -> (tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) attributes {llm.phase = "decode"} {
  %qr = llm.rope %q, %t heads 8 half : tensor<?x64xf32>, tensor<?x8xf32>
  %kr = llm.rope %k, %t heads 2 half : tensor<?x16xf32>, tensor<?x8xf32>
  %c1 = llm.kv_append %c, %kr, %v, %b layer 0 : !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>, tensor<?x16xf32>
  %y = llm.paged_attention %qr, %c1, %b layer 0 heads 8 scale 0.25 : tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
  return %y, %c1 : tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
}

// Where the rows come from does not matter: here from norms of their heads (Qwen3).
// CHECK-LABEL: func.func @normed
// CHECK-NEXT:    llm.rms_norm %{{.*}}, %{{.*}} heads 8
// CHECK-NEXT:    llm.rms_norm %{{.*}}, %{{.*}} heads 2
// CHECK-NEXT:    llm.fused @rope_attention
// CHECK-NEXT:      llm.rope
func.func @normed(%b: !llm.batch, %q: tensor<?x64xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>, %n: !llm.weight<8xf32>,
    %t: tensor<?x8xf32>, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) -> (tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) attributes {llm.phase = "decode"} {
  %qn = llm.rms_norm %q, %n heads 8 eps 1.0e-06 : tensor<?x64xf32>, !llm.weight<8xf32>
  %kn = llm.rms_norm %k, %n heads 2 eps 1.0e-06 : tensor<?x16xf32>, !llm.weight<8xf32>
  %qr = llm.rope %qn, %t heads 8 half : tensor<?x64xf32>, tensor<?x8xf32>
  %kr = llm.rope %kn, %t heads 2 half : tensor<?x16xf32>, tensor<?x8xf32>
  %c1 = llm.kv_append %c, %kr, %v, %b layer 0 : !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>, tensor<?x16xf32>
  %y = llm.paged_attention %qr, %c1, %b layer 0 heads 8 scale 0.25 : tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
  return %y, %c1 : tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
}

// Left alone: other tokens of the batch read the key.
// CHECK-LABEL: func.func @prefill
// CHECK-NOT:     llm.fused
func.func @prefill(%b: !llm.batch, %q: tensor<?x64xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>,
    %t: tensor<?x8xf32>, %u: tensor<?x8xf32>, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) -> (tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) {
  %qr = llm.rope %q, %t heads 8 half : tensor<?x64xf32>, tensor<?x8xf32>
  %kr = llm.rope %k, %t heads 2 half : tensor<?x16xf32>, tensor<?x8xf32>
  %c1 = llm.kv_append %c, %kr, %v, %b layer 0 : !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>, tensor<?x16xf32>
  %y = llm.paged_attention %qr, %c1, %b layer 0 heads 8 scale 0.25 : tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
  return %y, %c1 : tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
}

// Left alone: attention reads another layer than was written.
// CHECK-LABEL: func.func @other_layer
// CHECK-NOT:     llm.fused
func.func @other_layer(%b: !llm.batch, %q: tensor<?x64xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>,
    %t: tensor<?x8xf32>, %u: tensor<?x8xf32>, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) -> (tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) attributes {llm.phase = "decode"} {
  %qr = llm.rope %q, %t heads 8 half : tensor<?x64xf32>, tensor<?x8xf32>
  %kr = llm.rope %k, %t heads 2 half : tensor<?x16xf32>, tensor<?x8xf32>
  %c1 = llm.kv_append %c, %kr, %v, %b layer 1 : !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>, tensor<?x16xf32>
  %y = llm.paged_attention %qr, %c1, %b layer 0 heads 8 scale 0.25 : tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
  return %y, %c1 : tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
}

// Left alone: queries and keys are rotated differently.
// CHECK-LABEL: func.func @other_style
// CHECK-NOT:     llm.fused
func.func @other_style(%b: !llm.batch, %q: tensor<?x64xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>,
    %t: tensor<?x8xf32>, %u: tensor<?x8xf32>, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) -> (tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) attributes {llm.phase = "decode"} {
  %qr = llm.rope %q, %t heads 8 half : tensor<?x64xf32>, tensor<?x8xf32>
  %kr = llm.rope %k, %t heads 2 interleaved : tensor<?x16xf32>, tensor<?x8xf32>
  %c1 = llm.kv_append %c, %kr, %v, %b layer 0 : !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>, tensor<?x16xf32>
  %y = llm.paged_attention %qr, %c1, %b layer 0 heads 8 scale 0.25 : tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
  return %y, %c1 : tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
}

// Left alone: queries and keys are rotated by other angles.
// CHECK-LABEL: func.func @other_angles
// CHECK-NOT:     llm.fused
func.func @other_angles(%b: !llm.batch, %q: tensor<?x64xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>,
    %t: tensor<?x8xf32>, %u: tensor<?x8xf32>, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) -> (tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) attributes {llm.phase = "decode"} {
  %qr = llm.rope %q, %t heads 8 half : tensor<?x64xf32>, tensor<?x8xf32>
  %kr = llm.rope %k, %u heads 2 half : tensor<?x16xf32>, tensor<?x8xf32>
  %c1 = llm.kv_append %c, %kr, %v, %b layer 0 : !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>, tensor<?x16xf32>
  %y = llm.paged_attention %qr, %c1, %b layer 0 heads 8 scale 0.25 : tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
  return %y, %c1 : tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
}

// Left alone: the rotated query is read again.
// CHECK-LABEL: func.func @query_is_read
// CHECK-NOT:     llm.fused
func.func @query_is_read(%b: !llm.batch, %q: tensor<?x64xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>,
    %t: tensor<?x8xf32>, %u: tensor<?x8xf32>, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) -> (tensor<?x64xf32>, tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) attributes {llm.phase = "decode"} {
  %qr = llm.rope %q, %t heads 8 half : tensor<?x64xf32>, tensor<?x8xf32>
  %kr = llm.rope %k, %t heads 2 half : tensor<?x16xf32>, tensor<?x8xf32>
  %c1 = llm.kv_append %c, %kr, %v, %b layer 0 : !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>, tensor<?x16xf32>
  %y = llm.paged_attention %qr, %c1, %b layer 0 heads 8 scale 0.25 : tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
  return %y, %qr, %c1 : tensor<?x64xf32>, tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
}
