//            x                            x
//            │                            │
//           norm                    fused @norm_qkv
//         ┌──┼──┐                         │
//         Q  K  V         ─▶      slice slice slice
//
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(llm-fuse-norm-qkv))' | FileCheck %s

// CHECK-LABEL: func.func @fires
// CHECK:         %[[W:.*]] = llm.weight_concat %{{.*}}, %{{.*}}, %{{.*}} : !llm.weight<16x16xf32>, !llm.weight<8x16xf32>, !llm.weight<8x16xf32>
// CHECK-NEXT:    %[[F:.*]] = llm.fused @norm_qkv -> tensor<?x32xf32> {
// CHECK-NEXT:      %[[N:.*]] = llm.rms_norm
// CHECK-NEXT:      %[[L:.*]] = llm.linear %[[N]], %[[W]]
// CHECK-NEXT:      llm.yield %[[L]]
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[Q:.*]] = llm.slice %[[F]] columns 0 to 16
// CHECK-NEXT:    %[[K:.*]] = llm.slice %[[F]] columns 16 to 24
// CHECK-NEXT:    %[[V:.*]] = llm.slice %[[F]] columns 24 to 32
// CHECK-NEXT:    llm.attention %[[Q]], %[[K]], %[[V]]
// CHECK-NOT:     llm.linear
func.func @fires(%b: !llm.batch, %x: tensor<?x16xf32>, %n: !llm.weight<16xf32>, %wq: !llm.weight<16x16xf32>, %wk: !llm.weight<8x16xf32>, %wv: !llm.weight<8x16xf32>) -> tensor<?x16xf32> {
  %y = llm.rms_norm %x, %n eps 1.0e-05 : tensor<?x16xf32>, !llm.weight<16xf32>
  %q = llm.linear %y, %wq : tensor<?x16xf32>, !llm.weight<16x16xf32>
  %k = llm.linear %y, %wk : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %v = llm.linear %y, %wv : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %a = llm.attention %q, %k, %v, %b heads 4 kv_heads 2 scale 0.5 keys tokens : tensor<?x16xf32>, tensor<?x8xf32>
  return %a : tensor<?x16xf32>
}

// Biases are stacked like the weights.
// CHECK-LABEL: func.func @biases
// CHECK:         llm.weight_concat
// CHECK-NEXT:    %[[B:.*]] = llm.weight_concat %{{.*}} : !llm.weight<16xf32>, !llm.weight<8xf32>, !llm.weight<8xf32>
// CHECK:         llm.linear %{{.*}}, %{{.*}}, %[[B]]
func.func @biases(%b: !llm.batch, %x: tensor<?x16xf32>, %n: !llm.weight<16xf32>, %wq: !llm.weight<16x16xf32>, %wk: !llm.weight<8x16xf32>, %wv: !llm.weight<8x16xf32>,
    %bq: !llm.weight<16xf32>,
    %bk: !llm.weight<8xf32>,
    %bv: !llm.weight<8xf32>) -> tensor<?x16xf32> {
  %y = llm.rms_norm %x, %n eps 1.0e-05 : tensor<?x16xf32>, !llm.weight<16xf32>
  %q = llm.linear %y, %wq, %bq : tensor<?x16xf32>, !llm.weight<16x16xf32>, !llm.weight<16xf32>
  %k = llm.linear %y, %wk, %bk : tensor<?x16xf32>, !llm.weight<8x16xf32>, !llm.weight<8xf32>
  %v = llm.linear %y, %wv, %bv : tensor<?x16xf32>, !llm.weight<8x16xf32>, !llm.weight<8xf32>
  %a = llm.attention %q, %k, %v, %b heads 4 kv_heads 2 scale 0.5 keys tokens : tensor<?x16xf32>, tensor<?x8xf32>
  return %a : tensor<?x16xf32>
}

// What a projection is for follows from its reader, not from its place: V comes first here, and K is rotated.
// CHECK-LABEL: func.func @any_order
// CHECK-SAME:    %[[WV:[^ ]*]]: !llm.weight<8x16xf32>, %[[WK:[^ ]*]]: !llm.weight<8x16xf32>, %[[WQ:[^ ]*]]: !llm.weight<16x16xf32>
// CHECK:         llm.weight_concat %[[WQ]], %[[WK]], %[[WV]]
// CHECK:         llm.fused @norm_qkv
func.func @any_order(%b: !llm.batch, %x: tensor<?x16xf32>, %t: tensor<?x4xf32>, %n: !llm.weight<16xf32>,
    %wv: !llm.weight<8x16xf32>, %wk: !llm.weight<8x16xf32>, %wq: !llm.weight<16x16xf32>) -> tensor<?x16xf32> {
  %y = llm.rms_norm %x, %n eps 1.0e-05 : tensor<?x16xf32>, !llm.weight<16xf32>
  %v = llm.linear %y, %wv : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %k = llm.linear %y, %wk : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %kr = llm.rope %k, %t heads 2 half : tensor<?x8xf32>, tensor<?x4xf32>
  %q = llm.linear %y, %wq : tensor<?x16xf32>, !llm.weight<16x16xf32>
  %a = llm.attention %q, %kr, %v, %b heads 4 kv_heads 2 scale 0.5 keys tokens : tensor<?x16xf32>, tensor<?x8xf32>
  return %a : tensor<?x16xf32>
}

