// RUN: tenon-opt %s --llm-split-phases | FileCheck %s

// CHECK: func.func @prefill
func.func @main(%b: !llm.batch, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  return %x : tensor<?x8xf32>
}
