// Every llm operation in its short form, read and written twice.
// RUN: tenon-opt %s | FileCheck %s
// RUN: tenon-opt %s | tenon-opt | FileCheck %s

// CHECK-LABEL: func.func @weights
func.func @weights() {
  // CHECK: %[[W:.*]] = llm.weight "q_proj.weight" : <64x32xq4_1>
  %w = llm.weight "q_proj.weight" : <64x32xq4_1>
  // CHECK: llm.weight_concat %[[W]], %[[W]] : !llm.weight<64x32xq4_1>, !llm.weight<64x32xq4_1>
  %concat = llm.weight_concat %w, %w : !llm.weight<64x32xq4_1>, !llm.weight<64x32xq4_1>
  // CHECK: llm.weight_slice %[[W]] rows 16 to 48 : <64x32xq4_1>
  %slice = llm.weight_slice %w rows 16 to 48 : <64x32xq4_1>
  // CHECK: llm.weight_deinterleave %[[W]] heads 8 : <64x32xq4_1>
  %half = llm.weight_deinterleave %w heads 8 : !llm.weight<64x32xq4_1>
  // CHECK: llm.weight_slice %[[W]] rows 4 to 8 every 16 : <64x32xq4_1>
  %every = llm.weight_slice %w rows 4 to 8 every 16 : <64x32xq4_1>
  // CHECK: %[[IO:.*]] = llm.weight "c_attn.weight" : <32x96xf32>
  %io = llm.weight "c_attn.weight" : <32x96xf32>
  // CHECK: llm.weight_transpose %[[IO]] : <32x96xf32>
  %oi = llm.weight_transpose %io : !llm.weight<32x96xf32>
  // CHECK: llm.weight_convert %[[W]] : <64x32xq4_1> to <64x32xbf16>
  %bf16 = llm.weight_convert %w : <64x32xq4_1> to <64x32xbf16>
  // CHECK: llm.weight_pack %[[W]] : <64x32xq4_1> to <64x32xq4_1, x16k4>
  %packed = llm.weight_pack %w : <64x32xq4_1> to <64x32xq4_1, x16k4>
  // CHECK: llm.rope_frequencies dim 64 theta 1.000000e+04
  %f = llm.rope_frequencies dim 64 theta 1.0e+04
  // CHECK: llm.rope_frequencies dim 64 theta 1.000000e+04 scaling {factor = 2.000000e+00 : f64, type = "linear"}
  %linear = llm.rope_frequencies dim 64 theta 1.0e+04 scaling {type = "linear", factor = 2.0 : f64}
  // CHECK: llm.rope_frequencies dim 64 theta 5.000000e+05 scaling {factor = 8.000000e+00 : f64, high = 4.000000e+00 : f64, low = 1.000000e+00 : f64, original = 8.192000e+03 : f64, type = "llama3"}
  %llama3 = llm.rope_frequencies dim 64 theta 5.0e+05
    scaling {type = "llama3", factor = 8.0 : f64, low = 1.0 : f64, high = 4.0 : f64, original = 8192.0 : f64}
  // CHECK: llm.rope_frequencies dim 64 theta 1.000000e+04 scaling {factor = 4.000000e+00 : f64, original = 3.200000e+01 : f64, type = "yarn"}
  %yarn = llm.rope_frequencies dim 64 theta 1.0e+04 scaling {type = "yarn", factor = 4.0 : f64, original = 32.0 : f64}
  // CHECK: llm.rope_frequencies dim 4 theta 1.000000e+04 scaling {long = [1.000000e+00, 8.000000e+00], original = 3.200000e+01 : f64, short = [1.000000e+00, 1.500000e+00], type = "longrope"}
  %longrope = llm.rope_frequencies dim 4 theta 1.0e+04
    scaling {type = "longrope", original = 32.0 : f64, short = [1.0, 1.5], long = [1.0, 8.0]}
  // CHECK: llm.rope_frequencies dim 4 theta 1.000000e+04 scaling {factor = 2.000000e+00 : f64, original = 3.200000e+01 : f64, type = "dynamic"}
  %dynamic = llm.rope_frequencies dim 4 theta 1.0e+04 scaling {type = "dynamic", original = 32.0 : f64, factor = 2.0 : f64}
  return
}

