// What the llm dialect refuses, and how it says so.
// RUN: tenon-opt %s -verify-diagnostics -split-input-file

// expected-error @below {{unknown storage 'q9_9'}}
func.func private @f(!llm.weight<4x4xq9_9>)

// -----

// expected-error @below {{unknown layout 'x8'}}
func.func private @f(!llm.weight<4x4xf32, x8>)

// -----

// expected-error @below {{layout x16k4 does not fit storage f32, which packs as x16k1}}
func.func private @f(!llm.weight<16x4xf32, x16k4>)

// -----

// expected-error @below {{layout x16k2 does not fit storage q4_1, which packs as x16k4}}
func.func private @f(!llm.weight<16x32xq4_1, x16k2>)

// -----

// expected-error @below {{layout x16k4 does not fit storage bf16, which packs as x16k2 or x1k8}}
func.func private @f(!llm.weight<16x32xbf16, x16k4>)

// -----

// expected-error @below {{a weight has at least one dimension}}
func.func private @f(!llm.weight<f32>)

// -----

// expected-error @below {{a weight's dimensions are positive, got 0}}
func.func private @f(!llm.weight<0x4xf32>)

// -----

// expected-error @below {{with as many heads of keys as of values}}
func.func private @f(!llm.cache<2 x [k: 2x8xf32, v: 4x8xf32]>)

// -----

// expected-error @below {{with as many heads of keys as of values}}
func.func private @f(!llm.cache<2 x [k: 2x8xf32, v: 2x8xf16]>)

// -----

// expected-error @below {{with as many heads of keys as of values}}
func.func private @f(!llm.cache<0 x [k: 2x8xf32, v: 2x8xf32]>)

// -----

// expected-error @below {{elements of a cache are f32, bf16, f16 or i8, not 'i16'}}
func.func private @f(!llm.cache<2 x [k: 2x8xi16, v: 2x8xi16]>)

// -----

func.func @f(%a: !llm.weight<4x32xf32>, %b: !llm.weight<4x32xf16>) {
  // expected-error @below {{inputs must have equal columns and storage}}
  %0 = llm.weight_concat %a, %b : !llm.weight<4x32xf32>, !llm.weight<4x32xf16>
  return
}

// -----

func.func @f(%a: !llm.weight<4x32xf32>, %b: !llm.weight<4x16xf32>) {
  // expected-error @below {{inputs must have equal columns and storage}}
  %0 = llm.weight_concat %a, %b : !llm.weight<4x32xf32>, !llm.weight<4x16xf32>
  return
}

// -----

func.func @f(%a: !llm.weight<16x32xf32, x16k1>) {
  // expected-error @below {{inputs must have equal columns and storage}}
  %0 = llm.weight_concat %a, %a : !llm.weight<16x32xf32, x16k1>, !llm.weight<16x32xf32, x16k1>
  return
}

// -----

func.func @f() {
  // expected-error @below {{needs at least one input}}
  // expected-error @below {{failed to infer returned types}}
  %0 = "llm.weight_concat"() : () -> !llm.weight<4x4xf32>
  return
}

// -----

func.func @f(%a: !llm.weight<12x32xf32>) {
  // expected-error @below {{heads (4) do not divide 12 rows into pairs}}
  %0 = llm.weight_deinterleave %a heads 4 : !llm.weight<12x32xf32>
  return
}

// -----

func.func @f(%a: !llm.weight<4x32xf32>) {
  // expected-error @below {{cannot change the shape}}
  %0 = llm.weight_convert %a : <4x32xf32> to <4x16xf32>
  return
}

// -----

func.func @f(%a: !llm.weight<16x32xf32, x16k1>) {
  // expected-error @below {{converts plain weights only}}
  %0 = llm.weight_convert %a : <16x32xf32, x16k1> to <16x32xf16>
  return
}

// -----

func.func @f(%a: !llm.weight<16x32xf32>) {
  // expected-error @below {{packs a plain weight into a packed one}}
  %0 = llm.weight_pack %a : <16x32xf32> to <16x32xf32>
  return
}

// -----

func.func @f(%a: !llm.weight<16x32xf32>) {
  // expected-error @below {{changes the layout of a matrix only}}
  %0 = llm.weight_pack %a : <16x32xf32> to <16x32xf16, x16k2>
  return
}

// -----

