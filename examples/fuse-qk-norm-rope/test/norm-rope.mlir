// qk.norm_rope: its text, and what its verifier says.
//
// RUN: tenon-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @round_trip
// CHECK-NEXT:    qk.norm_rope %{{.*}}, %{{.*}}, %{{.*}} heads 4 half eps 9.9999999999999995E-7 : tensor<?x32xf32>, <8xf32>, tensor<?x8xf32>
func.func @round_trip(%x: tensor<?x32xf32>, %w: !llm.weight<8xf32>, %a: tensor<?x8xf32>) -> tensor<?x32xf32> {
  %r = qk.norm_rope %x, %w, %a heads 4 half eps 1.0e-06 : tensor<?x32xf32>, !llm.weight<8xf32>, tensor<?x8xf32>
  return %r : tensor<?x32xf32>
}

// -----

func.func @f(%x: tensor<?x32xf32>, %w: !llm.weight<8xf32>, %a: tensor<?x8xf32>) {
  // expected-error @below {{heads (5) do not divide 32 columns}}
  %r = qk.norm_rope %x, %w, %a heads 5 half eps 1.0e-06 : tensor<?x32xf32>, !llm.weight<8xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>, %w: !llm.weight<32xf32>, %a: tensor<?x8xf32>) {
  // expected-error @below {{weight must be a vector of 8 elements, got '!llm.weight<32xf32>'}}
  %r = qk.norm_rope %x, %w, %a heads 4 half eps 1.0e-06 : tensor<?x32xf32>, !llm.weight<32xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x32xf32>, %w: !llm.weight<8xf32>, %a: tensor<?x16xf32>) {
  // expected-error @below {{angles for 16 elements do not fit a head of 8}}
  %r = qk.norm_rope %x, %w, %a heads 4 half eps 1.0e-06 : tensor<?x32xf32>, !llm.weight<8xf32>, tensor<?x16xf32>
  return
}
