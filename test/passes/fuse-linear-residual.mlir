//   x ──────── add      ─▶    x ── fused @linear_residual
//   y ─ linear ─┘             y ─┘
//
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(llm-fuse-linear-residual))' | FileCheck %s

// CHECK-LABEL: func.func @fires
// CHECK-NEXT:    %[[F:.*]] = llm.fused @linear_residual -> tensor<?x8xf32> {
// CHECK-NEXT:      %[[L:.*]] = llm.linear
// CHECK-NEXT:      %[[S:.*]] = llm.add %{{.*}}, %[[L]]
// CHECK-NEXT:      llm.yield %[[S]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[F]]
func.func @fires(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %w: !llm.weight<8x8xf32>) -> tensor<?x8xf32> {
  %l = llm.linear %y, %w : tensor<?x8xf32>, !llm.weight<8x8xf32>
  %s = llm.add %x, %l : tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}

// CHECK-LABEL: func.func @other_way_round
// CHECK:         llm.fused @linear_residual
func.func @other_way_round(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %w: !llm.weight<8x8xf32>) -> tensor<?x8xf32> {
  %l = llm.linear %y, %w : tensor<?x8xf32>, !llm.weight<8x8xf32>
  %s = llm.add %l, %x : tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}

// Left alone: the product is read again.
// CHECK-LABEL: func.func @product_is_read
// CHECK-NOT:     llm.fused
func.func @product_is_read(%x: tensor<?x8xf32>, %w: !llm.weight<8x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %l = llm.linear %x, %w : tensor<?x8xf32>, !llm.weight<8x8xf32>
  %s = llm.add %x, %l : tensor<?x8xf32>
  return %s, %l : tensor<?x8xf32>, tensor<?x8xf32>
}

// Left alone: a product added to itself has two uses.
// CHECK-LABEL: func.func @doubled
// CHECK-NOT:     llm.fused
func.func @doubled(%x: tensor<?x8xf32>, %w: !llm.weight<8x8xf32>) -> tensor<?x8xf32> {
  %l = llm.linear %x, %w : tensor<?x8xf32>, !llm.weight<8x8xf32>
  %s = llm.add %l, %l : tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}

// Left alone: the product is scaled before it is added.
// CHECK-LABEL: func.func @scaled
// CHECK-NOT:     llm.fused
func.func @scaled(%x: tensor<?x8xf32>, %w: !llm.weight<8x8xf32>) -> tensor<?x8xf32> {
  %l = llm.linear %x, %w : tensor<?x8xf32>, !llm.weight<8x8xf32>
  %m = llm.scale %l by 0.5 : tensor<?x8xf32>
  %s = llm.add %x, %m : tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}