func.func @f(%a: !llm.weight<16xf32>) {
  // expected-error @below {{changes the layout of a matrix only}}
  %0 = llm.weight_pack %a : <16xf32> to <16xf32, x16k1>
  return
}

// -----

func.func @f() {
  // expected-error @below {{dim (63) must be even: pairs are rotated}}
  %0 = llm.rope_frequencies dim 63 theta 1.0e+04
  return
}

// -----

func.func @f() {
  // expected-error @below {{theta must be positive}}
  %0 = llm.rope_frequencies dim 64 theta 0.0
  return
}

// -----

func.func @f() {
  // expected-error @below {{scaling needs a type: linear, divided, llama3, yarn, longrope or dynamic}}
  %0 = llm.rope_frequencies dim 64 theta 1.0e+04 scaling {factor = 2.0 : f64}
  return
}

// -----

func.func @f() {
  // expected-error @below {{unknown scaling type 'ntk'; accepted: linear, divided, llama3, yarn}}
  %0 = llm.rope_frequencies dim 64 theta 1.0e+04 scaling {type = "ntk", factor = 2.0 : f64}
  return
}

// -----

func.func @f() {
  // expected-error @below {{scaling linear needs a positive number 'factor'}}
  %0 = llm.rope_frequencies dim 64 theta 1.0e+04 scaling {type = "linear"}
  return
}

// -----

func.func @f() {
  // expected-error @below {{scaling linear needs a positive number 'factor'}}
  %0 = llm.rope_frequencies dim 64 theta 1.0e+04 scaling {type = "linear", factor = -2.0 : f64}
  return
}

// -----

func.func @f() {
  // expected-error @below {{scaling llama3 needs a positive number 'original'}}
  %0 = llm.rope_frequencies dim 64 theta 1.0e+04 scaling {type = "llama3", factor = 8.0 : f64, low = 1.0 : f64, high = 4.0 : f64}
  return
}

// -----

func.func @f() {
  // expected-error @below {{scaling yarn needs a positive number 'fast'}}
  %0 = llm.rope_frequencies dim 64 theta 1.0e+04 scaling {type = "yarn", factor = 8.0 : f64, original = 32.0 : f64, fast = 0.0 : f64}
  return
}

// -----

func.func @f(%a: !llm.weight<16x8xf32>) {
  // expected-error @below {{'llm.weight_slice' op rows 8 to 17 are not within 16}}
  %0 = llm.weight_slice %a rows 8 to 17 : <16x8xf32>
  return
}

// -----

func.func @f(%a: !llm.weight<64xq8_0>) {
  // expected-error @below {{'llm.weight_slice' op cannot take a part of}}
  %0 = llm.weight_slice %a rows 0 to 32 : <64xq8_0>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{cap must be a positive number}}
  %0 = llm.softcap %x at 0.0 : tensor<?x8xf32>
  return
}

// -----

func.func @f(%b: !llm.batch, %q: tensor<?x8xf32>) {
  // expected-error @below {{softcap must be a positive number, or 0 for none}}
  %0 = llm.attention %q, %q, %q, %b heads 2 kv_heads 2 scale 0.25 keys tokens softcap -1.0 : tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @f(%b: !llm.batch, %q: tensor<?x8xf32>) {
  // expected-error @below {{attribute 'window' failed to satisfy constraint}}
  %0 = llm.attention %q, %q, %q, %b heads 2 kv_heads 2 scale 0.25 keys tokens window -1 : tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{scaling linear has no key 'low'}}
  %0 = llm.rope_frequencies dim 64 theta 1.0e+04 scaling {type = "linear", factor = 2.0 : f64, low = 1.0 : f64}
  return
}

// -----

func.func @f() {
  // expected-error @below {{scaling llama3 needs low < high}}
  %0 = llm.rope_frequencies dim 64 theta 1.0e+04 scaling {type = "llama3", factor = 8.0 : f64, low = 4.0 : f64, high = 4.0 : f64, original = 8192.0 : f64}
  return
}

// -----