// Left alone: the norm has another user.
// CHECK-LABEL: func.func @norm_is_read
// CHECK-NOT:     llm.fused
func.func @norm_is_read(%b: !llm.batch, %x: tensor<?x16xf32>, %n: !llm.weight<16xf32>, %wq: !llm.weight<16x16xf32>, %wk: !llm.weight<8x16xf32>, %wv: !llm.weight<8x16xf32>) -> tensor<?x16xf32> {
  %y = llm.rms_norm %x, %n eps 1.0e-05 : tensor<?x16xf32>, !llm.weight<16xf32>
  %q = llm.linear %y, %wq : tensor<?x16xf32>, !llm.weight<16x16xf32>
  %k = llm.linear %y, %wk : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %v = llm.linear %y, %wv : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %a = llm.attention %q, %k, %v, %b heads 4 kv_heads 2 scale 0.5 keys tokens : tensor<?x16xf32>, tensor<?x8xf32>
  %s = llm.add %a, %y : tensor<?x16xf32>
  return %s : tensor<?x16xf32>
}

// Left alone: V is stored otherwise.
// CHECK-LABEL: func.func @unequal_storage
// CHECK-NOT:     llm.fused
func.func @unequal_storage(%b: !llm.batch, %x: tensor<?x16xf32>, %n: !llm.weight<16xf32>, %wq: !llm.weight<16x16xbf16>, %wk: !llm.weight<8x16xbf16>, %wv: !llm.weight<8x16xf16>) -> tensor<?x16xf32> {
  %y = llm.rms_norm %x, %n eps 1.0e-05 : tensor<?x16xf32>, !llm.weight<16xf32>
  %q = llm.linear %y, %wq : tensor<?x16xf32>, !llm.weight<16x16xbf16>
  %k = llm.linear %y, %wk : tensor<?x16xf32>, !llm.weight<8x16xbf16>
  %v = llm.linear %y, %wv : tensor<?x16xf32>, !llm.weight<8x16xf16>
  %a = llm.attention %q, %k, %v, %b heads 4 kv_heads 2 scale 0.5 keys tokens : tensor<?x16xf32>, tensor<?x8xf32>
  return %a : tensor<?x16xf32>
}

// Left alone: only Q has a bias.
// CHECK-LABEL: func.func @mixed_biases
// CHECK-NOT:     llm.fused
func.func @mixed_biases(%b: !llm.batch, %x: tensor<?x16xf32>, %n: !llm.weight<16xf32>, %wq: !llm.weight<16x16xf32>, %wk: !llm.weight<8x16xf32>, %wv: !llm.weight<8x16xf32>,
    %bq: !llm.weight<16xf32>) -> tensor<?x16xf32> {
  %y = llm.rms_norm %x, %n eps 1.0e-05 : tensor<?x16xf32>, !llm.weight<16xf32>
  %q = llm.linear %y, %wq, %bq : tensor<?x16xf32>, !llm.weight<16x16xf32>, !llm.weight<16xf32>
  %k = llm.linear %y, %wk : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %v = llm.linear %y, %wv : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %a = llm.attention %q, %k, %v, %b heads 4 kv_heads 2 scale 0.5 keys tokens : tensor<?x16xf32>, tensor<?x8xf32>
  return %a : tensor<?x16xf32>
}

