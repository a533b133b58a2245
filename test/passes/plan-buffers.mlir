// Time is counted in epochs, which barriers divide; bytes are reused in a later epoch only. A buffer lives from the
// epoch of its first stage to that of its last.
// RUN: tenon-opt %s --sched-plan-buffers | FileCheck %s

sched.weight @w at 0 bytes 64 : !llm.weight<16xf32> {
  %w = llm.weight "w" : <16xf32>
  sched.yield %w : !llm.weight<16xf32>
}
sched.kernel @make kind "make" (%b: !llm.batch, %w: !llm.weight<16xf32>) -> tensor<?x16xf32> {
  %t = llm.weight "t" : <4x16xf32>
  %y = llm.embedding %b, %t : <4x16xf32>
  sched.yield %y : tensor<?x16xf32>
}
sched.kernel @step kind "step" (%b: !llm.batch, %x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  sched.yield %x : tensor<?x16xf32>
}

//   epoch  0   1   2
//   %a    ███ ███
//   %b        ███ ███
//   %c            ███   ─▶ at %a's place
//
// CHECK-LABEL: sched.program @chain arena 128 + 0 {
// CHECK:         sched.buffer tokens at 0 :
// CHECK:         sched.buffer tokens at 64 :
// CHECK:         sched.buffer tokens at 0 :
sched.program @chain arena 0 + 0 {
  %w = sched.constant @w : <16xf32>
  %a = sched.buffer tokens : memref<?x16xf32>
  sched.stage @make(%w) into(%a) slice rows : !llm.weight<16xf32> into memref<?x16xf32>
  sched.barrier
  %b = sched.buffer tokens : memref<?x16xf32>
  sched.stage @step(%a) into(%b) slice rows : memref<?x16xf32> into memref<?x16xf32>
  sched.barrier
  %c = sched.buffer tokens : memref<?x16xf32>
  sched.stage @step(%b) into(%c) slice rows : memref<?x16xf32> into memref<?x16xf32>
}

// The same without the second barrier: a thread may write %c while another still reads %a.
// CHECK-LABEL: sched.program @no_barrier arena 192 + 0 {
// CHECK:         sched.buffer tokens at 0 :
// CHECK:         sched.buffer tokens at 64 :
// CHECK:         sched.buffer tokens at 128 :
sched.program @no_barrier arena 0 + 0 {
  %w = sched.constant @w : <16xf32>
  %a = sched.buffer tokens : memref<?x16xf32>
  sched.stage @make(%w) into(%a) slice rows : !llm.weight<16xf32> into memref<?x16xf32>
  sched.barrier
  %b = sched.buffer tokens : memref<?x16xf32>
  sched.stage @step(%a) into(%b) slice rows : memref<?x16xf32> into memref<?x16xf32>
  %c = sched.buffer tokens : memref<?x16xf32>
  sched.stage @make(%w) into(%c) slice rows : !llm.weight<16xf32> into memref<?x16xf32>
}

// A view keeps its buffer alive: %a may not be reused by %b or %c.
// CHECK-LABEL: sched.program @view arena 256 + 0 {
// CHECK:         sched.buffer tokens at 0 : memref<?x32xf32>
// CHECK:         sched.buffer tokens at 128 :
// CHECK:         sched.buffer tokens at 192 :
sched.program @view arena 0 + 0 {
  %w = sched.constant @w : <16xf32>
  %a = sched.buffer tokens : memref<?x32xf32>
  %v = sched.view %a from 16 : memref<?x32xf32> to memref<?x16xf32, strided<[32, 1], offset: ?>>
  sched.stage @make(%w) into(%v) slice rows
    : !llm.weight<16xf32> into memref<?x16xf32, strided<[32, 1], offset: ?>>
  sched.barrier
  %b = sched.buffer tokens : memref<?x16xf32>
  sched.stage @make(%w) into(%b) slice rows : !llm.weight<16xf32> into memref<?x16xf32>
  sched.barrier
  %c = sched.buffer tokens : memref<?x16xf32>
  sched.stage @step(%b) into(%c) slice rows : memref<?x16xf32> into memref<?x16xf32>
  sched.barrier
  sched.stage @step(%v) into(%c) slice rows
    : memref<?x16xf32, strided<[32, 1], offset: ?>> into memref<?x16xf32>
}

// An output outlives the program and lies first. Scored rows have their own space. Rows are whole cache lines.
// CHECK-LABEL: sched.program @output arena 64 + 192 {
// CHECK:         sched.buffer tokens at 0 : memref<?x16xf32>
// CHECK:         sched.buffer scored at 128 : memref<?x16xf32>
// CHECK:         sched.buffer scored at 0 : memref<?x17xf32>
sched.program @output arena 0 + 0 {
  %w = sched.constant @w : <16xf32>
  %a = sched.buffer tokens : memref<?x16xf32>
  sched.stage @make(%w) into(%a) slice rows : !llm.weight<16xf32> into memref<?x16xf32>
  sched.barrier
  %s = sched.buffer scored : memref<?x16xf32>
  sched.stage @step(%a) into(%s) slice rows : memref<?x16xf32> into memref<?x16xf32>
  %l = sched.buffer scored : memref<?x17xf32>
  %v = sched.view %l from 1 : memref<?x17xf32> to memref<?x16xf32, strided<[17, 1], offset: ?>>
  sched.stage @step(%a) into(%v) slice rows : memref<?x16xf32> into memref<?x16xf32, strided<[17, 1], offset: ?>>
  sched.output "logits" %l : memref<?x17xf32>
}
