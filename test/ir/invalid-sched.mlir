// What the sched dialect refuses, and how it says so.
// RUN: tenon-opt %s -verify-diagnostics -split-input-file

// expected-error @below {{the first argument must be the batch}}
sched.kernel @k kind "k" (%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  sched.yield %x : tensor<?x8xf32>
}

// -----

// expected-error @below {{must yield its results}}
sched.kernel @k kind "k" (%b: !llm.batch, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  sched.yield
}

// -----

sched.program @p arena 0 + 0 {
  %x = sched.buffer tokens : memref<?x8xf32>
  // expected-error @below {{no kernel @k}}
  sched.stage @k(%x) into(%x) slice rows : memref<?x8xf32> into memref<?x8xf32>
}

// -----

sched.kernel @k kind "k" (%b: !llm.batch, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  sched.yield %x : tensor<?x8xf32>
}
sched.program @p arena 0 + 0 {
  %x = sched.buffer tokens : memref<?x8xf32>
  // expected-error @below {{@k has 1 inputs, got 2}}
  sched.stage @k(%x, %x) into(%x) slice rows : memref<?x8xf32>, memref<?x8xf32> into memref<?x8xf32>
}

// -----

sched.kernel @k kind "k" (%b: !llm.batch, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  sched.yield %x : tensor<?x8xf32>
}
sched.program @p arena 0 + 0 {
  %x = sched.buffer tokens : memref<?x8xf32>
  // expected-error @below {{@k has 1 outputs, got 0}}
  sched.stage @k(%x) into() slice rows : memref<?x8xf32>
}

// -----

sched.kernel @k kind "k" (%b: !llm.batch, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  sched.yield %x : tensor<?x8xf32>
}
sched.program @p arena 0 + 0 {
  %x = sched.buffer tokens : memref<?x8xf32>
  %y = sched.buffer tokens : memref<?x9xf32>
  // expected-error @below {{outputs 0 of @k is 'tensor<?x8xf32>', got 'memref<?x9xf32>'}}
  sched.stage @k(%x) into(%y) slice rows : memref<?x8xf32> into memref<?x9xf32>
}

// -----

sched.kernel @k kind "k" (%b: !llm.batch, %w: !llm.weight<16x8xf32, x16k1>) {
  sched.yield
}
sched.weight @w at 0 bytes 512 : !llm.weight<16x8xf32> {
  %w = llm.weight "w" : <16x8xf32>
  sched.yield %w : !llm.weight<16x8xf32>
}
sched.program @p arena 0 + 0 {
  %w = sched.constant @w : <16x8xf32>
  // expected-error @below {{inputs 0 of @k is '!llm.weight<16x8xf32, x16k1>', got '!llm.weight<16x8xf32>'}}
  sched.stage @k(%w) into() slice none : !llm.weight<16x8xf32>
}
