// Keys and values are cached as they are before llm.repeat_kv:
//
//   k ─ repeat ─┐                k ─ kv_append ─ kv_read ─ repeat ─┐
//   v ─ repeat ─┴ attention  ─▶  v ─────┘           └───── repeat ─┴ attention
//
// RUN: tenon-opt %s --llm-insert-kv-cache=dtype=bf16 -split-input-file -verify-diagnostics | FileCheck %s
// RUN: tenon-opt %s --llm-insert-kv-cache -split-input-file -verify-diagnostics | FileCheck %s --check-prefix=F32
// RUN: not tenon-opt %s --llm-insert-kv-cache=dtype=q8_0 -split-input-file 2>&1 | FileCheck %s --check-prefix=DTYPE
// DTYPE: error: unknown cache dtype 'q8_0'; accepted: f32, bf16, f16, int8
// RUN: tenon-opt %s --llm-insert-kv-cache=dtype=int8 -split-input-file -verify-diagnostics | FileCheck %s --check-prefix=INT8

// CHECK-LABEL: func.func @two_layers
// CHECK-SAME:    %[[B:[^ :]*]]: !llm.batch, %[[Q:[^ :]*]]: tensor<?x64xf32>, %[[K:[^ :]*]]: tensor<?x16xf32>, %[[V:[^ :]*]]: tensor<?x16xf32>, %[[C0:[^ :]*]]: !llm.cache<2 x [k: 2x8xbf16, v: 2x8xbf16]>)
// CHECK-SAME:    -> (tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xbf16, v: 2x8xbf16]>)
// CHECK-NEXT:    %[[C1:.*]] = llm.kv_append %[[C0]], %[[K]], %[[V]], %[[B]] layer 0
// CHECK-NEXT:    %[[KC:.*]], %[[VC:.*]] = llm.kv_read %[[C1]], %[[B]] layer 0
// CHECK-NEXT:    %[[KR:.*]] = llm.repeat_kv %[[KC]] heads 2 times 4
// CHECK-NEXT:    %[[VR:.*]] = llm.repeat_kv %[[VC]] heads 2 times 4
// CHECK-NEXT:    %[[Y:.*]] = llm.attention %[[Q]], %[[KR]], %[[VR]], %[[B]] heads 8 kv_heads 8 scale 2.500000e-01 keys context
// The second layer goes on from the first.
// CHECK-NEXT:    %[[C2:.*]] = llm.kv_append %[[C1]], %[[K]], %[[K]], %[[B]] layer 1
// CHECK-NEXT:    %[[KC2:.*]], %[[VC2:.*]] = llm.kv_read %[[C2]], %[[B]] layer 1
// CHECK-NEXT:    %[[Z:.*]] = llm.attention %[[Y]], %[[KC2]], %[[VC2]], %[[B]] heads 8 kv_heads 2 {{.*}} keys context
// CHECK-NEXT:    return %[[Z]], %[[C2]]
// F32-LABEL:   func.func @two_layers
// F32-SAME:      !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
// INT8-LABEL:  func.func @two_layers
// INT8-SAME:     !llm.cache<2 x [k: 2x8xi8, v: 2x8xi8]>
func.func @two_layers(%b: !llm.batch, %q: tensor<?x64xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>)
    -> tensor<?x64xf32> {
  %kr = llm.repeat_kv %k heads 2 times 4 : tensor<?x16xf32>
  %vr = llm.repeat_kv %v heads 2 times 4 : tensor<?x16xf32>
  %y = llm.attention %q, %kr, %vr, %b heads 8 kv_heads 8 scale 0.25 keys tokens
     : tensor<?x64xf32>, tensor<?x64xf32>
  %z = llm.attention %y, %k, %k, %b heads 8 kv_heads 2 scale 0.25 keys tokens
     : tensor<?x64xf32>, tensor<?x16xf32>
  return %z : tensor<?x64xf32>
}

// -----

// One copy that serves as key and as value.
// CHECK-LABEL: func.func @shared
// CHECK-SAME:    %[[K:[^ :]*]]: tensor<?x4xf32>, %{{.*}}: !llm.cache<1 x [k: 1x4xbf16, v: 1x4xbf16]>
// CHECK-NEXT:    llm.kv_append %{{.*}}, %[[K]], %[[K]]
func.func @shared(%b: !llm.batch, %q: tensor<?x8xf32>, %k: tensor<?x4xf32>) -> tensor<?x8xf32> {
  %r = llm.repeat_kv %k heads 1 times 2 : tensor<?x4xf32>
  %y = llm.attention %q, %r, %r, %b heads 2 kv_heads 2 scale 0.5 keys tokens : tensor<?x8xf32>, tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// Copied unequally: the cache has equal rows for both, so the copies are stored.
// CHECK-LABEL: func.func @unequal_repeats
// CHECK-SAME:    tensor<?x4xf32>, %[[V:[^ :]*]]: tensor<?x8xf32>, %{{.*}}: !llm.cache<1 x [k: 2x4xbf16, v: 2x4xbf16]>
// CHECK-NEXT:    %[[R:.*]] = llm.repeat_kv
// CHECK-NEXT:    llm.kv_append %{{.*}}, %[[R]], %[[V]]
func.func @unequal_repeats(%b: !llm.batch, %q: tensor<?x8xf32>, %k: tensor<?x4xf32>, %v: tensor<?x8xf32>)
    -> tensor<?x8xf32> {
  %r = llm.repeat_kv %k heads 1 times 2 : tensor<?x4xf32>
  %y = llm.attention %q, %r, %v, %b heads 2 kv_heads 2 scale 0.5 keys tokens : tensor<?x8xf32>, tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// What reads a context already has its cache.
// CHECK-LABEL: func.func @context
// CHECK-NOT:     kv_append
func.func @context(%b: !llm.batch, %q: tensor<?x8xf32>, %k: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = llm.attention %q, %k, %k, %b heads 2 kv_heads 2 scale 0.5 keys context : tensor<?x8xf32>, tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

func.func @other_rows(%b: !llm.batch, %q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %l: tensor<?x16xf32>)
    -> tensor<?x64xf32> {
  %y = llm.attention %q, %k, %k, %b heads 8 kv_heads 8 scale 0.25 keys tokens
     : tensor<?x64xf32>, tensor<?x64xf32>
  // expected-error-re @below {{layers with different rows cannot share a cache: {{.*}}2x8x{{.*}} after {{.*}}8x8x}}
  %z = llm.attention %y, %l, %l, %b heads 8 kv_heads 2 scale 0.25 keys tokens
     : tensor<?x64xf32>, tensor<?x16xf32>
  return %z : tensor<?x64xf32>
}