func.func @f(%b: !llm.batch, %w: !llm.weight<64xf32>) {
  // expected-error @below {{table must be a matrix}}
  %0 = llm.embedding %b, %w : <64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %w: !llm.weight<32xf32>) {
  // expected-error @below {{weight must be a vector of 64 elements, got '!llm.weight<32xf32>'}}
  %0 = llm.rms_norm %x, %w eps 1.0e-05 : tensor<?x64xf32>, !llm.weight<32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %w: !llm.weight<64xf32>) {
  // expected-error @below {{eps must not be negative}}
  %0 = llm.rms_norm %x, %w eps -1.0e-05 : tensor<?x64xf32>, !llm.weight<64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %w: !llm.weight<64xf32>) {
  // expected-error @below {{heads (5) do not divide 64 columns}}
  %0 = llm.rms_norm %x, %w heads 5 eps 1.0e-05 : tensor<?x64xf32>, !llm.weight<64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %w: !llm.weight<64xf32>) {
  // expected-error @below {{weight must be a vector of 16 elements, got '!llm.weight<64xf32>'}}
  %0 = llm.rms_norm %x, %w heads 4 eps 1.0e-05 : tensor<?x64xf32>, !llm.weight<64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %w: !llm.weight<64xf32>) {
  // expected-error @below {{weight must be a matrix}}
  %0 = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %w: !llm.weight<16x32xf32>) {
  // expected-error @below {{weight has 32 columns, the rows have 64}}
  %0 = llm.linear %x, %w : tensor<?x64xf32>, !llm.weight<16x32xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %w: !llm.weight<16x64xf32>, %b: !llm.weight<64xf32>) {
  // expected-error @below {{bias must be a vector of 16 elements}}
  %0 = llm.linear %x, %w, %b : tensor<?x64xf32>, !llm.weight<16x64xf32>, !llm.weight<64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %a: tensor<?x8xf32>) {
  // expected-error @below {{heads (9) do not divide 64 columns}}
  %0 = llm.rope %x, %a heads 9 half : tensor<?x64xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %a: tensor<?x7xf32>) {
  // expected-error @below {{angles for 7 elements from element 0 on do not fit a head of 8}}
  %0 = llm.rope %x, %a heads 8 half : tensor<?x64xf32>, tensor<?x7xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>, %a: tensor<?x16xf32>) {
  // expected-error @below {{angles for 16 elements from element 0 on do not fit a head of 8}}
  %0 = llm.rope %x, %a heads 8 half : tensor<?x64xf32>, tensor<?x16xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{heads (3) do not divide 64 columns}}
  %0 = llm.repeat_kv %x heads 3 times 2 : tensor<?x64xf32>
  return
}

// -----

func.func @f(%b: !llm.batch, %q: tensor<?x72xf32>, %k: tensor<?x32xf32>) {
  // expected-error @below {{num_heads (9) is not a multiple of num_kv_heads (4)}}
  %0 = llm.attention %q, %k, %k, %b heads 9 kv_heads 4 scale 0.25 keys tokens : tensor<?x72xf32>, tensor<?x32xf32>
  return
}

// -----

func.func @f(%b: !llm.batch, %q: tensor<?x64xf32>, %k: tensor<?x64xf32>) {
  // expected-error @below {{num_heads and num_kv_heads must be positive}}
  %0 = llm.attention %q, %k, %k, %b heads 0 kv_heads 4 scale 0.25 keys tokens : tensor<?x64xf32>, tensor<?x64xf32>
  return
}

// -----

func.func @f(%b: !llm.batch, %q: tensor<?x60xf32>, %k: tensor<?x60xf32>) {
  // expected-error @below {{num_heads (8) does not divide 60 query columns}}
  %0 = llm.attention %q, %k, %k, %b heads 8 kv_heads 8 scale 0.25 keys tokens : tensor<?x60xf32>, tensor<?x60xf32>
  return
}

// -----

func.func @f(%b: !llm.batch, %q: tensor<?x64xf32>, %k: tensor<?x64xf32>) {
  // expected-error @below {{keys must have 16 columns (2 heads of 8), got 64}}
  %0 = llm.attention %q, %k, %k, %b heads 8 kv_heads 2 scale 0.25 keys tokens : tensor<?x64xf32>, tensor<?x64xf32>
  return
}

// -----

func.func @f(%b: !llm.batch, %k: tensor<?x16xf32>, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) {
  // expected-error @below {{layer 2 is not in a cache of 2 layers}}
  %0 = llm.kv_append %c, %k, %k, %b layer 2 : !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>, tensor<?x16xf32>
  return
}

// -----

