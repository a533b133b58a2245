//   cache ─ kv_read ─ attention   ─▶   cache ─ paged_attention
//
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(llm-paged-attention))' | FileCheck %s

// CHECK-LABEL: func.func @fires
// CHECK-SAME:    %[[B:[^ :]*]]: !llm.batch, %[[Q:[^ :]*]]: tensor<?x64xf32>, %[[C:[^ :]*]]: !llm.cache<
// CHECK-NEXT:    %[[Y:.*]] = llm.paged_attention %[[Q]], %[[C]], %[[B]] layer 1 heads 8 scale 2.500000e-01
// CHECK-NEXT:    return %[[Y]]
func.func @fires(%b: !llm.batch, %q: tensor<?x64xf32>, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) -> tensor<?x64xf32> {
  %k, %v = llm.kv_read %c, %b layer 1 : !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
  %y = llm.attention %q, %k, %v, %b heads 8 kv_heads 2 scale 0.25 keys context : tensor<?x64xf32>, tensor<?x16xf32>
  return %y : tensor<?x64xf32>
}

// Left alone: keys are read where values are expected.
// CHECK-LABEL: func.func @swapped
// CHECK:         llm.kv_read
// CHECK-NEXT:    llm.attention
func.func @swapped(%b: !llm.batch, %q: tensor<?x64xf32>, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) -> tensor<?x64xf32> {
  %k, %v = llm.kv_read %c, %b layer 1 : !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
  %y = llm.attention %q, %v, %k, %b heads 8 kv_heads 2 scale 0.25 keys context : tensor<?x64xf32>, tensor<?x16xf32>
  return %y : tensor<?x64xf32>
}

// Left alone: heads that are still copied.
// CHECK-LABEL: func.func @copied
// CHECK-NOT:     llm.paged_attention
func.func @copied(%b: !llm.batch, %q: tensor<?x64xf32>, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) -> tensor<?x64xf32> {
  %k, %v = llm.kv_read %c, %b layer 1 : !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
  %kr = llm.repeat_kv %k heads 2 times 4 : tensor<?x16xf32>
  %vr = llm.repeat_kv %v heads 2 times 4 : tensor<?x16xf32>
  %y = llm.attention %q, %kr, %vr, %b heads 8 kv_heads 8 scale 0.25 keys context : tensor<?x64xf32>, tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// What a token sees, and how scores are bent, stays.
// CHECK-LABEL: func.func @window
// CHECK:         llm.paged_attention {{.*}} scale 2.500000e-01 window 7 softcap 5.000000e+01
func.func @window(%b: !llm.batch, %q: tensor<?x64xf32>, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) -> tensor<?x64xf32> {
  %k, %v = llm.kv_read %c, %b layer 1 : !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
  %y = llm.attention %q, %k, %v, %b heads 8 kv_heads 2 scale 0.25 keys context window 7 softcap 50.0 : tensor<?x64xf32>, tensor<?x16xf32>
  return %y : tensor<?x64xf32>
}

// So does a score bias.
// CHECK-LABEL: func.func @bias
// CHECK:         llm.paged_attention {{.*}} scale 2.500000e-01 bias %{{.*}} by key origin 3 : {{.*}}, !llm.weight<8x20xf32>
func.func @bias(%b: !llm.batch, %q: tensor<?x64xf32>, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>, %w: !llm.weight<8x20xf32>) -> tensor<?x64xf32> {
  %k, %v = llm.kv_read %c, %b layer 1 : !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
  %y = llm.attention %q, %k, %v, %b heads 8 kv_heads 2 scale 0.25 keys context bias %w by key origin 3 : tensor<?x64xf32>, tensor<?x16xf32>, !llm.weight<8x20xf32>
  return %y : tensor<?x64xf32>
}
