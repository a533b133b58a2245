// An encoder and a decoder that attends to it: keys and values over the memory are computed once, in @encode.
//
//   encoder ─ memory ─┬ linear ─ kv_append      @encode writes
//                     └ linear ─┘
//   decoder ─ paged_attention over the memory   @prefill and @decode read, with nothing of it left to compute
//
// RUN: tenon-opt %s --llm-insert-kv-cache=dtype=bf16 | FileCheck %s --check-prefix=CACHE
// RUN: tenon-opt %s --llm-insert-kv-cache=dtype=bf16 --llm-split-phases --llm-paged-attention | FileCheck %s
// RUN: tenon-opt %s --llm-insert-kv-cache --llm-split-phases --llm-gather-scored-rows --llm-paged-attention --llm-to-sched \
// RUN:   --sched-plan-buffers | FileCheck %s --check-prefix=SCHED
// RUN: tenon-opt %s --verify-each-numerically --llm-insert-kv-cache --llm-split-phases --llm-gather-scored-rows \
// RUN:   --llm-paged-attention --llm-to-sched --sched-plan-buffers 2>&1 | FileCheck %s --check-prefix=VERIFY
// VERIFY-NOT: not checked

// CACHE-LABEL: func.func @encoder
// CACHE-SAME:    %[[B:[^ :]*]]: !llm.batch, %[[M0:[^ :]*]]: !llm.cache<1 x [k: 2x4xbf16, v: 2x4xbf16], memory>) -> !llm.cache
// CACHE:         %[[X:.*]] = llm.embedding
// CACHE:         %[[A:.*]] = llm.attention %{{.*}} keys tokens bidirectional
// CACHE-DAG:     %[[K:.*]] = llm.linear %[[A]]
// CACHE-DAG:     %[[V:.*]] = llm.linear %[[A]]
// CACHE:         %[[M1:.*]] = llm.kv_append %[[M0]], %{{.*}}, %{{.*}}, %[[B]] layer 0
// CACHE-NEXT:    return %[[M1]] :
// CACHE-LABEL: func.func @main
// CACHE-SAME:    %[[B:[^ :]*]]: !llm.batch, %[[C:[^ :]*]]: !llm.cache<1 x [k: 2x4xbf16, v: 2x4xbf16]>, %[[M:[^ :]*]]: !llm.cache<1 x [k: 2x4xbf16, v: 2x4xbf16], memory>)
// CACHE:         llm.kv_append %[[C]]
// CACHE:         llm.attention %{{.*}} keys context
// CACHE-NOT:     llm.kv_append
// CACHE:         %[[KM:.*]], %[[VM:.*]] = llm.kv_read %[[M]], %[[B]] layer 0
// CACHE:         llm.attention %{{.*}}, %[[KM]], %[[VM]], %[[B]] {{.*}} keys memory

// CHECK-LABEL: func.func @encode(
// CHECK-SAME:    attributes {llm.phase = "encode"}
// CHECK-COUNT-1: llm.kv_append
// CHECK-LABEL: func.func @prefill(
// CHECK-COUNT-1: llm.kv_append
// CHECK:         llm.paged_attention {{.*}}, memory>
// CHECK-NOT:     llm.kv_append
// CHECK-LABEL: func.func @decode(
// CHECK-SAME:    attributes {llm.phase = "decode"}
// CHECK-COUNT-1: llm.kv_append
// CHECK:         llm.paged_attention {{.*}}, memory>
// CHECK-NOT:     llm.kv_append

// SCHED-LABEL: sched.program @encode
// SCHED:         sched.cache layer 0 : <1 x [k: 2x4xf32, v: 2x4xf32], memory>
// SCHED:         sched.stage @kv_append
// SCHED-NOT:     sched.output
// SCHED-LABEL: sched.program @prefill
// SCHED:         sched.cache layer 0 : <1 x [k: 2x4xf32, v: 2x4xf32], memory>
// SCHED:         sched.output "logits"
func.func @encoder(%b: !llm.batch) -> (tensor<?x8xf32> {llm.result = "memory"}) {
  %e = llm.weight "e" : !llm.weight<20x8xf32>
  %x = llm.embedding %b, %e : !llm.weight<20x8xf32>
  %y = llm.attention %x, %x, %x, %b heads 2 kv_heads 2 scale 0.5 keys tokens bidirectional
     : tensor<?x8xf32>, tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
func.func @main(%b: !llm.batch, %m: tensor<?x8xf32>) -> (tensor<?x20xf32> {llm.result = "logits"}) {
  %e = llm.weight "e" : !llm.weight<20x8xf32>
  %wk = llm.weight "k" : !llm.weight<8x8xf32>
  %wv = llm.weight "v" : !llm.weight<8x8xf32>
  %x = llm.embedding %b, %e : !llm.weight<20x8xf32>
  %s = llm.attention %x, %x, %x, %b heads 2 kv_heads 2 scale 0.5 keys tokens : tensor<?x8xf32>, tensor<?x8xf32>
  %k = llm.linear %m, %wk : tensor<?x8xf32>, !llm.weight<8x8xf32>
  %v = llm.linear %m, %wv : tensor<?x8xf32>, !llm.weight<8x8xf32>
  %y = llm.attention %s, %k, %v, %b heads 2 kv_heads 2 scale 0.5 keys memory : tensor<?x8xf32>, tensor<?x8xf32>
  %z = llm.linear %y, %e : tensor<?x8xf32>, !llm.weight<20x8xf32>
  return %z : tensor<?x20xf32>
}
