//          x                     x
//       ┌──┼──┐                  │
//       Q  K  V    ─▶     linear [Q; K; V]
//       │  │  │                  │
//                        slice slice slice
//
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(llm-stack-qkv))' | FileCheck %s

// An encoder that norms behind each branch: the rows are also what the branch is added to.
// CHECK-LABEL: func.func @fires
// CHECK-SAME:    %[[X:[^ ]*]]: tensor<?x16xf32>, %[[WQ:[^ ]*]]: !llm.weight<16x16xf32>, %[[WK:[^ ]*]]: !llm.weight<8x16xf32>, %[[WV:[^ ]*]]: !llm.weight<8x16xf32>
// CHECK:         %[[W:.*]] = llm.weight_concat %[[WQ]], %[[WK]], %[[WV]]
// CHECK-NEXT:    %[[B:.*]] = llm.weight_concat %{{.*}} : !llm.weight<16xf32>, !llm.weight<8xf32>, !llm.weight<8xf32>
// CHECK-NEXT:    %[[L:.*]] = llm.linear %[[X]], %[[W]], %[[B]]
// CHECK-NEXT:    %[[Q:.*]] = llm.slice %[[L]] columns 0 to 16
// CHECK-NEXT:    %[[K:.*]] = llm.slice %[[L]] columns 16 to 24
// CHECK-NEXT:    %[[V:.*]] = llm.slice %[[L]] columns 24 to 32
// CHECK-NEXT:    %[[A:.*]] = llm.attention %[[Q]], %[[K]], %[[V]]
// CHECK-NEXT:    llm.add %[[A]], %[[X]]
// CHECK-NOT:     llm.linear
func.func @fires(%b: !llm.batch, %x: tensor<?x16xf32>, %wq: !llm.weight<16x16xf32>, %wk: !llm.weight<8x16xf32>, %wv: !llm.weight<8x16xf32>,
    %bq: !llm.weight<16xf32>,
    %bk: !llm.weight<8xf32>,
    %bv: !llm.weight<8xf32>) -> tensor<?x16xf32> {
  %q = llm.linear %x, %wq, %bq : tensor<?x16xf32>, !llm.weight<16x16xf32>, !llm.weight<16xf32>
  %k = llm.linear %x, %wk, %bk : tensor<?x16xf32>, !llm.weight<8x16xf32>, !llm.weight<8xf32>
  %v = llm.linear %x, %wv, %bv : tensor<?x16xf32>, !llm.weight<8x16xf32>, !llm.weight<8xf32>
  %a = llm.attention %q, %k, %v, %b heads 4 kv_heads 2 scale 0.5 keys tokens bidirectional : tensor<?x16xf32>, tensor<?x8xf32>
  %s = llm.add %a, %x : tensor<?x16xf32>
  return %s : tensor<?x16xf32>
}

// With a cache, the query is rotated and the MLP reads the same rows.
// CHECK-LABEL: func.func @cached
// CHECK:         %[[L:.*]] = llm.linear %{{.*}} : tensor<?x16xf32>, <32x16xf32>
// CHECK-NEXT:    %[[Q:.*]] = llm.slice %[[L]] columns 0 to 16
// CHECK-NEXT:    %[[K:.*]] = llm.slice %[[L]] columns 16 to 24
// CHECK-NEXT:    %[[V:.*]] = llm.slice %[[L]] columns 24 to 32
// CHECK:         llm.rope %[[Q]]
// CHECK:         llm.rope %[[K]]
// CHECK:         llm.kv_append %{{.*}}, %{{.*}}, %[[V]]
// CHECK:         llm.linear {{.*}} <24x16xf32>
func.func @cached(%b: !llm.batch, %x: tensor<?x16xf32>, %t: tensor<?x4xf32>, %wq: !llm.weight<16x16xf32>, %wk: !llm.weight<8x16xf32>, %wv: !llm.weight<8x16xf32>,
    %wu: !llm.weight<24x16xf32>,
    %c: !llm.cache<1 x [k: 2x4xf32, v: 2x4xf32]>)
    -> (tensor<?x16xf32>, tensor<?x24xf32>, !llm.cache<1 x [k: 2x4xf32, v: 2x4xf32]>) {
  %q = llm.linear %x, %wq : tensor<?x16xf32>, !llm.weight<16x16xf32>
  %k = llm.linear %x, %wk : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %v = llm.linear %x, %wv : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %qr = llm.rope %q, %t heads 4 half : tensor<?x16xf32>, tensor<?x4xf32>
  %kr = llm.rope %k, %t heads 2 half : tensor<?x8xf32>, tensor<?x4xf32>
  %d = llm.kv_append %c, %kr, %v, %b layer 0 : !llm.cache<1 x [k: 2x4xf32, v: 2x4xf32]>, tensor<?x8xf32>
  %ks, %vs = llm.kv_read %d, %b layer 0 : !llm.cache<1 x [k: 2x4xf32, v: 2x4xf32]>
  %a = llm.attention %qr, %ks, %vs, %b heads 4 kv_heads 2 scale 0.5 keys context : tensor<?x16xf32>, tensor<?x8xf32>
  %u = llm.linear %x, %wu : tensor<?x16xf32>, !llm.weight<24x16xf32>
  return %a, %u, %d : tensor<?x16xf32>, tensor<?x24xf32>, !llm.cache<1 x [k: 2x4xf32, v: 2x4xf32]>
}

