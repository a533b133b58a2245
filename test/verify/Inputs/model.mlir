// A whole model of two layers as the frontend writes it, with grouped heads.
module attributes {llm.context = 64 : i64, llm.model = "small", llm.vocab = 101 : i64} {
  func.func @main(%b: !llm.batch) -> (tensor<?x101xf32> {llm.result = "logits"}) {
    %table = llm.weight "embed" : <101x32xbf16>
    %x = llm.embedding %b, %table : <101x32xbf16>
    %f = llm.rope_frequencies dim 8 theta 1.0e+04
    %angles = llm.rope_angles %b, %f : <4xf64>

    %n0 = llm.weight "0.norm" : <32xbf16>
    %y0 = llm.rms_norm %x, %n0 eps 1.0e-05 : tensor<?x32xf32>, !llm.weight<32xbf16>
    %wq0 = llm.weight "0.q" : <32x32xq4_1>
    %q0 = llm.linear %y0, %wq0 : tensor<?x32xf32>, <32x32xq4_1>
    %qr0 = llm.rope %q0, %angles heads 4 half : tensor<?x32xf32>, tensor<?x8xf32>
    %wk0 = llm.weight "0.k" : <16x32xq4_1>
    %k0 = llm.linear %y0, %wk0 : tensor<?x32xf32>, <16x32xq4_1>
    %kr0 = llm.rope %k0, %angles heads 2 half : tensor<?x16xf32>, tensor<?x8xf32>
    %kh0 = llm.repeat_kv %kr0 heads 2 times 2 : tensor<?x16xf32>
    %wv0 = llm.weight "0.v" : <16x32xq4_1>
    %v0 = llm.linear %y0, %wv0 : tensor<?x32xf32>, <16x32xq4_1>
    %vh0 = llm.repeat_kv %v0 heads 2 times 2 : tensor<?x16xf32>
    %a0 = llm.attention %qr0, %kh0, %vh0, %b heads 4 kv_heads 4 scale 0.353553 keys tokens : tensor<?x32xf32>, tensor<?x32xf32>
    %wo0 = llm.weight "0.o" : <32x32xbf16>
    %o0 = llm.linear %a0, %wo0 : tensor<?x32xf32>, <32x32xbf16>
    %s0 = llm.add %x, %o0 : tensor<?x32xf32>
    %m0 = llm.weight "0.mlp_norm" : <32xbf16>
    %z0 = llm.rms_norm %s0, %m0 eps 1.0e-05 : tensor<?x32xf32>, !llm.weight<32xbf16>
    %wg0 = llm.weight "0.gate" : <64x32xq8_0>
    %g0 = llm.linear %z0, %wg0 : tensor<?x32xf32>, <64x32xq8_0>
    %ga0 = llm.activation silu %g0 : tensor<?x64xf32>
    %wu0 = llm.weight "0.up" : <64x32xq8_0>
    %u0 = llm.linear %z0, %wu0 : tensor<?x32xf32>, <64x32xq8_0>
    %p0 = llm.mul %ga0, %u0 : tensor<?x64xf32>
    %wd0 = llm.weight "0.down" : <32x64xf16>
    %d0 = llm.linear %p0, %wd0 : tensor<?x64xf32>, <32x64xf16>
    %x1 = llm.add %s0, %d0 : tensor<?x32xf32>

    %n1 = llm.weight "1.norm" : <32xbf16>
    %y1 = llm.rms_norm %x1, %n1 eps 1.0e-05 : tensor<?x32xf32>, !llm.weight<32xbf16>
    %wq1 = llm.weight "1.q" : <32x32xq4_1>
    %q1 = llm.linear %y1, %wq1 : tensor<?x32xf32>, <32x32xq4_1>
    %qr1 = llm.rope %q1, %angles heads 4 half : tensor<?x32xf32>, tensor<?x8xf32>
    %wk1 = llm.weight "1.k" : <16x32xq4_1>
    %k1 = llm.linear %y1, %wk1 : tensor<?x32xf32>, <16x32xq4_1>
    %kr1 = llm.rope %k1, %angles heads 2 half : tensor<?x16xf32>, tensor<?x8xf32>
    %kh1 = llm.repeat_kv %kr1 heads 2 times 2 : tensor<?x16xf32>
    %wv1 = llm.weight "1.v" : <16x32xq4_1>
    %v1 = llm.linear %y1, %wv1 : tensor<?x32xf32>, <16x32xq4_1>
    %vh1 = llm.repeat_kv %v1 heads 2 times 2 : tensor<?x16xf32>
    %a1 = llm.attention %qr1, %kh1, %vh1, %b heads 4 kv_heads 4 scale 0.353553 keys tokens : tensor<?x32xf32>, tensor<?x32xf32>
    %wo1 = llm.weight "1.o" : <32x32xbf16>
    %o1 = llm.linear %a1, %wo1 : tensor<?x32xf32>, <32x32xbf16>
    %s1 = llm.add %x1, %o1 : tensor<?x32xf32>

    %n = llm.weight "norm" : <32xbf16>
    %y = llm.rms_norm %s1, %n eps 1.0e-05 : tensor<?x32xf32>, !llm.weight<32xbf16>
    %l = llm.linear %y, %table : tensor<?x32xf32>, <101x32xbf16>
    return %l : tensor<?x101xf32>
  }
}