func.func @f(%b: !llm.batch, %k: tensor<?x16xf32>, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) {
  // expected-error @below {{attribute 'layer' failed to satisfy constraint}}
  %0 = llm.kv_append %c, %k, %k, %b layer -1 : !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>, tensor<?x16xf32>
  return
}

// -----

func.func @f(%b: !llm.batch, %k: tensor<?x32xf32>, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) {
  // expected-error @below {{keys have 32 columns, the cache's rows have 16}}
  %0 = llm.kv_append %c, %k, %k, %b layer 0 : !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>, tensor<?x32xf32>
  return
}

// -----

func.func @f(%b: !llm.batch, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) {
  // expected-error @below {{layer 7 is not in a cache of 2 layers}}
  %0:2 = llm.kv_read %c, %b layer 7 : !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
  return
}

// -----

func.func @f(%b: !llm.batch, %q: tensor<?x64xf32>, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) {
  // expected-error @below {{layer 2 is not in a cache of 2 layers}}
  %0 = llm.paged_attention %q, %c, %b layer 2 heads 8 scale 0.25 : tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
  return
}

// -----

func.func @f(%b: !llm.batch, %q: tensor<?x64xf32>, %c: !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>) {
  // expected-error @below {{keys must have 32 columns (2 heads of 16), got 16}}
  %0 = llm.paged_attention %q, %c, %b layer 0 heads 4 scale 0.25 : tensor<?x64xf32>, !llm.cache<2 x [k: 2x8xf32, v: 2x8xf32]>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{columns 48 to 65 are not within 64}}
  %0 = llm.slice %x columns 48 to 65 : tensor<?x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{columns 8 to 8 are not within 64}}
  %0 = llm.slice %x columns 8 to 8 : tensor<?x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{columns -1 to 8 are not within 64}}
  %0 = llm.slice %x columns -1 to 8 : tensor<?x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{must yield its results}}
  %0 = llm.fused @twice -> tensor<?x32xf32> {
    %y = llm.add %x, %x : tensor<?x64xf32>
    llm.yield %y : tensor<?x64xf32>
  }
  return
}

// -----

func.func @f(%x: tensor<?x64xf32>) {
  // expected-error @below {{joins operations that have a reference decomposition, not 'func.call'}}
  %0 = llm.fused @twice -> tensor<?x64xf32> {
    %y = func.call @g(%x) : (tensor<?x64xf32>) -> tensor<?x64xf32>
    llm.yield %y : tensor<?x64xf32>
  }
  return
}
func.func private @g(tensor<?x64xf32>) -> tensor<?x64xf32>

// -----

func.func @f(%a: !llm.weight<12x8xf32>) {
  // expected-error @below {{groups of 5 rows do not make up 12 rows}}
  %0 = llm.weight_slice %a rows 0 to 2 every 5 : !llm.weight<12x8xf32>
  return
}

// -----

func.func @f(%a: !llm.weight<12x8xf32>) {
  // expected-error @below {{rows 4 to 7 are not within 6}}
  %0 = llm.weight_slice %a rows 4 to 7 every 6 : !llm.weight<12x8xf32>
  return
}

// -----

func.func @f(%a: !llm.weight<32x32xq8_0>) {
  // expected-error @below {{needs a plain matrix that is not stored in groups}}
  %0 = llm.weight_transpose %a : !llm.weight<32x32xq8_0>
  return
}

// -----

func.func @f(%b: !llm.batch, %t: !llm.weight<2x8xf32>) {
  // expected-error @below {{offset (2) leaves no position in a table of 2 rows}}
  %0 = llm.position_embedding %b, %t offset 2 : !llm.weight<2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %w: !llm.weight<8xf32>, %b: !llm.weight<4xf32>) {
  // expected-error @below {{bias must be a vector of 8 elements}}
  %0 = llm.layer_norm %x, %w, %b eps 1.0e-05 : tensor<?x8xf32>, !llm.weight<8xf32>, !llm.weight<4xf32>
  return
}

// -----

func.func @f(%b: !llm.batch, %q: tensor<?x8xf32>, %w: !llm.weight<3x16xf32>) {
  // expected-error @below {{bias must be a plain f32 table with a row for each of 2 heads, got '!llm.weight<3x16xf32>'}}
  %0 = llm.attention %q, %q, %q, %b heads 2 kv_heads 2 scale 0.25 keys tokens bias %w by key origin 0 : tensor<?x8xf32>, tensor<?x8xf32>, !llm.weight<3x16xf32>
  return
}