// Tables of score biases: a row for each head.
// CHECK-LABEL: func.func @biases
func.func @biases() -> (!llm.weight<6x64xf32>, !llm.weight<6x33xf32>, !llm.weight<6x17xf32>) {
  // CHECK: llm.alibi heads 6 length 64{{$}}
  %a = llm.alibi heads 6 length 64
  // CHECK: llm.alibi heads 6 length 64 origin 63 largest 4.000000e+00 scale 2.500000e-01 bfloat16
  %b = llm.alibi heads 6 length 64 origin 63 largest 4.0 scale 0.25 bfloat16
  %w = llm.weight "bias" : <8x6xf32>
  // CHECK: llm.relative_bias %{{.*}} max_distance 16 bidirectional : <8x6xf32>
  %c = llm.relative_bias %w max_distance 16 bidirectional : !llm.weight<8x6xf32>
  // CHECK: llm.relative_bias %{{.*}} max_distance 16 : <8x6xf32>
  %d = llm.relative_bias %w max_distance 16 : !llm.weight<8x6xf32>
  return %b, %c, %d : !llm.weight<6x64xf32>, !llm.weight<6x33xf32>, !llm.weight<6x17xf32>
}

// The result of a weight concatenation is the sum of the rows.
// CHECK-LABEL: func.func @concat_type() -> !llm.weight<96x32xf16>
func.func @concat_type() -> !llm.weight<96x32xf16> {
  %q = llm.weight "q" : <64x32xf16>
  %k = llm.weight "k" : <32x32xf16>
  %qk = llm.weight_concat %q, %k : !llm.weight<64x32xf16>, !llm.weight<32x32xf16>
  return %qk : !llm.weight<96x32xf16>
}

