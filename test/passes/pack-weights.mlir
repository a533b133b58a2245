// Matrices are packed where operations read them; what other weight operations read stays plain.
// RUN: tenon-opt %s --llm-pack-weights | FileCheck %s
// RUN: tenon-opt %s --llm-pack-weights --llm-pack-weights | FileCheck %s
// RUN: tenon-opt %s --llm-pack-weights=keep-rows=true | FileCheck %s --check-prefix ROWS

// CHECK-LABEL: func.func @weights
func.func @weights(%b: !llm.batch, %x: tensor<?x32xf32>) -> tensor<?x64xf32> {
  // CHECK-NEXT: %[[N:.*]] = llm.weight "norm" : <32xf32>
  // CHECK-NEXT: %[[Y:.*]] = llm.rms_norm %{{.*}}, %[[N]]
  %n = llm.weight "norm" : <32xf32>
  %y = llm.rms_norm %x, %n eps 1.0e-05 : tensor<?x32xf32>, !llm.weight<32xf32>
  // CHECK-NEXT: %[[Q:.*]] = llm.weight "q" : <32x32xbf16>
  // CHECK-NEXT: %[[C:.*]] = llm.weight_concat %[[Q]], %[[Q]]
  // CHECK-NEXT: %[[P:.*]] = llm.weight_pack %[[C]] : <64x32xbf16> to <64x32xbf16, x16k2>
  // ROWS: llm.weight_pack %{{.*}} : <64x32xbf16> to <64x32xbf16, x1k8>
  %q = llm.weight "q" : <32x32xbf16>
  %c = llm.weight_concat %q, %q : !llm.weight<32x32xbf16>, !llm.weight<32x32xbf16>
  // CHECK-NEXT: llm.fused
  // CHECK-NEXT:   llm.linear %[[Y]], %[[P]]
  %f = llm.fused @f -> tensor<?x64xf32> {
    %l = llm.linear %y, %c : tensor<?x32xf32>, !llm.weight<64x32xbf16>
    llm.yield %l : tensor<?x64xf32>
  }
  // Angles read a table of doubles.
  // CHECK:      %[[F:.*]] = llm.rope_frequencies
  // CHECK-NEXT: llm.rope_angles %{{.*}}, %[[F]] : <4xf64>
  %t = llm.rope_frequencies dim 8 theta 1.0e+04
  %a = llm.rope_angles %b, %t : <4xf64>
  %r = llm.rope %f, %a heads 8 half : tensor<?x64xf32>, tensor<?x8xf32>
  // Layouts follow the storage.
  // CHECK: llm.weight_pack %{{.*}} : <64x64xf32> to <64x64xf32, x16k1>
  // ROWS: llm.weight_pack %{{.*}} : <64x64xf32> to <64x64xf32, x16k1>
  %w1 = llm.weight "f32" : <64x64xf32>
  %r1 = llm.linear %r, %w1 : tensor<?x64xf32>, !llm.weight<64x64xf32>
  // CHECK: llm.weight_pack %{{.*}} : <64x64xq8_0> to <64x64xq8_0, x16k4>
  %w2 = llm.weight "q8" : <64x64xq8_0>
  %r2 = llm.linear %r1, %w2 : tensor<?x64xf32>, !llm.weight<64x64xq8_0>
  // A table of score biases is read as it is.
  // CHECK-NOT: llm.weight_pack
  %bias = llm.alibi heads 8 length 16
  %r3 = llm.attention %r2, %r2, %r2, %b heads 8 kv_heads 8 scale 0.25 keys tokens bias %bias by key origin 0 : tensor<?x64xf32>, tensor<?x64xf32>, !llm.weight<8x16xf32>
  return %r3 : tensor<?x64xf32>
}