// Queries and keys may have norms of their own (Qwen3).
// CHECK-LABEL: func.func @query_key_norm
// CHECK:         %[[F:.*]] = llm.fused @norm_qkv
// CHECK:         llm.rms_norm %{{.*}}, %{{.*}} heads 4
// CHECK:         llm.rms_norm %{{.*}}, %{{.*}} heads 2
// CHECK-NOT:     llm.linear
func.func @query_key_norm(%b: !llm.batch, %x: tensor<?x16xf32>, %n: !llm.weight<16xf32>, %h: !llm.weight<4xf32>, %a: tensor<?x4xf32>, %wq: !llm.weight<16x16xf32>, %wk: !llm.weight<8x16xf32>, %wv: !llm.weight<8x16xf32>) -> tensor<?x16xf32> {
  %y = llm.rms_norm %x, %n eps 1.0e-05 : tensor<?x16xf32>, !llm.weight<16xf32>
  %q = llm.linear %y, %wq : tensor<?x16xf32>, !llm.weight<16x16xf32>
  %k = llm.linear %y, %wk : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %v = llm.linear %y, %wv : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %qn = llm.rms_norm %q, %h heads 4 eps 1.0e-05 : tensor<?x16xf32>, !llm.weight<4xf32>
  %kn = llm.rms_norm %k, %h heads 2 eps 1.0e-05 : tensor<?x8xf32>, !llm.weight<4xf32>
  %qr = llm.rope %qn, %a heads 4 half : tensor<?x16xf32>, tensor<?x4xf32>
  %kr = llm.rope %kn, %a heads 2 half : tensor<?x8xf32>, tensor<?x4xf32>
  %r = llm.attention %qr, %kr, %v, %b heads 4 kv_heads 2 scale 0.5 keys tokens : tensor<?x16xf32>, tensor<?x8xf32>
  return %r : tensor<?x16xf32>
}

// Left alone: the products' own norm is of whole rows.
// CHECK-LABEL: func.func @norm_of_heads
// CHECK-NOT:     llm.fused
func.func @norm_of_heads(%b: !llm.batch, %x: tensor<?x16xf32>, %n: !llm.weight<4xf32>, %wq: !llm.weight<16x16xf32>, %wk: !llm.weight<8x16xf32>, %wv: !llm.weight<8x16xf32>) -> tensor<?x16xf32> {
  %y = llm.rms_norm %x, %n heads 4 eps 1.0e-05 : tensor<?x16xf32>, !llm.weight<4xf32>
  %q = llm.linear %y, %wq : tensor<?x16xf32>, !llm.weight<16x16xf32>
  %k = llm.linear %y, %wk : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %v = llm.linear %y, %wv : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %r = llm.attention %q, %k, %v, %b heads 4 kv_heads 2 scale 0.5 keys tokens : tensor<?x16xf32>, tensor<?x8xf32>
  return %r : tensor<?x16xf32>
}

// LayerNorm with its bias (GPT-2).
// CHECK-LABEL: func.func @layer_norm
// CHECK:         llm.fused @norm_qkv
// CHECK-NEXT:      %[[N:.*]] = llm.layer_norm %{{.*}}, %{{.*}}, %{{.*}} eps
// CHECK-NEXT:      llm.linear %[[N]]
// CHECK-NOT:     llm.linear
func.func @layer_norm(%b: !llm.batch, %x: tensor<?x16xf32>, %n: !llm.weight<16xf32>, %m: !llm.weight<16xf32>, %wq: !llm.weight<16x16xf32>, %wk: !llm.weight<8x16xf32>, %wv: !llm.weight<8x16xf32>) -> tensor<?x16xf32> {
  %y = llm.layer_norm %x, %n, %m eps 1.0e-05 : tensor<?x16xf32>, !llm.weight<16xf32>, !llm.weight<16xf32>
  %q = llm.linear %y, %wq : tensor<?x16xf32>, !llm.weight<16x16xf32>
  %k = llm.linear %y, %wk : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %v = llm.linear %y, %wv : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %a = llm.attention %q, %k, %v, %b heads 4 kv_heads 2 scale 0.5 keys tokens : tensor<?x16xf32>, tensor<?x8xf32>
  return %a : tensor<?x16xf32>
}

// Left alone: the MLP beside attention reads the same norm (Phi).
// CHECK-LABEL: func.func @parallel
// CHECK-NOT:     llm.fused
func.func @parallel(%b: !llm.batch, %x: tensor<?x16xf32>, %n: !llm.weight<16xf32>, %wq: !llm.weight<16x16xf32>, %wk: !llm.weight<8x16xf32>, %wv: !llm.weight<8x16xf32>) -> tensor<?x16xf32> {
  %y = llm.layer_norm %x, %n eps 1.0e-05 : tensor<?x16xf32>, !llm.weight<16xf32>
  %q = llm.linear %y, %wq : tensor<?x16xf32>, !llm.weight<16x16xf32>
  %k = llm.linear %y, %wk : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %v = llm.linear %y, %wv : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %a = llm.attention %q, %k, %v, %b heads 4 kv_heads 2 scale 0.5 keys tokens : tensor<?x16xf32>, tensor<?x8xf32>
  %u = llm.linear %y, %wq : tensor<?x16xf32>, !llm.weight<16x16xf32>
  %s = llm.add %a, %u : tensor<?x16xf32>
  return %s : tensor<?x16xf32>
}
