// Every sched operation in its short form, read and written twice.
// RUN: tenon-opt %s | FileCheck %s
// RUN: tenon-opt %s | tenon-opt | FileCheck %s

// CHECK:      sched.weight @w0 at 64 bytes 12288 : !llm.weight<96x64xbf16, x16k2> {
// CHECK-NEXT:   %[[W:.*]] = llm.weight "w" : <96x64xbf16>
// CHECK-NEXT:   %[[P:.*]] = llm.weight_pack %[[W]]
// CHECK-NEXT:   sched.yield %[[P]] : !llm.weight<96x64xbf16, x16k2>
// CHECK-NEXT: }
sched.weight @w0 at 64 bytes 12288 : !llm.weight<96x64xbf16, x16k2> {
  %w = llm.weight "w" : <96x64xbf16>
  %p = llm.weight_pack %w : <96x64xbf16> to <96x64xbf16, x16k2>
  sched.yield %p : !llm.weight<96x64xbf16, x16k2>
}

// CHECK:      sched.kernel @linear kind "linear" (%[[B:.*]]: !llm.batch, %[[X:.*]]: tensor<?x64xf32>, %[[W:.*]]: !llm.weight<96x64xbf16, x16k2>) -> tensor<?x96xf32> {
// CHECK-NEXT:   %[[Y:.*]] = llm.linear %[[X]], %[[W]]
// CHECK-NEXT:   sched.yield %[[Y]] : tensor<?x96xf32>
sched.kernel @linear kind "linear" (%b: !llm.batch, %x: tensor<?x64xf32>, %w: !llm.weight<96x64xbf16, x16k2>)
    -> tensor<?x96xf32> {
  %y = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<96x64xbf16, x16k2>
  sched.yield %y : tensor<?x96xf32>
}

// A kernel that only writes the cache has no result.
// CHECK:      sched.kernel @kv_append kind "kv_append" (%{{.*}}: !llm.batch, %{{.*}}: !llm.cache<1 x [k: 4x8xf16, v: 4x8xf16]>, %{{.*}}: tensor<?x32xf32>) {
// CHECK:        sched.yield{{$}}
sched.kernel @kv_append kind "kv_append" (%b: !llm.batch, %c: !llm.cache<1 x [k: 4x8xf16, v: 4x8xf16]>,
                                          %k: tensor<?x32xf32>) {
  %c1 = llm.kv_append %c, %k, %k, %b layer 0 : !llm.cache<1 x [k: 4x8xf16, v: 4x8xf16]>, tensor<?x32xf32>
  sched.yield
}

// CHECK: sched.program @decode arena 640 + 128 {
sched.program @decode arena 640 + 128 {
  // CHECK: %[[W:.*]] = sched.constant @w0 : <96x64xbf16, x16k2>
  %w = sched.constant @w0 : <96x64xbf16, x16k2>
  // CHECK: %[[X:.*]] = sched.buffer tokens at 0 : memref<?x64xf32>
  %x = sched.buffer tokens at 0 : memref<?x64xf32>
  // CHECK: %[[Y:.*]] = sched.buffer scored : memref<?x96xf32>
  %y = sched.buffer scored : memref<?x96xf32>
  // CHECK: sched.stage @linear(%[[X]], %[[W]]) into(%[[Y]]) slice columns : memref<?x64xf32>, !llm.weight<96x64xbf16, x16k2> into memref<?x96xf32>
  sched.stage @linear(%x, %w) into(%y) slice columns
    : memref<?x64xf32>, !llm.weight<96x64xbf16, x16k2> into memref<?x96xf32>
  // CHECK: sched.barrier
  sched.barrier
  // CHECK: %[[C:.*]] = sched.cache layer 2 : <1 x [k: 4x8xf16, v: 4x8xf16]>
  %c = sched.cache layer 2 : <1 x [k: 4x8xf16, v: 4x8xf16]>
  // CHECK: %[[V:.*]] = sched.view %[[Y]] from 64 : memref<?x96xf32> to memref<?x32xf32, strided<[96, 1], offset: ?>>
  %v = sched.view %y from 64 : memref<?x96xf32> to memref<?x32xf32, strided<[96, 1], offset: ?>>
  // CHECK: sched.stage @kv_append(%[[C]], %[[V]]) into() slice rows
  sched.stage @kv_append(%c, %v) into() slice rows
    : !llm.cache<1 x [k: 4x8xf16, v: 4x8xf16]>, memref<?x32xf32, strided<[96, 1], offset: ?>>
  // CHECK: sched.output "logits" %[[Y]] : memref<?x96xf32>
  sched.output "logits" %y : memref<?x96xf32>
}

// The other two slices.
// CHECK: slice heads
// CHECK: slice none
sched.program @slices arena 0 + 0 {
  %c = sched.cache layer 0 : <1 x [k: 4x8xf16, v: 4x8xf16]>
  %k = sched.buffer tokens : memref<?x32xf32>
  sched.stage @kv_append(%c, %k) into() slice heads
    : !llm.cache<1 x [k: 4x8xf16, v: 4x8xf16]>, memref<?x32xf32>
  sched.stage @kv_append(%c, %k) into() slice none
    : !llm.cache<1 x [k: 4x8xf16, v: 4x8xf16]>, memref<?x32xf32>
}
