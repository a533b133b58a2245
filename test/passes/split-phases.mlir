// @main ─▶ @prefill and @decode, which says what it is.
// RUN: tenon-opt %s --llm-split-phases | FileCheck %s

// CHECK:      func.func @prefill(%{{.*}}: !llm.batch, %[[X:.*]]: tensor<?x8xf32>) -> (tensor<?x8xf32> {llm.result = "logits"}) {
// CHECK-NEXT:   llm.add
// CHECK:      func.func @decode(%{{.*}}: !llm.batch, %{{.*}}: tensor<?x8xf32>) -> (tensor<?x8xf32> {llm.result = "logits"})
// CHECK-SAME:   attributes {llm.phase = "decode"} {
// CHECK-NEXT:   llm.add
// CHECK-NOT:  @main
func.func @main(%b: !llm.batch, %x: tensor<?x8xf32>) -> (tensor<?x8xf32> {llm.result = "logits"}) {
  %y = llm.add %x, %x : tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
// Another function stays as it is.
// CHECK: func.func @other() {
func.func @other() {
  return
}