// -----

func.func @f(%b: !llm.batch, %q: tensor<?x8xf32>, %c: !llm.cache<1 x [k: 2x4xf32, v: 2x4xf32]>, %w: !llm.weight<2x16xbf16>) {
  // expected-error @below {{bias must be a plain f32 table with a row for each of 2 heads, got '!llm.weight<2x16xbf16>'}}
  %0 = llm.paged_attention %q, %c, %b layer 0 heads 2 scale 0.25 bias %w by distance origin 0 : tensor<?x8xf32>, !llm.cache<1 x [k: 2x4xf32, v: 2x4xf32]>, !llm.weight<2x16xbf16>
  return
}

// -----

func.func @f() {
  // expected-error @below {{largest must be a positive number}}
  %0 = llm.alibi heads 6 length 64 largest -1.0
  return
}

// -----

func.func @f() {
  // expected-error @below {{scale must be a positive number}}
  %0 = llm.alibi heads 6 length 64 scale 0.0
  return
}

// -----

func.func @f(%w: !llm.weight<6x8xf32>) {
  // expected-error @below {{cannot halve 6 buckets for each direction}}
  %0 = llm.relative_bias %w max_distance 16 bidirectional : !llm.weight<6x8xf32>
  return
}

// -----

func.func @f(%w: !llm.weight<32x8xf32>) {
  // expected-error @below {{max_distance (16) must be more than 16, the distances with a bucket of their own}}
  %0 = llm.relative_bias %w max_distance 16 : !llm.weight<32x8xf32>
  return
}

// -----

func.func @f(%w: !llm.weight<32xf32>) {
  // expected-error @below {{needs a plain matrix of a row for each bucket}}
  %0 = llm.relative_bias %w max_distance 16 : !llm.weight<32xf32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{scaling longrope needs a list 'short' of 2 positive numbers, one for each pair}}
  %0 = llm.rope_frequencies dim 4 theta 1.0e+04 scaling {type = "longrope", original = 32.0 : f64, short = [1.0], long = [1.0, 8.0]}
  return
}

// -----

func.func @f() {
  // expected-error @below {{scaling dynamic needs a factor of at least 1}}
  %0 = llm.rope_frequencies dim 4 theta 1.0e+04 scaling {type = "dynamic", original = 32.0 : f64, factor = 0.5 : f64}
  return
}

// -----

func.func @f(%b: !llm.batch, %f: !llm.weight<2x4xf64>) {
  // expected-error @below {{original goes with either two rows of frequencies or dynamic}}
  %0 = llm.rope_angles %b, %f : <2x4xf64>
  return
}

// -----

func.func @f(%b: !llm.batch, %f: !llm.weight<4xf64>) {
  // expected-error @below {{original goes with either two rows of frequencies or dynamic}}
  %0 = llm.rope_angles %b, %f original 32 : <4xf64>
  return
}

// -----

func.func @f(%b: !llm.batch, %f: !llm.weight<4xf64>) {
  // expected-error @below {{dynamic must be at least 1}}
  %0 = llm.rope_angles %b, %f original 32 dynamic 0.5 : <4xf64>
  return
}

// -----

func.func @f(%b: !llm.batch, %f: !llm.weight<4xf32>) {
  // expected-error @below {{frequencies must be f64 in one row or two, got '!llm.weight<4xf32>'}}
  %0 = llm.rope_angles %b, %f : <4xf32>
  return
}

// -----

func.func @f(%a: !llm.weight<12x8xf32>) {
  // expected-error @below {{keeps the elements and their storage}}
  %0 = llm.weight_reshape %a : !llm.weight<12x8xf32> to !llm.weight<3x5x8xf32>
  return
}

// -----

