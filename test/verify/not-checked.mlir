// What cannot be run is said, once, and never taken for right.
// RUN: tenon-opt %s --verify-each-numerically --cse --canonicalize -split-input-file -o /dev/null 2>&1 | FileCheck %s
// CHECK-DAG: warning: cse: @arithmetic is not checked: it takes an argument of type i32
// CHECK-DAG: warning: cse: @mixed is not checked: 'llm.add' reads a row for each token where it needs others

func.func @arithmetic(%i: i32) -> i32 {
  return %i : i32
}

func.func @mixed(%b: !llm.batch, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %r = llm.gather_rows %x, %b : tensor<?x8xf32>
  %y = llm.add %x, %r : tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// Checked, and nothing is said about it.
func.func @doubled(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = llm.add %x, %x : tensor<?x8xf32>
  %z = llm.add %x, %x : tensor<?x8xf32>
  %s = llm.mul %y, %z : tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}

// CHECK-DAG: warning: cse: @wide is not checked: an argument would take more than 1024 MiB
func.func @wide(%x: tensor<?x1000000000000xf32>) -> tensor<?x1000000000000xf32> {
  return %x : tensor<?x1000000000000xf32>
}

// CHECK-DAG: warning: cse: @deep is not checked: its cache would take more than 1024 MiB
func.func @deep(%c: !llm.cache<1000000000 x [k: 1000000x64xf32, v: 1000000x64xf32]>) {
  return
}

// -----

// CHECK: warning: cse: @many is not checked: the weights would take {{[0-9]+}} MiB as f32, of 8192 at most; --set layers=1 may do
func.func @many(%b: !llm.batch) -> tensor<?x4096xf32> {
  %w = llm.weight "table" : <1048576x4096xf32>
  %x = llm.embedding %b, %w : <1048576x4096xf32>
  return %x : tensor<?x4096xf32>
}
// CHECK-NOT: warning
