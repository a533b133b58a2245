// A fusion ends with a yield.
// RUN: not tenon-opt %s 2>&1 | FileCheck %s
// CHECK: must yield its results

func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = llm.fused @twice -> tensor<?x64xf32> {
    %y = llm.add %x, %x : tensor<?x64xf32>
  }
  return %0 : tensor<?x64xf32>
}