// Two layers read one encoder's rows: each has a product of its own.
// CHECK-LABEL: func.func @memory
// CHECK-SAME:    %[[K0:[^ ]*]]: !llm.weight<8x16xf32>, %[[V0:[^ ]*]]: !llm.weight<8x16xf32>, %[[K1:[^ ]*]]: !llm.weight<8x16xf32>, %[[V1:[^ ]*]]: !llm.weight<8x16xf32>
// CHECK-DAG:     llm.weight_concat %[[K0]], %[[V0]]
// CHECK-DAG:     llm.weight_concat %[[K1]], %[[V1]]
// CHECK-COUNT-2: llm.kv_append
func.func @memory(%b: !llm.batch, %x: tensor<?x16xf32>, %k0: !llm.weight<8x16xf32>, %v0: !llm.weight<8x16xf32>, %k1: !llm.weight<8x16xf32>, %v1: !llm.weight<8x16xf32>,
    %c: !llm.cache<2 x [k: 2x4xf32, v: 2x4xf32]>) -> !llm.cache<2 x [k: 2x4xf32, v: 2x4xf32]> {
  %0 = llm.linear %x, %k0 : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %1 = llm.linear %x, %v0 : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %2 = llm.linear %x, %k1 : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %3 = llm.linear %x, %v1 : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %d = llm.kv_append %c, %0, %1, %b layer 0 : !llm.cache<2 x [k: 2x4xf32, v: 2x4xf32]>, tensor<?x8xf32>
  %e = llm.kv_append %d, %2, %3, %b layer 1 : !llm.cache<2 x [k: 2x4xf32, v: 2x4xf32]>, tensor<?x8xf32>
  return %e : !llm.cache<2 x [k: 2x4xf32, v: 2x4xf32]>
}

// Left alone: keys and values are of other rows than the query (cross-attention), and stored otherwise.
// CHECK-LABEL: func.func @unequal
// CHECK-NOT:     llm.weight_concat
func.func @unequal(%b: !llm.batch, %x: tensor<?x16xf32>, %y: tensor<?x16xf32>, %wq: !llm.weight<16x16xf32>, %wk: !llm.weight<8x16xf32>, %wv: !llm.weight<8x16xf16>) -> tensor<?x16xf32> {
  %q = llm.linear %x, %wq : tensor<?x16xf32>, !llm.weight<16x16xf32>
  %k = llm.linear %y, %wk : tensor<?x16xf32>, !llm.weight<8x16xf32>
  %v = llm.linear %y, %wv : tensor<?x16xf32>, !llm.weight<8x16xf16>
  %a = llm.attention %q, %k, %v, %b heads 4 kv_heads 2 scale 0.5 keys tokens : tensor<?x16xf32>, tensor<?x8xf32>
  return %a : tensor<?x16xf32>
}

// Left alone: products that attention does not read, such as an MLP's.
// CHECK-LABEL: func.func @not_attention
// CHECK-NOT:     llm.weight_concat
func.func @not_attention(%x: tensor<?x16xf32>, %wg: !llm.weight<24x16xf32>, %wu: !llm.weight<24x16xf32>) -> tensor<?x24xf32> {
  %g = llm.linear %x, %wg : tensor<?x16xf32>, !llm.weight<24x16xf32>
  %u = llm.linear %x, %wu : tensor<?x16xf32>, !llm.weight<24x16xf32>
  %p = llm.mul %g, %u : tensor<?x24xf32>
  return %p : tensor<?x24xf32>
}
