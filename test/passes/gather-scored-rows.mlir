//   x ─ norm ─ linear ─ logits   ─▶   x ─ gather_rows ─ norm ─ linear ─ logits
//
// RUN: tenon-opt %s --llm-gather-scored-rows | FileCheck %s
// RUN: tenon-opt %s --llm-gather-scored-rows --llm-gather-scored-rows | FileCheck %s

// CHECK-LABEL: func.func @prefill
// CHECK-SAME:    %[[B:[^ :]*]]: !llm.batch
// CHECK-NEXT:    %[[S:.*]] = llm.add
// CHECK-NEXT:    %[[G:.*]] = llm.gather_rows %[[S]], %[[B]]
// CHECK-NEXT:    llm.rms_norm %[[G]]
// CHECK-NEXT:    llm.linear
// CHECK-NEXT:    return
func.func @prefill(%b: !llm.batch, %x: tensor<?x8xf32>, %n: !llm.weight<8xf32>, %w: !llm.weight<20x8xf32>)
    -> (tensor<?x20xf32> {llm.result = "logits"}) {
  %s = llm.add %x, %x : tensor<?x8xf32>
  %y = llm.rms_norm %s, %n eps 1.0e-05 : tensor<?x8xf32>, !llm.weight<8xf32>
  %z = llm.linear %y, %w : tensor<?x8xf32>, !llm.weight<20x8xf32>
  return %z : tensor<?x20xf32>
}

// Every row of a decode step is scored.
// CHECK-LABEL: func.func @decode
// CHECK-NOT:     llm.gather_rows
func.func @decode(%b: !llm.batch, %x: tensor<?x8xf32>, %w: !llm.weight<20x8xf32>)
    -> (tensor<?x20xf32> {llm.result = "logits"}) attributes {llm.phase = "decode"} {
  %z = llm.linear %x, %w : tensor<?x8xf32>, !llm.weight<20x8xf32>
  return %z : tensor<?x20xf32>
}

// The normed rows are read by someone else, in full.
// CHECK-LABEL: func.func @shared_norm
// CHECK:         %[[N:.*]] = llm.rms_norm
// CHECK-NEXT:    %[[G:.*]] = llm.gather_rows %[[N]]
// CHECK-NEXT:    %[[L:.*]] = llm.linear %[[G]]
// CHECK-NEXT:    return %[[L]], %[[N]]
func.func @shared_norm(%b: !llm.batch, %x: tensor<?x8xf32>, %n: !llm.weight<8xf32>, %w: !llm.weight<20x8xf32>)
    -> (tensor<?x20xf32> {llm.result = "logits"}, tensor<?x8xf32> {llm.result = "hidden.0"}) {
  %y = llm.rms_norm %x, %n eps 1.0e-05 : tensor<?x8xf32>, !llm.weight<8xf32>
  %z = llm.linear %y, %w : tensor<?x8xf32>, !llm.weight<20x8xf32>
  return %z, %y : tensor<?x20xf32>, tensor<?x8xf32>
}

// Nothing is called logits.
// CHECK-LABEL: func.func @helper
// CHECK-NOT:     llm.gather_rows
func.func @helper(%b: !llm.batch, %x: tensor<?x8xf32>, %w: !llm.weight<20x8xf32>) -> tensor<?x20xf32> {
  %z = llm.linear %x, %w : tensor<?x8xf32>, !llm.weight<20x8xf32>
  return %z : tensor<?x20xf32>
}

// Soft caps and factors are row by row too.
// CHECK-LABEL: func.func @capped
// CHECK-NEXT:    %[[G:.*]] = llm.gather_rows
// CHECK-NEXT:    llm.linear %[[G]]
// CHECK-NEXT:    llm.scale
// CHECK-NEXT:    llm.softcap
func.func @capped(%b: !llm.batch, %x: tensor<?x8xf32>, %w: !llm.weight<20x8xf32>)
    -> (tensor<?x20xf32> {llm.result = "logits"}) {
  %z = llm.linear %x, %w : tensor<?x8xf32>, !llm.weight<20x8xf32>
  %s = llm.scale %z by 0.5 : tensor<?x20xf32>
  %c = llm.softcap %s at 30.0 : tensor<?x20xf32>
  return %c : tensor<?x20xf32>
}
