// Bidirectional attention is not cached, and a model of it alone has one phase.
//
// RUN: tenon-opt %s --llm-insert-kv-cache --llm-split-phases --llm-gather-scored-rows --split-input-file --verify-diagnostics \
// RUN:   | FileCheck %s

// CHECK-LABEL: func.func @encode(
// CHECK-SAME:    %[[B:[^ :]*]]: !llm.batch, %[[X:[^ :]*]]: tensor<?x8xf32>)
// CHECK-SAME:    attributes {llm.phase = "encode"}
// CHECK-NEXT:    %[[Y:.*]] = llm.attention %[[X]], %[[X]], %[[X]], %[[B]] {{.*}} keys tokens bidirectional
// CHECK-NEXT:    llm.gather_rows %[[Y]], %[[B]]
// CHECK-NOT:   func.func
func.func @main(%b: !llm.batch, %x: tensor<?x8xf32>) -> (tensor<?x8xf32> {llm.result = "logits"}) {
  %y = llm.attention %x, %x, %x, %b heads 2 kv_heads 2 scale 0.5 keys tokens bidirectional
     : tensor<?x8xf32>, tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// expected-error @below {{mixes causal and bidirectional attention: it can neither be run token by token nor as an encoder}}
func.func @main(%b: !llm.batch, %x: tensor<?x8xf32>) -> (tensor<?x8xf32> {llm.result = "logits"}) {
  %y = llm.attention %x, %x, %x, %b heads 2 kv_heads 2 scale 0.5 keys tokens bidirectional
     : tensor<?x8xf32>, tensor<?x8xf32>
  %z = llm.attention %y, %x, %x, %b heads 2 kv_heads 2 scale 0.5 keys tokens : tensor<?x8xf32>, tensor<?x8xf32>
  return %z : tensor<?x8xf32>
}

// -----

// expected-error @+4 {{attends to a memory, which needs a function @encoder and its result as an argument}}
func.func @main(%b: !llm.batch, %x: tensor<?x8xf32>) -> (tensor<?x8xf32> {llm.result = "logits"}) {
  // No other function makes it.
  // The argument may be anything.
  %y = llm.attention %x, %x, %x, %b heads 2 kv_heads 2 scale 0.5 keys memory : tensor<?x8xf32>, tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}