// CHECK-LABEL: func.func @rows
// CHECK-SAME:    %[[B:[^ :]*]]: !llm.batch, %[[TABLE:[^ :]*]]: !llm.weight<100x64xq8_0>, %[[W:[^ :]*]]: !llm.weight<64x64xf32, x16k1>, %[[V:[^ :]*]]: !llm.weight<64xf32>
func.func @rows(%b: !llm.batch, %table: !llm.weight<100x64xq8_0>, %w: !llm.weight<64x64xf32, x16k1>,
                %v: !llm.weight<64xf32>, %v16: !llm.weight<16xf32>, %f: !llm.weight<4xf64>,
                %f2: !llm.weight<2x4xf64>) -> tensor<?x64xf32> {
  // CHECK: %[[X:.*]] = llm.embedding %[[B]], %[[TABLE]] : <100x64xq8_0>
  %x = llm.embedding %b, %table : <100x64xq8_0>
  // CHECK: llm.position_embedding %[[B]], %[[TABLE]] : <100x64xq8_0>
  %p = llm.position_embedding %b, %table : <100x64xq8_0>
  // CHECK: llm.position_embedding %[[B]], %[[TABLE]] offset 2 : <100x64xq8_0>
  %p2 = llm.position_embedding %b, %table offset 2 : <100x64xq8_0>
  // CHECK: llm.type_embedding %[[B]], %[[TABLE]] : <100x64xq8_0>
  %types = llm.type_embedding %b, %table : <100x64xq8_0>
  // CHECK: llm.sinusoidal interleaved : <32x64xf32>
  %sines = llm.sinusoidal interleaved : <32x64xf32>
  // CHECK: llm.sinusoidal halves : <32x64xf32>
  %halves = llm.sinusoidal halves : <32x64xf32>
  // CHECK: llm.attention %{{.*}} keys tokens bidirectional : tensor<?x64xf32>, tensor<?x64xf32>
  %both = llm.attention %x, %x, %x, %b heads 4 kv_heads 4 scale 0.25 keys tokens bidirectional
     : tensor<?x64xf32>, tensor<?x64xf32>
  // CHECK: llm.attention %{{.*}} keys memory : tensor<?x64xf32>, tensor<?x64xf32>
  %cross = llm.attention %x, %x, %x, %b heads 4 kv_heads 4 scale 0.25 keys memory
     : tensor<?x64xf32>, tensor<?x64xf32>
  // CHECK: llm.layer_norm %[[X]], %[[V]] eps 1.000000e-05 : tensor<?x64xf32>, <64xf32>
  %ln = llm.layer_norm %x, %v eps 1.0e-05 : tensor<?x64xf32>, !llm.weight<64xf32>
  // CHECK: llm.layer_norm %[[X]], %[[V]], %[[V]] eps 1.000000e-05 : tensor<?x64xf32>, <64xf32>, !llm.weight<64xf32>
  %lnb = llm.layer_norm %x, %v, %v eps 1.0e-05 : tensor<?x64xf32>, !llm.weight<64xf32>, !llm.weight<64xf32>
  // CHECK: llm.rms_norm %[[X]], %[[V]] eps 1.000000e-05 : tensor<?x64xf32>, <64xf32>
  %n = llm.rms_norm %x, %v eps 1.0e-05 : tensor<?x64xf32>, !llm.weight<64xf32>
  // CHECK: llm.rms_norm %[[X]], %{{.*}} heads 4 eps 1.000000e-05 : tensor<?x64xf32>, <16xf32>
  %nh = llm.rms_norm %x, %v16 heads 4 eps 1.0e-05 : tensor<?x64xf32>, !llm.weight<16xf32>
  // CHECK: llm.rms_norm %[[X]], %[[V]] eps 1.000000e-05 offset 1.000000e+00 : tensor<?x64xf32>, <64xf32>
  %n1 = llm.rms_norm %x, %v eps 1.0e-05 offset 1.0 : tensor<?x64xf32>, !llm.weight<64xf32>
  // CHECK: llm.linear %{{.*}}, %[[W]] : tensor<?x64xf32>, <64x64xf32, x16k1>
  %l = llm.linear %n, %w : tensor<?x64xf32>, !llm.weight<64x64xf32, x16k1>
  // CHECK: llm.linear %{{.*}}, %[[W]], %[[V]] : tensor<?x64xf32>, <64x64xf32, x16k1>, !llm.weight<64xf32>
  %lb = llm.linear %l, %w, %v : tensor<?x64xf32>, !llm.weight<64x64xf32, x16k1>, !llm.weight<64xf32>
  // CHECK: llm.rope_angles %[[B]], %{{.*}} : <4xf64>
  %a = llm.rope_angles %b, %f : <4xf64>
  // CHECK: llm.rope_angles %[[B]], %{{.*}} factor 1.250000e+00 : <4xf64>
  %af = llm.rope_angles %b, %f factor 1.25 : <4xf64>
  // CHECK: llm.rope_angles %[[B]], %{{.*}} original 32 : <2x4xf64>
  %al = llm.rope_angles %b, %f2 original 32 : <2x4xf64>
  // CHECK: llm.rope_angles %[[B]], %{{.*}} original 32 dynamic 2.000000e+00 : <4xf64>
  %ad = llm.rope_angles %b, %f original 32 dynamic 2.0 : <4xf64>
  // CHECK: llm.rope %{{.*}}, %{{.*}} heads 8 half : tensor<?x64xf32>, tensor<?x8xf32>
  %r = llm.rope %lb, %a heads 8 half : tensor<?x64xf32>, tensor<?x8xf32>
  // CHECK: llm.rope %{{.*}}, %{{.*}} heads 4 interleaved : tensor<?x64xf32>, tensor<?x8xf32>
  %ri = llm.rope %r, %af heads 4 interleaved : tensor<?x64xf32>, tensor<?x8xf32>
  // CHECK: llm.activation silu %{{.*}} : tensor<?x64xf32>
  %s = llm.activation silu %ri : tensor<?x64xf32>
  // CHECK: llm.activation gelu %
  %s1 = llm.activation gelu %s : tensor<?x64xf32>
  // CHECK: llm.activation gelu_tanh %
  %s2 = llm.activation gelu_tanh %s1 : tensor<?x64xf32>
  // CHECK: llm.activation quick_gelu %
  %s3 = llm.activation quick_gelu %s2 : tensor<?x64xf32>
  // CHECK: llm.activation relu %
  %s4 = llm.activation relu %s3 : tensor<?x64xf32>
  // CHECK: llm.activation sigmoid %
  %s5 = llm.activation sigmoid %s4 : tensor<?x64xf32>
  // CHECK: llm.shift %[[X]] by 1.000000e+00 : tensor<?x64xf32>
  %shifted = llm.shift %x by 1.0 : tensor<?x64xf32>
  // CHECK: llm.clamp %[[X]] from 0xFFF0000000000000 to 7.000000e+00 : tensor<?x64xf32>
  %clamped = llm.clamp %x from 0xFFF0000000000000 to 7.0 : tensor<?x64xf32>
  // CHECK: llm.add %{{.*}}, %[[X]] : tensor<?x64xf32>
  %sum = llm.add %s4, %x : tensor<?x64xf32>
  // CHECK: llm.mul %{{.*}}, %[[X]] : tensor<?x64xf32>
  %product = llm.mul %sum, %x : tensor<?x64xf32>
  // CHECK: llm.scale %[[X]] by 1.200000e+01 : tensor<?x64xf32>
  %scaled = llm.scale %x by 12.0 : tensor<?x64xf32>
  // CHECK: llm.softcap %[[X]] at 3.000000e+01 : tensor<?x64xf32>
  %capped = llm.softcap %x at 30.0 : tensor<?x64xf32>
  // CHECK: llm.gather_rows %{{.*}}, %[[B]] : tensor<?x64xf32>
  %y = llm.gather_rows %product, %b : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @attention
// CHECK-SAME:    %[[B:[^ :]*]]: !llm.batch, %[[Q:[^ :]*]]: tensor<?x64xf32>, %[[K:[^ :]*]]: tensor<?x16xf32>, %[[C:[^ :]*]]: !llm.cache<3 x [k: 2x8xbf16, v: 2x8xbf16]>
func.func @attention(%b: !llm.batch, %q: tensor<?x64xf32>, %k: tensor<?x16xf32>,
                     %c: !llm.cache<3 x [k: 2x8xbf16, v: 2x8xbf16]>, %bias: !llm.weight<8x20xf32>) {
  // CHECK: %[[R:.*]] = llm.repeat_kv %[[K]] heads 2 times 4 : tensor<?x16xf32>
  %r = llm.repeat_kv %k heads 2 times 4 : tensor<?x16xf32>
  // CHECK: llm.attention %[[Q]], %[[R]], %[[R]], %[[B]] heads 8 kv_heads 8 scale 2.500000e-01 keys tokens : tensor<?x64xf32>, tensor<?x64xf32>
  %mha = llm.attention %q, %r, %r, %b heads 8 kv_heads 8 scale 0.25 keys tokens
       : tensor<?x64xf32>, tensor<?x64xf32>
  // CHECK: llm.attention {{.*}} keys tokens window 7 softcap 5.000000e+01 : tensor
  %capped = llm.attention %q, %r, %r, %b heads 8 kv_heads 8 scale 0.25 keys tokens window 7 softcap 50.0
       : tensor<?x64xf32>, tensor<?x64xf32>
  // CHECK: llm.attention {{.*}} keys tokens bias %{{.*}} by distance origin 19 : tensor<?x64xf32>, tensor<?x64xf32>, !llm.weight<8x20xf32>
  %biased = llm.attention %q, %r, %r, %b heads 8 kv_heads 8 scale 0.25 keys tokens bias %bias by distance origin 19
    : tensor<?x64xf32>, tensor<?x64xf32>, !llm.weight<8x20xf32>
  // CHECK: %[[C1:.*]] = llm.kv_append %[[C]], %[[K]], %[[K]], %[[B]] layer 2 : <3 x [k: 2x8xbf16, v: 2x8xbf16]>, tensor<?x16xf32>
  %c1 = llm.kv_append %c, %k, %k, %b layer 2 : !llm.cache<3 x [k: 2x8xbf16, v: 2x8xbf16]>, tensor<?x16xf32>
  // CHECK: %[[KEY:.*]], %[[VALUE:.*]] = llm.kv_read %[[C1]], %[[B]] layer 2 : <3 x [k: 2x8xbf16, v: 2x8xbf16]>
  %kc, %vc = llm.kv_read %c1, %b layer 2 : !llm.cache<3 x [k: 2x8xbf16, v: 2x8xbf16]>
  // CHECK: llm.attention %[[Q]], %[[KEY]], %[[VALUE]], %[[B]] heads 8 kv_heads 2 scale 2.500000e-01 keys context : tensor<?x64xf32>, tensor<?x16xf32>
  %gqa = llm.attention %q, %kc, %vc, %b heads 8 kv_heads 2 scale 0.25 keys context
       : tensor<?x64xf32>, tensor<?x16xf32>
  // CHECK: llm.paged_attention %[[Q]], %[[C1]], %[[B]] layer 2 heads 8 scale 2.500000e-01 : tensor<?x64xf32>, <3 x [k: 2x8xbf16, v: 2x8xbf16]>
  %paged = llm.paged_attention %q, %c1, %b layer 2 heads 8 scale 0.25
       : tensor<?x64xf32>, !llm.cache<3 x [k: 2x8xbf16, v: 2x8xbf16]>
  // CHECK: llm.paged_attention {{.*}} scale 2.500000e-01 window 7 : tensor
  %near = llm.paged_attention %q, %c1, %b layer 2 heads 8 scale 0.25 window 7
       : tensor<?x64xf32>, !llm.cache<3 x [k: 2x8xbf16, v: 2x8xbf16]>
  // CHECK: llm.paged_attention {{.*}} window 7 softcap 5.000000e+01 bias %{{.*}} by key origin 0 : tensor<?x64xf32>, <3 x [k: 2x8xbf16, v: 2x8xbf16]>, !llm.weight<8x20xf32>
  %far = llm.paged_attention %q, %c1, %b layer 2 heads 8 scale 0.25 window 7 softcap 50.0 bias %bias by key origin 0
    : tensor<?x64xf32>, !llm.cache<3 x [k: 2x8xbf16, v: 2x8xbf16]>, !llm.weight<8x20xf32>
  return
}

// CHECK-LABEL: func.func @other_heads
// CHECK-SAME:    %[[B:[^ :]*]]: !llm.batch, %[[Q:[^ :]*]]: tensor<?x40xf32>, %[[V:[^ :]*]]: tensor<?x32xf32>, %[[S:[^ :]*]]: !llm.weight<4xf32>, %[[C:[^ :]*]]: !llm.cache<2 x [k: 1x40xbf16, v: 24 of k]>, %[[D:[^ :]*]]: !llm.cache<2 x [k: 4x10xf32, v: 4x8xf32]>
func.func @other_heads(%b: !llm.batch, %q: tensor<?x40xf32>, %v: tensor<?x32xf32>, %s: !llm.weight<4xf32>,
                       %c: !llm.cache<2 x [k: 1x40xbf16, v: 24 of k]>, %d: !llm.cache<2 x [k: 4x10xf32, v: 4x8xf32]>,
                       %a: tensor<?x4xf32>, %w: !llm.weight<4x3x10xf32>) -> tensor<?x96xf32> {
  // CHECK: llm.rope %[[Q]], %{{.*}} heads 4 interleaved first 6 : tensor<?x40xf32>, tensor<?x4xf32>
  %r = llm.rope %q, %a heads 4 interleaved first 6 : tensor<?x40xf32>, tensor<?x4xf32>
  // CHECK: llm.attention %[[Q]], %[[Q]], %[[V]], %[[B]] sinks(%[[S]] : !llm.weight<4xf32>) heads 4 kv_heads 4 scale 2.500000e-01 keys tokens : tensor<?x40xf32>, tensor<?x40xf32> values tensor<?x32xf32>
  %y = llm.attention %q, %q, %v, %b sinks(%s : !llm.weight<4xf32>) heads 4 kv_heads 4 scale 0.25 keys tokens
     : tensor<?x40xf32>, tensor<?x40xf32> values tensor<?x32xf32>
  // CHECK: llm.kv_append %[[D]], %[[Q]], %{{.*}}, %[[B]] layer 1 : <2 x [k: 4x10xf32, v: 4x8xf32]>, tensor<?x40xf32> values tensor<?x32xf32>
  %d1 = llm.kv_append %d, %q, %y, %b layer 1
      : !llm.cache<2 x [k: 4x10xf32, v: 4x8xf32]>, tensor<?x40xf32> values tensor<?x32xf32>
  // CHECK: llm.slice_heads %[[Q]] heads 4 columns 0 to 6 : tensor<?x40xf32>
  %n = llm.slice_heads %q heads 4 columns 0 to 6 : tensor<?x40xf32>
  // CHECK: llm.join_heads %{{.*}}, %[[V]] heads 4 : tensor<?x24xf32>, tensor<?x32xf32>
  %j = llm.join_heads %n, %v heads 4 : tensor<?x24xf32>, tensor<?x32xf32>
  // CHECK: llm.head_linear %[[Q]], %{{.*}} : tensor<?x40xf32>, <4x3x10xf32>
  %h = llm.head_linear %q, %w : tensor<?x40xf32>, !llm.weight<4x3x10xf32>
  // CHECK: llm.paged_attention %{{.*}}, %[[C]], %[[B]] sinks(%[[S]] : !llm.weight<4xf32>) layer 0 heads 4 scale 1.000000e+00 : tensor<?x160xf32>, <2 x [k: 1x40xbf16, v: 24 of k]>
  %rr = llm.repeat_kv %q heads 1 times 4 : tensor<?x40xf32>
  %p = llm.paged_attention %rr, %c, %b sinks(%s : !llm.weight<4xf32>) layer 0 heads 4 scale 1.0
     : tensor<?x160xf32>, !llm.cache<2 x [k: 1x40xbf16, v: 24 of k]>
  return %p : tensor<?x96xf32>
}

// CHECK-LABEL: func.func @experts
// CHECK-SAME:    %[[X:[^ :]*]]: tensor<?x64xf32>
func.func @experts(%x: tensor<?x64xf32>, %scores: tensor<?x8xf32>, %bias: !llm.weight<8xf32>, %w: !llm.weight<8x48x64xf32>,
                   %wb: !llm.weight<384xf32>, %down: !llm.weight<8x64x48xf32>) -> tensor<?x64xf32> {
  // CHECK: %[[P:.*]] = llm.softmax %{{.*}} : tensor<?x8xf32>
  %p = llm.softmax %scores : tensor<?x8xf32>
  // CHECK: %[[C:.*]] = llm.top_k %[[P]] count 2 : tensor<?x8xf32>
  %c = llm.top_k %p count 2 : tensor<?x8xf32>
  // CHECK: llm.top_k %[[P]], %{{.*}} count 2 groups 4 top 2 by largest_two : tensor<?x8xf32>, !llm.weight<8xf32>
  %d = llm.top_k %p, %bias count 2 groups 4 top 2 by largest_two : tensor<?x8xf32>, !llm.weight<8xf32>
  // CHECK: %[[G:.*]] = llm.gather_columns %[[P]], %[[C]] : tensor<?x8xf32>, tensor<?x2xf32>
  %g = llm.gather_columns %p, %c : tensor<?x8xf32>, tensor<?x2xf32>
  // CHECK: %[[N:.*]] = llm.normalise %[[G]] : tensor<?x2xf32>
  %n = llm.normalise %g : tensor<?x2xf32>
  // CHECK: %[[E:.*]] = llm.expert_linear %[[X]], %[[C]], %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<?x2xf32>, <8x48x64xf32>, !llm.weight<384xf32>
  %e = llm.expert_linear %x, %c, %w, %wb : tensor<?x64xf32>, tensor<?x2xf32>, !llm.weight<8x48x64xf32>, !llm.weight<384xf32>
  // CHECK: %[[F:.*]] = llm.expert_linear %[[E]], %[[C]], %{{.*}} : tensor<?x96xf32>, tensor<?x2xf32>, <8x64x48xf32>
  %f = llm.expert_linear %e, %c, %down : tensor<?x96xf32>, tensor<?x2xf32>, !llm.weight<8x64x48xf32>
  // CHECK: llm.combine %[[F]], %[[N]] : tensor<?x128xf32>, tensor<?x2xf32>
  %y = llm.combine %f, %n : tensor<?x128xf32>, tensor<?x2xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @stacks
func.func @stacks(%a: !llm.weight<96x8xf32>, %b: !llm.weight<4x6xf32>) -> (!llm.weight<4x4x24xf32>, !llm.weight<24xf32>) {
  // CHECK: %[[S:.*]] = llm.weight_reshape %{{.*}} : <96x8xf32> to <4x24x8xf32>
  %s = llm.weight_reshape %a : !llm.weight<96x8xf32> to !llm.weight<4x24x8xf32>
  // CHECK: %[[T:.*]] = llm.weight_transpose %[[S]] : <4x24x8xf32>
  %t = llm.weight_transpose %s : !llm.weight<4x24x8xf32>
  // CHECK: llm.weight_slice %[[T]] rows 1 to 2 every 2 : <4x8x24xf32>
  %h = llm.weight_slice %t rows 1 to 2 every 2 : !llm.weight<4x8x24xf32>
  // CHECK: llm.weight_reshape %{{.*}} : <4x6xf32> to <24xf32>
  %v = llm.weight_reshape %b : !llm.weight<4x6xf32> to !llm.weight<24xf32>
  return %h, %v : !llm.weight<4x4x24xf32>, !llm.weight<24xf32>
}

// CHECK-LABEL: func.func @fusion
func.func @fusion(%x: tensor<?x64xf32>, %w: !llm.weight<64xf32>) -> tensor<?x16xf32> {
  // CHECK:      %[[F:.*]]:2 = llm.fused @residual_norm -> tensor<?x64xf32>, tensor<?x64xf32> {
  // CHECK-NEXT:   %[[S:.*]] = llm.add
  // CHECK-NEXT:   %[[N:.*]] = llm.rms_norm %[[S]]
  // CHECK-NEXT:   llm.yield %[[S]], %[[N]] : tensor<?x64xf32>, tensor<?x64xf32>
  // CHECK-NEXT: }
  %f:2 = llm.fused @residual_norm -> tensor<?x64xf32>, tensor<?x64xf32> {
    %s = llm.add %x, %x : tensor<?x64xf32>
    %n = llm.rms_norm %s, %w eps 0.0 : tensor<?x64xf32>, !llm.weight<64xf32>
    llm.yield %s, %n : tensor<?x64xf32>, tensor<?x64xf32>
  }
  // CHECK: llm.slice %[[F]]#1 columns 16 to 32 : tensor<?x64xf32>
  %slice = llm.slice %f#1 columns 16 to 32 : tensor<?x64xf32>
  return %slice : tensor<?x16xf32>
}