func.func @f(%a: !llm.weight<12x8xf32>) {
  // expected-error @below {{keeps rows, or makes a vector of single elements}}
  %0 = llm.weight_reshape %a : !llm.weight<12x8xf32> to !llm.weight<3x8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x6xf32>) {
  // expected-error @below {{groups (4) do not divide 6 columns}}
  %0 = llm.top_k %x count 2 groups 4 top 2 : tensor<?x6xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{count (5) is more than the 4 columns that are searched}}
  %0 = llm.top_k %x count 5 groups 4 top 2 : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %b: !llm.weight<4xf32>) {
  // expected-error @below {{bias must be a vector of 8 elements}}
  %0 = llm.top_k %x, %b count 2 : tensor<?x8xf32>, !llm.weight<4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %c: tensor<?x2xf32>, %w: !llm.weight<4x6xf32>) {
  // expected-error @below {{weight must be a stack of matrices}}
  %0 = llm.expert_linear %x, %c, %w : tensor<?x8xf32>, tensor<?x2xf32>, !llm.weight<4x6xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %c: tensor<?x2xf32>, %w: !llm.weight<4x6x5xf32>) {
  // expected-error @below {{weight has 5 columns, for rows of as many or of 2 times as many; the rows have 8}}
  %0 = llm.expert_linear %x, %c, %w : tensor<?x8xf32>, tensor<?x2xf32>, !llm.weight<4x6x5xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %c: tensor<?x3xf32>, %w: !llm.weight<2x6x8xf32>) {
  // expected-error @below {{chooses 3 of 2 experts}}
  %0 = llm.expert_linear %x, %c, %w : tensor<?x8xf32>, tensor<?x3xf32>, !llm.weight<2x6x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %c: tensor<?x3xf32>) {
  // expected-error @below {{3 weights do not divide 8 columns}}
  %0 = llm.combine %x, %c : tensor<?x8xf32>, tensor<?x3xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %w: !llm.weight<2x6x5xf32>) {
  // expected-error @below {{weight is for 2 heads of 5 columns, the rows have 8}}
  %0 = llm.head_linear %x, %w : tensor<?x8xf32>, !llm.weight<2x6x5xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{the lower bound must not exceed the upper one}}
  %0 = llm.clamp %x from 2.0 to 1.0 : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{columns 2 to 5 are not within a head of 4}}
  %0 = llm.slice_heads %x heads 2 columns 2 to 5 : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error @below {{heads (3) do not divide 8 columns}}
  %0 = llm.join_heads %x, %x heads 3 : tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @f(%b: !llm.batch, %x: tensor<?x8xf32>, %v: tensor<?x5xf32>) {
  // expected-error @below {{num_kv_heads (2) does not divide 5 value columns}}
  %0 = llm.attention %x, %x, %v, %b heads 2 kv_heads 2 scale 1.0 keys tokens : tensor<?x8xf32>, tensor<?x8xf32> values tensor<?x5xf32>
  return
}

// -----

func.func @f(%b: !llm.batch, %x: tensor<?x8xf32>, %s: !llm.weight<3xf32>) {
  // expected-error @below {{sinks must be a vector of 2 elements}}
  %0 = llm.attention %x, %x, %x, %b sinks(%s : !llm.weight<3xf32>) heads 2 kv_heads 2 scale 1.0 keys tokens : tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xf32>, %a: tensor<?x2xf32>) {
  // expected-error @below {{angles for 2 elements from element 3 on do not fit a head of 4}}
  %0 = llm.rope %x, %a heads 2 half first 3 : tensor<?x8xf32>, tensor<?x2xf32>
  return
}

// -----

func.func @f(%b: !llm.batch, %x: tensor<?x8xf32>) {
  // expected-error @below {{'llm.attention' op bidirectional attention is over the tokens of the batch, not keys context}}
  %0 = llm.attention %x, %x, %x, %b heads 2 kv_heads 2 scale 0.5 keys context bidirectional
     : tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @f(%b: !llm.batch, %x: tensor<?x8xf32>) {
  // expected-error @below {{'llm.attention' op a window (4) needs causal attention}}
  %0 = llm.attention %x, %x, %x, %b heads 2 kv_heads 2 scale 0.5 keys memory window 4
     : tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{'llm.sinusoidal' op must be a plain f32 matrix of positions, got '!llm.weight<8xf32>'}}
  %0 = llm.sinusoidal halves : !llm.weight<8xf32>
  return
}

// -----

func.func @f(%b: !llm.batch, %t: !llm.weight<8xf32>) {
  // expected-error @below {{'llm.type_embedding' op table must be a matrix, got '!llm.weight<8xf32>'}}
  %0 = llm.type_embedding %b, %t : !llm.weight<8xf32>
  return
}
