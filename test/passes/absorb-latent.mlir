// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(llm-absorb-latent))' | FileCheck %s
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(llm-absorb-latent),llm-insert-kv-cache{dtype=bf16},func.func(llm-paged-attention))' | FileCheck %s --check-prefix=CACHE

// 4 heads: keys of 12 from the latent row and 8 that are shared, values of 16; the latent row has 20.
// CHECK-LABEL: func.func @fires
// CHECK-SAME:    (%[[B:.*]]: !llm.batch, %[[Q:.*]]: tensor<?x80xf32>, %[[C:.*]]: tensor<?x20xf32>, %[[R:.*]]: tensor<?x8xf32>, %[[WK:.*]]: !llm.weight<48x20xf32>, %[[WV:.*]]: !llm.weight<64x20xf32>)
// CHECK:         %[[K3:.*]] = llm.weight_reshape %[[WK]] : <48x20xf32> to <4x12x20xf32>
// CHECK:         %[[KT:.*]] = llm.weight_transpose %[[K3]] : <4x12x20xf32>
// CHECK:         %[[QN:.*]] = llm.slice_heads %[[Q]] heads 4 columns 0 to 12
// CHECK:         %[[QR:.*]] = llm.slice_heads %[[Q]] heads 4 columns 12 to 20
// CHECK:         %[[QC:.*]] = llm.head_linear %[[QN]], %[[KT]]
// CHECK:         %[[QL:.*]] = llm.join_heads %[[QC]], %[[QR]] heads 4
// CHECK:         %[[K:.*]] = llm.join_heads %[[C]], %[[R]] heads 1
// CHECK:         %[[V:.*]] = llm.slice %[[K]] columns 0 to 20
// CHECK:         %[[M:.*]] = llm.attention %[[QL]], %[[K]], %[[V]], %[[B]] heads 4 kv_heads 1 scale 2.500000e-01 keys tokens : tensor<?x112xf32>, tensor<?x28xf32> values tensor<?x20xf32>
// CHECK:         %[[V3:.*]] = llm.weight_reshape %[[WV]] : <64x20xf32> to <4x16x20xf32>
// CHECK:         %[[Y:.*]] = llm.head_linear %[[M]], %[[V3]]
// CHECK-NOT:     llm.linear
// CHECK:         return %[[Y]] : tensor<?x64xf32>

