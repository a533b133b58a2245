// What cannot be run is said, once, and never taken for right.
// RUN: tenon-opt %s --verify-each-numerically --cse --canonicalize -o /dev/null 2>&1 | FileCheck %s
// CHECK-DAG: warning: cse: @arithmetic is not checked: it takes an argument of type i32
// CHECK-DAG: warning: cse: @mixed is not checked: 'llm.add' reads a row for each token where it needs others
// CHECK-NOT: warning

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
