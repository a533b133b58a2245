// Phases become programs of stages; kernels and weights are made once.
// RUN: tenon-opt %s --llm-to-sched -split-input-file -verify-diagnostics | FileCheck %s

// Two layers of equal shape share @linear_residual and the tied table; their matrices are laid one after another.
// CHECK-LABEL: llm.model = "layers"
// CHECK:       sched.weight @w0 at 0 bytes 2048 : !llm.weight<64x8xf32, x16k1> {
// CHECK-NEXT:    llm.weight "table"
// CHECK-NEXT:    llm.weight_pack
// CHECK:       sched.kernel @embedding kind "embedding"
// CHECK:       sched.weight @w1 at 2048 bytes 512
// CHECK-NEXT:    llm.weight "layer.0"
// CHECK:       sched.kernel @linear_residual kind "linear_residual" (%{{.*}}: !llm.batch, %[[A:.*]]: tensor<?x8xf32>, %[[W:.*]]: !llm.weight<8x8xf32, x16k1>) -> tensor<?x8xf32> {
// CHECK-NEXT:    %[[L:.*]] = llm.linear %[[A]], %[[W]]
// CHECK-NEXT:    %[[S:.*]] = llm.add %[[A]], %[[L]]
// CHECK-NEXT:    sched.yield %[[S]]
// CHECK:       sched.weight @w2 at 2560 bytes 512
// CHECK-NEXT:    llm.weight "layer.1"
// CHECK-NOT:   sched.kernel @linear_residual_1
// CHECK-NOT:   sched.weight
// CHECK:       sched.kernel @linear kind "linear"
// CHECK:       sched.program @decode arena 0 + 0 {
// CHECK:         %[[X:.*]] = sched.buffer tokens : memref<?x8xf32>
// CHECK-NEXT:    sched.stage @embedding(%{{.*}}) into(%[[X]]) slice rows
// CHECK:         sched.barrier
// CHECK-NEXT:    sched.stage @linear_residual(%[[X]], %{{.*}}) into(%[[Y:[^)]*]]) slice columns
// CHECK:         sched.barrier
// CHECK-NEXT:    sched.stage @linear_residual(%[[Y]], %{{.*}}) into(%[[Z:[^)]*]]) slice columns
// The logits have a row for each row that is scored.
// CHECK:         %[[LOGITS:.*]] = sched.buffer scored : memref<?x64xf32>
// CHECK:         sched.barrier
// CHECK-NEXT:    sched.stage @linear(%[[Z]], %{{.*}}) into(%[[LOGITS]]) slice columns
// CHECK-NEXT:    sched.output "logits" %[[LOGITS]]
// CHECK-NOT:   func.func
module attributes {llm.model = "layers"} {
  func.func @decode(%b: !llm.batch) -> (tensor<?x64xf32> {llm.result = "logits"}) attributes {llm.phase = "decode"} {
    %t = llm.weight "table" : <64x8xf32>
    %tp = llm.weight_pack %t : <64x8xf32> to <64x8xf32, x16k1>
    %x = llm.embedding %b, %tp : <64x8xf32, x16k1>
    %w0 = llm.weight "layer.0" : <8x8xf32>
    %p0 = llm.weight_pack %w0 : <8x8xf32> to <8x8xf32, x16k1>
    %y = llm.fused @linear_residual -> tensor<?x8xf32> {
      %l = llm.linear %x, %p0 : tensor<?x8xf32>, !llm.weight<8x8xf32, x16k1>
      %s = llm.add %x, %l : tensor<?x8xf32>
      llm.yield %s : tensor<?x8xf32>
    }
    %w1 = llm.weight "layer.1" : <8x8xf32>
    %p1 = llm.weight_pack %w1 : <8x8xf32> to <8x8xf32, x16k1>
    %z = llm.fused @linear_residual -> tensor<?x8xf32> {
      %l = llm.linear %y, %p1 : tensor<?x8xf32>, !llm.weight<8x8xf32, x16k1>
      %s = llm.add %y, %l : tensor<?x8xf32>
      llm.yield %s : tensor<?x8xf32>
    }
    %r = llm.linear %z, %tp : tensor<?x8xf32>, !llm.weight<64x8xf32, x16k1>
    return %r : tensor<?x64xf32>
  }
}

// -----