// The cache keeps 28 numbers of a token, not 4 (20 + 16).
// CACHE-LABEL: func.func @fires
// CACHE-SAME:    !llm.cache<1 x [k: 1x28xbf16, v: 20 of k]>
// CACHE:         llm.kv_append
// CACHE:         llm.paged_attention {{.*}} layer 0 heads 4 scale 2.500000e-01 : tensor<?x112xf32>, <1 x [k: 1x28xbf16, v: 20 of k]>
func.func @fires(%b: !llm.batch, %q: tensor<?x80xf32>, %c: tensor<?x20xf32>, %r: tensor<?x8xf32>,
                 %wk: !llm.weight<48x20xf32>, %wv: !llm.weight<64x20xf32>) -> tensor<?x64xf32> {
  %kn = llm.linear %c, %wk : tensor<?x20xf32>, !llm.weight<48x20xf32>
  %kr = llm.repeat_kv %r heads 1 times 4 : tensor<?x8xf32>
  %k = llm.join_heads %kn, %kr heads 4 : tensor<?x48xf32>, tensor<?x32xf32>
  %v = llm.linear %c, %wv : tensor<?x20xf32>, !llm.weight<64x20xf32>
  %y = llm.attention %q, %k, %v, %b heads 4 kv_heads 4 scale 0.25 keys tokens
     : tensor<?x80xf32>, tensor<?x80xf32> values tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// Keys and values of different rows stay, and are both cached.
// CHECK-LABEL: func.func @two_rows
// CHECK-NOT:     llm.head_linear
// CACHE-LABEL: func.func @two_rows
// CACHE-SAME:    !llm.cache<1 x [k: 4x20xbf16, v: 4x16xbf16]>
func.func @two_rows(%b: !llm.batch, %q: tensor<?x80xf32>, %c: tensor<?x20xf32>, %d: tensor<?x20xf32>,
                    %r: tensor<?x8xf32>, %wk: !llm.weight<48x20xf32>, %wv: !llm.weight<64x20xf32>) -> tensor<?x64xf32> {
  %kn = llm.linear %c, %wk : tensor<?x20xf32>, !llm.weight<48x20xf32>
  %kr = llm.repeat_kv %r heads 1 times 4 : tensor<?x8xf32>
  %k = llm.join_heads %kn, %kr heads 4 : tensor<?x48xf32>, tensor<?x32xf32>
  %v = llm.linear %d, %wv : tensor<?x20xf32>, !llm.weight<64x20xf32>
  %y = llm.attention %q, %k, %v, %b heads 4 kv_heads 4 scale 0.25 keys tokens
     : tensor<?x80xf32>, tensor<?x80xf32> values tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// Nothing is won: two heads' keys and values are as narrow as the latent row.
// CHECK-LABEL: func.func @wide_latent
// CHECK-NOT:     llm.head_linear
// CACHE-LABEL: func.func @wide_latent
func.func @wide_latent(%b: !llm.batch, %q: tensor<?x16xf32>, %c: tensor<?x64xf32>, %r: tensor<?x4xf32>,
                       %wk: !llm.weight<8x64xf32>, %wv: !llm.weight<8x64xf32>) -> tensor<?x8xf32> {
  %kn = llm.linear %c, %wk : tensor<?x64xf32>, !llm.weight<8x64xf32>
  %kr = llm.repeat_kv %r heads 1 times 2 : tensor<?x4xf32>
  %k = llm.join_heads %kn, %kr heads 2 : tensor<?x8xf32>, tensor<?x8xf32>
  %v = llm.linear %c, %wv : tensor<?x64xf32>, !llm.weight<8x64xf32>
  %y = llm.attention %q, %k, %v, %b heads 2 kv_heads 2 scale 0.25 keys tokens
     : tensor<?x16xf32>, tensor<?x16xf32> values tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// A weight in groups of columns cannot be turned.
// CHECK-LABEL: func.func @quantised
// CHECK-NOT:     llm.head_linear
// CACHE-LABEL: func.func @quantised
func.func @quantised(%b: !llm.batch, %q: tensor<?x80xf32>, %c: tensor<?x32xf32>, %r: tensor<?x8xf32>,
                     %wk: !llm.weight<48x32xq8_0>, %wv: !llm.weight<64x32xq8_0>) -> tensor<?x64xf32> {
  %kn = llm.linear %c, %wk : tensor<?x32xf32>, !llm.weight<48x32xq8_0>
  %kr = llm.repeat_kv %r heads 1 times 4 : tensor<?x8xf32>
  %k = llm.join_heads %kn, %kr heads 4 : tensor<?x48xf32>, tensor<?x32xf32>
  %v = llm.linear %c, %wv : tensor<?x32xf32>, !llm.weight<64x32xq8_0>
  %y = llm.attention %q, %k, %v, %b heads 4 kv_heads 4 scale 0.25 keys tokens
     : tensor<?x80xf32>, tensor<?x80xf32> values tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// A file that has the keys' matrices turned already: what was decoded to turn them is read as it is stored.
// CHECK-LABEL: func.func @turned
// CHECK-SAME:    %[[S:[^ ]*]]: !llm.weight<4x32x32xq8_0>
// CHECK:         llm.head_linear %{{.*}}, %[[S]] :
func.func @turned(%b: !llm.batch, %q: tensor<?x160xf32>, %c: tensor<?x32xf32>, %r: tensor<?x8xf32>,
                  %s: !llm.weight<4x32x32xq8_0>, %wv: !llm.weight<64x32xf32>) -> tensor<?x64xf32> {
  %f = llm.weight_convert %s : !llm.weight<4x32x32xq8_0> to !llm.weight<4x32x32xf32>
  %t = llm.weight_transpose %f : !llm.weight<4x32x32xf32>
  %wk = llm.weight_reshape %t : !llm.weight<4x32x32xf32> to !llm.weight<128x32xf32>
  %kn = llm.linear %c, %wk : tensor<?x32xf32>, !llm.weight<128x32xf32>
  %kr = llm.repeat_kv %r heads 1 times 4 : tensor<?x8xf32>
  %k = llm.join_heads %kn, %kr heads 4 : tensor<?x128xf32>, tensor<?x32xf32>
  %v = llm.linear %c, %wv : tensor<?x32xf32>, !llm.weight<64x32xf32>
  %y = llm.attention %q, %k, %v, %b heads 4 kv_heads 4 scale 0.25 keys tokens
     : tensor<?x160xf32>, tensor<?x160xf32> values tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
