//   k ─ repeat_kv ─┐
//   v ─ repeat_kv ─┴ attention kv_heads 8   ─▶   attention %q, %k, %v kv_heads 2
//
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(llm-mha-to-gqa))' | FileCheck %s

// CHECK-LABEL: func.func @fires
// CHECK-SAME:    %[[Q:[^ :]*]]: tensor<?x64xf32>, %[[K:[^ :]*]]: tensor<?x16xf32>, %[[V:[^ :]*]]: tensor<?x16xf32>
// CHECK-NEXT:    llm.attention %[[Q]], %[[K]], %[[V]], %{{.*}} heads 8 kv_heads 2 scale 2.500000e-01 keys context : tensor<?x64xf32>, tensor<?x16xf32>
func.func @fires(%b: !llm.batch, %q: tensor<?x64xf32>, %k: tensor<?x16xf32>, %v: tensor<?x16xf32>) -> tensor<?x64xf32> {
  %kr = llm.repeat_kv %k heads 2 times 4 : tensor<?x16xf32>
  %vr = llm.repeat_kv %v heads 2 times 4 : tensor<?x16xf32>
  %y = llm.attention %q, %kr, %vr, %b heads 8 kv_heads 8 scale 0.25 keys context : tensor<?x64xf32>, tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// One copy for keys and values.
// CHECK-LABEL: func.func @shared
// CHECK-SAME:    %[[K:[^ :]*]]: tensor<?x16xf32>
// CHECK-NEXT:    llm.attention %{{.*}}, %[[K]], %[[K]], %{{.*}} heads 8 kv_heads 2
func.func @shared(%b: !llm.batch, %q: tensor<?x64xf32>, %k: tensor<?x16xf32>) -> tensor<?x64xf32> {
  %r = llm.repeat_kv %k heads 2 times 4 : tensor<?x16xf32>
  %y = llm.attention %q, %r, %r, %b heads 8 kv_heads 8 scale 0.25 keys context : tensor<?x64xf32>, tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// A copy that someone else reads stays for them.
// CHECK-LABEL: func.func @copy_is_read
// CHECK:         %[[R:.*]] = llm.repeat_kv
// CHECK-NEXT:    llm.attention %{{.*}} kv_heads 2
// CHECK-NEXT:    return %{{.*}}, %[[R]]
func.func @copy_is_read(%b: !llm.batch, %q: tensor<?x64xf32>, %k: tensor<?x16xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %r = llm.repeat_kv %k heads 2 times 4 : tensor<?x16xf32>
  %y = llm.attention %q, %r, %r, %b heads 8 kv_heads 8 scale 0.25 keys context : tensor<?x64xf32>, tensor<?x64xf32>
  return %y, %r : tensor<?x64xf32>, tensor<?x64xf32>
}

// Left alone: keys are copied 4 times, values 2 times.
// CHECK-LABEL: func.func @unequal
// CHECK-COUNT-2: llm.repeat_kv
// CHECK:         llm.attention %{{.*}} kv_heads 8
func.func @unequal(%b: !llm.batch, %q: tensor<?x64xf32>, %k: tensor<?x16xf32>, %v: tensor<?x32xf32>) -> tensor<?x64xf32> {
  %kr = llm.repeat_kv %k heads 2 times 4 : tensor<?x16xf32>
  %vr = llm.repeat_kv %v heads 4 times 2 : tensor<?x32xf32>
  %y = llm.attention %q, %kr, %vr, %b heads 8 kv_heads 8 scale 0.25 keys context : tensor<?x64xf32>, tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// Left alone: only keys are copied.
// CHECK-LABEL: func.func @keys_only
// CHECK:         llm.repeat_kv
func.func @keys_only(%b: !llm.batch, %q: tensor<?x64xf32>, %k: tensor<?x16xf32>, %v: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %kr = llm.repeat_kv %k heads 2 times 4 : tensor<?x16xf32>
  %y = llm.attention %q, %kr, %v, %b heads 8 kv_heads 8 scale 0.25 keys context : tensor<?x64xf32>, tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