// Slices are views. Stages that read nothing new go on without a barrier. In @prefill work is cut by rows, attention
// by heads, and every layer's kernel sees its layer as the only one.
// CHECK-LABEL: llm.model = "barriers"
// CHECK:       sched.kernel @kv_append
// CHECK:         llm.kv_append {{.*}} layer 0 : <1 x [k: 2x4xf32, v: 2x4xf32]>
// CHECK:       sched.program @prefill
// CHECK:         sched.stage @embedding({{.*}}) into(%[[X:[^)]*]]) slice rows
// CHECK-NEXT:    %[[Q:.*]] = sched.view %[[X]] from 0
// CHECK-NEXT:    %[[K:.*]] = sched.view %[[X]] from 8
// CHECK-NOT:     sched.barrier
// CHECK:         sched.stage @embedding_1({{.*}}) into(%[[V:[^)]*]]) slice rows
// CHECK-NOT:     sched.stage
// CHECK:         sched.barrier
// CHECK-NEXT:    sched.stage @activation(%[[K]]) into(%[[A:[^)]*]]) slice rows
// @activation reads nothing that was written after the barrier.
// CHECK-NOT:     sched.barrier
// CHECK:         sched.stage @activation(%[[Q]])
// CHECK-NOT:     sched.stage
// CHECK:         %[[C:.*]] = sched.cache layer 1 : <1 x [k: 2x4xf32, v: 2x4xf32]>
// CHECK:         sched.barrier
// CHECK-NEXT:    sched.stage @kv_append(%[[C]], %[[A]], %[[V]]) into() slice rows
// Attention reads the layer that was just written: a barrier.
// CHECK:         sched.barrier
// CHECK-NEXT:    sched.stage @paged_attention({{.*}}) slice heads
module attributes {llm.model = "barriers"} {
  func.func @prefill(%b: !llm.batch, %c: !llm.cache<2 x [k: 2x4xf32, v: 2x4xf32]>)
      -> (tensor<?x8xf32>, !llm.cache<2 x [k: 2x4xf32, v: 2x4xf32]>) {
    %t = llm.weight "table" : <64x16xf32>
    %x = llm.embedding %b, %t : <64x16xf32>
    %q = llm.slice %x columns 0 to 8 : tensor<?x16xf32>
    %k = llm.slice %x columns 8 to 16 : tensor<?x16xf32>
    %u = llm.weight "values" : <64x8xf32>
    %v = llm.embedding %b, %u : <64x8xf32>
    %ka = llm.activation relu %k : tensor<?x8xf32>
    %qa = llm.activation relu %q : tensor<?x8xf32>
    %c1 = llm.kv_append %c, %ka, %v, %b layer 1 : !llm.cache<2 x [k: 2x4xf32, v: 2x4xf32]>, tensor<?x8xf32>
    %y = llm.paged_attention %qa, %c1, %b layer 1 heads 2 scale 0.5
       : tensor<?x8xf32>, !llm.cache<2 x [k: 2x4xf32, v: 2x4xf32]>
    return %y, %c1 : tensor<?x8xf32>, !llm.cache<2 x [k: 2x4xf32, v: 2x4xf32]>
  }
}

// -----

// expected-error @below {{cannot become a program: a phase has one block, which takes the batch and the cache}}
func.func @rows_from_outside(%b: !llm.batch, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = llm.add %x, %x : tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// expected-error @below {{cannot become a program}}
func.func private @no_body(!llm.batch)

// -----

func.func @two_layers_at_once(%b: !llm.batch, %c: !llm.cache<2 x [k: 2x4xf32, v: 2x4xf32]>) -> tensor<?x8xf32> {
  %t = llm.weight "table" : <64x8xf32>
  %x = llm.embedding %b, %t : <64x8xf32>
  // expected-error @below {{a stage touches one layer of the cache, not 0 and 1}}
  %f = llm.fused @both -> tensor<?x8xf32> {
    %0 = llm.paged_attention %x, %c, %b layer 0 heads 2 scale 0.5 : tensor<?x8xf32>, !llm.cache<2 x [k: 2x4xf32, v: 2x4xf32]>
    %1 = llm.paged_attention %0, %c, %b layer 1 heads 2 scale 0.5 : tensor<?x8xf32>, !llm.cache<2 x [k: 2x4xf32, v: 2x4xf32]>
    llm.yield %1 : tensor<?x8xf32>
  }
  return %f : tensor<?x8xf32>
}
