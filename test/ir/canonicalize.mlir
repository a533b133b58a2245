// What folds away.
// RUN: tenon-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @repeat_once
// CHECK-SAME:    %[[K:[^ :]*]]: tensor<?x16xf32>
// CHECK-NEXT:    return %[[K]]
func.func @repeat_once(%k: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %r = llm.repeat_kv %k heads 2 times 1 : tensor<?x16xf32>
  return %r : tensor<?x16xf32>
}

// CHECK-LABEL: func.func @repeat_twice
// CHECK:         llm.repeat_kv
func.func @repeat_twice(%k: tensor<?x16xf32>) -> tensor<?x32xf32> {
  %r = llm.repeat_kv %k heads 2 times 2 : tensor<?x16xf32>
  return %r : tensor<?x32xf32>
}

// CHECK-LABEL: func.func @whole_slice
// CHECK-SAME:    %[[X:[^ :]*]]: tensor<?x16xf32>
// CHECK-NEXT:    return %[[X]]
func.func @whole_slice(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %s = llm.slice %x columns 0 to 16 : tensor<?x16xf32>
  return %s : tensor<?x16xf32>
}

// CHECK-LABEL: func.func @part_slice
// CHECK:         llm.slice
func.func @part_slice(%x: tensor<?x16xf32>) -> tensor<?x15xf32> {
  %s = llm.slice %x columns 0 to 15 : tensor<?x16xf32>
  return %s : tensor<?x15xf32>
}

// CHECK-LABEL: func.func @same_storage
// CHECK-SAME:    %[[W:[^ :]*]]: !llm.weight<16x8xf16>
// CHECK-NEXT:    return %[[W]]
func.func @same_storage(%w: !llm.weight<16x8xf16>) -> !llm.weight<16x8xf16> {
  %c = llm.weight_convert %w : <16x8xf16> to <16x8xf16>
  return %c : !llm.weight<16x8xf16>
}

// Rounding to f16 and back is not nothing.
// CHECK-LABEL: func.func @rounding
// CHECK:         llm.weight_convert
// CHECK-NEXT:    llm.weight_convert
func.func @rounding(%w: !llm.weight<16x8xf32>) -> !llm.weight<16x8xf32> {
  %h = llm.weight_convert %w : <16x8xf32> to <16x8xf16>
  %c = llm.weight_convert %h : <16x8xf16> to <16x8xf32>
  return %c : !llm.weight<16x8xf32>
}

// What nobody reads goes, an update of the cache too: its order is in the values.
// CHECK-LABEL: func.func @dead
// CHECK-NEXT:    return
func.func @dead(%b: !llm.batch, %k: tensor<?x16xf32>, %c: !llm.cache<1 x [k: 2x8xf32, v: 2x8xf32]>) {
  %c1 = llm.kv_append %c, %k, %k, %b layer 0 : !llm.cache<1 x [k: 2x8xf32, v: 2x8xf32]>, tensor<?x16xf32>
  %s = llm.fused @sum -> tensor<?x16xf32> {
    %y = llm.add %k, %k : tensor<?x16xf32>
    llm.yield %y : tensor<?x16xf32>
  }
  return
}

// CHECK-LABEL: func.func @scale_by_one
// CHECK-SAME:    %[[X:[^ :]*]]: tensor<?x16xf32>
// CHECK-NEXT:    return %[[X]]
func.func @scale_by_one(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %s = llm.scale %x by 1.0 : tensor<?x16xf32>
  return %s : tensor<?x16xf32>
}

// CHECK-LABEL: func.func @scale_by_two
// CHECK:         llm.scale
func.func @scale_by_two(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %s = llm.scale %x by 2.0 : tensor<?x16xf32>
  return %s : tensor<?x16xf32>
}

// Parts that make up the whole in its order.
// CHECK-LABEL: func.func @parts_joined
// CHECK-SAME:    %[[W:[^ :]*]]: !llm.weight<16x8xf16>
// CHECK-NEXT:    return %[[W]]
func.func @parts_joined(%w: !llm.weight<16x8xf16>) -> !llm.weight<16x8xf16> {
  %a = llm.weight_slice %w rows 0 to 10 : <16x8xf16>
  %b = llm.weight_slice %w rows 10 to 16 : <16x8xf16>
  %c = llm.weight_concat %a, %b : !llm.weight<10x8xf16>, !llm.weight<6x8xf16>
  return %c : !llm.weight<16x8xf16>
}

// CHECK-LABEL: func.func @parts_swapped
// CHECK:         llm.weight_concat
func.func @parts_swapped(%w: !llm.weight<16x8xf16>) -> !llm.weight<16x8xf16> {
  %a = llm.weight_slice %w rows 0 to 8 : <16x8xf16>
  %b = llm.weight_slice %w rows 8 to 16 : <16x8xf16>
  %c = llm.weight_concat %b, %a : !llm.weight<8x8xf16>, !llm.weight<8x8xf16>
  return %c : !llm.weight<16x8xf16>
}

// CHECK-LABEL: func.func @parts_missing
// CHECK:         llm.weight_concat
func.func @parts_missing(%w: !llm.weight<16x8xf16>) -> !llm.weight<12x8xf16> {
  %a = llm.weight_slice %w rows 0 to 4 : <16x8xf16>
  %b = llm.weight_slice %w rows 4 to 12 : <16x8xf16>
  %c = llm.weight_concat %a, %b : !llm.weight<4x8xf16>, !llm.weight<8x8xf16>
  return %c : !llm.weight<12x8xf16>
}
