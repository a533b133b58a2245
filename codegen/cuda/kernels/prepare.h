// Rows of activations, normed and in the form that weights of a format are multiplied with
// (product_shape.h). A block prepares a row; its warps share the spans: warp w has w, w + warps ...
#ifndef TENON_CODEGEN_CUDA_KERNELS_PREPARE_H
#define TENON_CODEGEN_CUDA_KERNELS_PREPARE_H

#include "norm.h"
#include "product_shape.h"

namespace tk {

// What is multiplied, and what happens to a row before.
struct Prologue {
  int32_t format, parts;
  int64_t cols;
  int32_t norm;
  float eps;
  const float *normWeight, *normBias; // null where absent
};

// Elements c .. c + 7 of a row; zeros behind its end.
struct Eight {
  float v[8];
};
TK_DEVICE Eight loadEight(const float *x, int64_t c, int64_t cols) {
  Eight e;
  if (c + 8 <= cols && (uintptr_t)(x + c) % 16 == 0) {
    Words4 a = loadWords4(x + c), b = loadWords4(x + c + 4);
    TK_UNROLL
    for (int i = 0; i < 4; ++i) {
      e.v[i] = bitsToFloat(a.w[i]);
      e.v[4 + i] = bitsToFloat(b.w[i]);
    }
  } else {
    TK_UNROLL
    for (int i = 0; i < 8; ++i)
      e.v[i] = c + i < cols ? x[c + i] : 0;
  }
  return e;
}

// Calls f(span) for the spans of this warp.
template <class F> TK_DEVICE void forEachSpan(int64_t cols, F f) {
  for (int64_t span = warp(); span < tk_spans(cols); span += warps())
    f(span);
}

// Calls f(first column, step, inside) for this lane's runs of 8 columns of a span. All lanes of a
// step take part together; the steps of some lanes may lie behind the span, where `inside` is
// false.
template <class F> TK_DEVICE void forEachRun(int64_t cols, int64_t span, F f) {
  int64_t end = tk_span_end(cols, span);
  for (int64_t s = span * tk_span_steps(cols); s < end; s += 8) {
    int64_t step = s + lane() / 4;
    f(step * TK_GROUP + 8 * (lane() % 4), step, step < end);
  }
}

// `space` has two floats for each span.
TK_DEVICE NormOfRow measureRow(const Prologue &p, const float *x, float *space) {
  if (p.norm == TK_NORM_NONE)
    return {0, 1};
  return measure(p.norm, p.eps, p.cols, [&](auto f, int pass) {
    float *sums = space + pass * tk_spans(p.cols);
    forEachSpan(p.cols, [&](int64_t span) {
      float sum = 0;
      forEachRun(p.cols, span, [&](int64_t c, int64_t, bool inside) {
        if (!inside)
          return;
        Eight e = loadEight(x, c, p.cols);
        TK_UNROLL
        for (int i = 0; i < 8; ++i)
          if (c + i < p.cols)
            sum += f(e.v[i]);
      });
      sum = warpSum(sum);
      if (lane() == 0)
        sums[span] = sum;
    });
    sync();
    float sum = 0;
    for (int64_t span = 0; span < tk_spans(p.cols); ++span)
      sum += sums[span];
    return sum;
  });
}

TK_DEVICE Eight loadNormed(const Prologue &p, NormOfRow n, const float *x, int64_t c) {
  Eight e = loadEight(x, c, p.cols);
  if (p.norm == TK_NORM_NONE)
    return e;
  Eight w = loadEight(p.normWeight, c, p.cols), b = {};
  if (p.normBias)
    b = loadEight(p.normBias, c, p.cols);
  TK_UNROLL
  for (int i = 0; i < 8; ++i)
    e.v[i] = c + i < p.cols ? normed(p.norm, n, e.v[i], w.v[i], b.v[i]) : 0;
  return e;
}

// The bits of the largest magnitude. In integers a NaN is larger than any number, and so is not
// lost.
TK_DEVICE int32_t largestBits(const Eight &e) {
  int32_t largest = 0;
  TK_UNROLL
  for (int i = 0; i < 8; ++i) {
    int32_t bits = int32_t(floatToBits(e.v[i]) & 0x7fffffff);
    largest = bits > largest ? bits : largest;
  }
  return largest;
}
TK_DEVICE int32_t largestOfLanes(int32_t bits, int lanes) {
  TK_UNROLL
  for (int mask = 1; mask < 32; mask *= 2)
    if (mask < lanes) {
      int32_t other = shuffleXor(bits, mask);
      bits = other > bits ? other : bits;
    }
  return bits;
}

// Codes in -127 .. 127 with one scale for each step of 32.
TK_DEVICE void writeCodes(int32_t format, const Eight &e, bool inside, char *codes,
                          float *numbers) {
  constexpr float Magic = 12582912; // adding it rounds to an integer
  constexpr int32_t MagicBits = 0x4b400000;
  float largest = bitsToFloat((uint32_t)largestOfLanes(largestBits(e), 4));
  float inverse = largest > 0 ? 127.0f / largest : 0, scale = largest * (1.0f / 127);
  int32_t sum = 0;
  uint32_t words[2] = {0, 0};
  TK_UNROLL
  for (int i = 0; i < 8; ++i) {
    int32_t code = int32_t(floatToBits(e.v[i] * inverse + Magic)) - MagicBits;
    sum += code;
    words[i / 4] |= (uint32_t(code) & 0xff) << i % 4 * 8;
  }
  const int t = lane() % 4;
  int32_t half = sum + shuffleXor(sum, 1), other = shuffleXor(half, 2);
  if (!inside)
    return;
  *(Words2 *)(codes + 8 * t) = {{words[0], words[1]}};
  if (t > 0)
    return;
  numbers[0] = scale;
  if (tk_step_numbers(format) == 4) {
    numbers[1] = scale * (float)half;
    numbers[2] = scale * (float)other;
    numbers[3] = 0;
  } else {
    numbers[1] = scale * (float)(half + other);
  }
}

// 16-bit parts whose sum is the elements, each `stride` bytes behind the one before.
TK_DEVICE void writeParts(int32_t format, int32_t parts, Eight e, char *out, int64_t stride) {
  TK_UNROLL
  for (int part = 0; part < 3; ++part) {
    if (part >= parts)
      break;
    Words4 words;
    TK_UNROLL
    for (int i = 0; i < 4; ++i) {
      uint16_t bits[2];
      TK_UNROLL
      for (int k = 0; k < 2; ++k) {
        float &v = e.v[2 * i + k];
        bits[k] = format == TK_BF16_ROWS ? floatToBf16(v) : floatToHalf(v);
        v -= format == TK_BF16_ROWS ? bf16ToFloat(bits[k]) : halfToFloat(bits[k]);
      }
      words.w[i] = pack(bits[0], bits[1]);
    }
    storeWords4(out + part * stride, words);
  }
}

// Of a span of a row, by one warp.
TK_DEVICE int32_t largestOfSpan(const Prologue &p, NormOfRow n, const float *x, int64_t span) {
  int32_t bits = 0;
  forEachRun(p.cols, span, [&](int64_t c, int64_t, bool inside) {
    int32_t other = inside ? largestBits(loadNormed(p, n, x, c)) : 0;
    bits = other > bits ? other : bits;
  });
  return largestOfLanes(bits, 32);
}

// The power of two that brings the largest element of a span to 2^13 or little more, as the bits of
// a float; `bits` are those of the element.
TK_DEVICE uint32_t halfFactor(int32_t bits) {
  int32_t exponent = 127 + 13 + 127 - (bits >> 23);
  return uint32_t(bits == 0 ? 127 : exponent > 227 ? 227 : exponent) << 23;
}

// Writes a span of a row, which is row `at` of a panel of Rows rows; by one warp.
template <int Rows>
TK_DEVICE void prepareSpan(const Prologue &p, NormOfRow n, const float *x, int64_t span,
                           char *panel, int at) {
  const int64_t bytes = tk_step_bytes(p.format, p.parts) * Rows;
  float factor = 1;
  if (p.format == TK_F16_ROWS) {
    factor = bitsToFloat(halfFactor(largestOfSpan(p, n, x, span)));
    if (lane() == 0)
      ((float *)(panel + tk_steps(p.cols) * bytes))[span * Rows + at] = 1.0f / factor;
  }
  forEachRun(p.cols, span, [&](int64_t c, int64_t step, bool inside) {
    Eight e = {};
    if (inside)
      e = loadNormed(p, n, x, c);
    char *out = panel + step * bytes;
    const int t = lane() % 4;
    if (tk_is_quantised(p.format)) {
      writeCodes(p.format, e, inside, out + at * TK_GROUP,
                 (float *)(out + Rows * TK_GROUP) + at * tk_step_numbers(p.format));
    } else if (!inside) {
      return;
    } else if (p.format == TK_F32) {
      TK_UNROLL
      for (int i = 0; i < 8; i += 4)
        storeWords4(out + at * TK_GROUP * 4 + 32 * t + 4 * i,
                    {{floatToBits(e.v[i]), floatToBits(e.v[i + 1]), floatToBits(e.v[i + 2]),
                      floatToBits(e.v[i + 3])}});
    } else {
      TK_UNROLL
      for (int i = 0; i < 8; ++i)
        e.v[i] *= factor;
      writeParts(p.format, p.parts, e, out + at * 64 + 16 * t, Rows * 64);
    }
  });
}

// Row `row` of the panels of 8 in the workspace.
TK_DEVICE void prepareRow(const Prologue &p, const float *x, char *panels, int64_t row) {
  NormOfRow n = measureRow(p, x, (float *)shared());
  char *panel =
      panels + row / TK_PANEL_ROWS * TK_PANEL_ROWS * tk_prepared_bytes(p.format, p.parts, p.cols);
  forEachSpan(p.cols, [&](int64_t span) {
    prepareSpan<TK_PANEL_ROWS>(p, n, x, span, panel, int(row % TK_PANEL_ROWS));
  });
}

} // namespace tk

#endif // TENON_CODEGEN_CUDA_KERNELS_PREPARE_H
