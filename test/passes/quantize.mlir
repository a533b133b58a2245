// Vectors become f32, matrices what `precision` says; what lies between a weight and its reader follows.
// RUN: tenon-opt %s --llm-quantize 2>&1 | FileCheck %s --check-prefixes=CHECK,STORED
// RUN: tenon-opt %s --llm-quantize=precision=int8 2>&1 | FileCheck %s --check-prefixes=CHECK,INT8
// RUN: tenon-opt %s --llm-quantize=precision=f32 2>&1 | FileCheck %s --check-prefixes=CHECK,F32
// RUN: not tenon-opt %s --llm-quantize=precision=int3 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: error: unknown precision 'int3'; accepted: stored, f32, bf16, f16, int8, int4

// INT8: warning: 1 tensors are quantised already and are quantised again to int8
// STORED-NOT: warning
// F32-NOT: warning

// CHECK-LABEL: func.func @weights
// CHECK:         %[[N:.*]] = llm.weight "norm" : <32xbf16>
// CHECK-NEXT:    llm.weight_convert %[[N]] : <32xbf16> to <32xf32>
// CHECK:         %[[B:.*]] = llm.weight "matrix" : <32x32xbf16>
// STORED-NEXT:   llm.linear %{{.*}}, %[[B]]
// INT8-NEXT:     %[[B8:.*]] = llm.weight_convert %[[B]] : <32x32xbf16> to <32x32xq8_0>
// INT8-NEXT:     llm.linear %{{.*}}, %[[B8]]
// F32-NEXT:      %[[BF:.*]] = llm.weight_convert %[[B]] : <32x32xbf16> to <32x32xf32>
// F32-NEXT:      llm.linear %{{.*}}, %[[BF]]
// CHECK:         llm.weight "again" : <32x32xq4_1>
// STORED-NEXT:   llm.weight_deinterleave %{{.*}} heads 4 : <32x32xq4_1>
// STORED-NEXT:   llm.weight_concat %{{.*}} : !llm.weight<32x32xq4_1>, !llm.weight<32x32xq4_1>
// INT8-NEXT:     llm.weight_convert %{{.*}} : <32x32xq4_1> to <32x32xq8_0>
// INT8-NEXT:     llm.weight_deinterleave %{{.*}} heads 4 : <32x32xq8_0>
// INT8-NEXT:     llm.weight_concat %{{.*}} : !llm.weight<32x32xq8_0>, !llm.weight<32x32xq8_0>
// F32-NEXT:      llm.weight_convert %{{.*}} : <32x32xq4_1> to <32x32xf32>
// F32:           llm.linear %{{.*}} : tensor<?x32xf32>, <64x32xf32>
func.func @weights(%x: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %n = llm.weight "norm" : <32xbf16>
  %y = llm.rms_norm %x, %n eps 1.0e-05 : tensor<?x32xf32>, !llm.weight<32xbf16>
  %b = llm.weight "matrix" : <32x32xbf16>
  %z = llm.linear %y, %b : tensor<?x32xf32>, !llm.weight<32x32xbf16>
  %q = llm.weight "again" : <32x32xq4_1>
  %d = llm.weight_deinterleave %q heads 4 : !llm.weight<32x32xq4_1>
  %c = llm.weight_concat %d, %q : !llm.weight<32x32xq4_1>, !llm.weight<32x32xq4_1>
  %r = llm.linear %z, %c : tensor<?x32xf32>, !llm.weight<64x32xq4_1>
  return %r : tensor<?x64xf32>
}

// A transposed matrix is converted as it will lie; slices follow. What reads it as it is has a conversion of its own.
// CHECK-LABEL: func.func @transposed
// CHECK:         %[[W:.*]] = llm.weight "conv" : <32x64xf32>
// INT8-NEXT:     %[[T:.*]] = llm.weight_transpose %[[W]] : <32x64xf32>
// INT8-NEXT:     %[[C:.*]] = llm.weight_convert %[[T]] : <64x32xf32> to <64x32xq8_0>
// INT8-NEXT:     llm.weight_slice %[[C]] rows 0 to 32 : <64x32xq8_0>
func.func @transposed(%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %w = llm.weight "conv" : <32x64xf32>
  %t = llm.weight_transpose %w : !llm.weight<32x64xf32>
  %s = llm.weight_slice %t rows 0 to 32 : !llm.weight<64x32xf32>
  %r = llm.linear %x, %s : tensor<?x32xf32>, !llm.weight<32x32xf32>
  return %r : tensor<?x32xf32>
}
