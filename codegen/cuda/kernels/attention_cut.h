// How attention's work is cut into blocks: what plans (host) and kernels (device) both must know.
//
//   split:  one row, one kv head, one run of its group's queries, one of `splits` shares of the
//           spans: share i has spans i, i + splits, ... of those that the row sees
//   tile:   64 or 128 (token, head of the group) pairs of one kv head, and 64 keys at a time
#ifndef TENON_CODEGEN_CUDA_KERNELS_ATTENTION_CUT_H
#define TENON_CODEGEN_CUDA_KERNELS_ATTENTION_CUT_H

#include "codegen/kernels/shapes.h"

#ifdef __CUDACC__
#define TK_BOTH static __forceinline__ __host__ __device__
#else
#define TK_BOTH static inline
#endif

// Warps of a block of the split kernel.
#define TK_SPLIT_WARPS 8

TK_BOTH int32_t tk_divide_up(int32_t a, int32_t b) { return (a + b - 1) / b; }

// Whether keys and values are multiplied by the tensor cores, in the cache's own 16-bit type: rows
// are read 16 bytes at a time.
TK_BOTH bool tk_attention_uses_mma(const tk_attention_shape &s) {
  return s.kv_dtype != TENON_F32 && s.head_dim % 8 == 0 && s.value_dim % 8 == 0;
}

struct tk_split_cut {
  int32_t group;   // queries of a kv head
  int32_t octets;  // of queries that a block takes
  int32_t runs;    // of octets in a group
  int32_t splits;  // shares of the spans
  int32_t across;  // warps that share a row's columns, 64 at a time; the others share positions
  int32_t slices;  // of 64 columns that a warp has; in floats, of 256 that a thread has one of
  int32_t pitch;   // words from one query to the next in shared memory
  int32_t results; // floats from one query's scores, or its results, to the next
  int32_t queryWords;
  int32_t sharedBytes;
};

TK_BOTH tk_split_cut tk_cut_split(const tk_attention_shape &s) {
  tk_split_cut c = {};
  bool mma = tk_attention_uses_mma(s);
  int32_t valueDim = s.value_dim ? s.value_dim : s.head_dim;
  c.group = s.heads / s.kv_heads;
  int32_t octets = tk_divide_up(c.group, 8);
  c.octets = !mma || octets == 1 ? 1 : octets == 2 ? 2 : 4;
  c.runs = tk_divide_up(octets, c.octets);
  c.splits = s.splits > 1 ? s.splits : 1;
  int32_t slices = tk_divide_up(valueDim, 64);
  c.across = slices >= 8 ? 8 : slices >= 4 ? 4 : slices >= 2 ? 2 : 1;
  c.slices = mma ? tk_divide_up(slices, c.across) : tk_divide_up(valueDim, 256);
  // Tensor cores: two 16-bit parts of each query, rows 16 banks apart. Otherwise floats.
  c.pitch = mma ? tk_divide_up(s.head_dim / 2, 32) * 32 + 16 : tk_divide_up(s.head_dim, 4) * 4;
  c.queryWords = 8 * c.octets * c.pitch * (mma ? 2 : 1);
  c.results = TK_SPAN + 4;
  // Where warps share the positions of wide values, their sums meet there.
  if (mma && valueDim > TK_SPAN && c.across < TK_SPLIT_WARPS)
    c.results = valueDim + 4;
  // Queries, scores; maxima, sums, factors.
  c.sharedBytes = 4 * (c.queryWords + 8 * c.octets * (c.results + 3));
  return c;
}

// A result of one share for one query: sums, then their maximum and total.
TK_BOTH int32_t tk_split_floats(const tk_attention_shape &s) {
  return (s.value_dim ? s.value_dim : s.head_dim) + 2;
}

// Keys that a tile takes at a time, and blocks that share the sequences of one tile.
#define TK_TILE_KEYS 64
#define TK_TILE_SHARES 8

struct tk_tile_cut {
  int32_t group;    // queries of a kv head
  int32_t rows;     // of a tile
  int32_t perToken; // rows of one token
  int32_t tokens;   // of a tile
  int32_t runs;     // tiles that a group takes
  int32_t threads;
  int32_t halves;                           // of the columns: warps that share a row
  int32_t slices;                           // of 64 columns that a warp has
  int32_t queryPitch, keyPitch, valuePitch; // words from one row to the next in shared memory
  int32_t sharedBytes;
};

// Where there are tensor cores' types: queries, 64 keys, 64 values as they lie in the cache. The
// pitches keep the 8 lanes that read at a time on different banks.
//
// Otherwise floats: queries, and 64 keys or values, by columns; weights.
TK_BOTH tk_tile_cut tk_cut_tile(const tk_attention_shape &s) {
  tk_tile_cut c = {};
  bool mma = tk_attention_uses_mma(s);
  int32_t valueDim = s.value_dim ? s.value_dim : s.head_dim;
  int32_t slices = tk_divide_up(valueDim, 64);
  c.group = s.heads / s.kv_heads;
  c.rows = mma && slices == 1 ? 128 : 64;
  c.perToken = c.group < c.rows ? c.group : c.rows;
  c.tokens = c.rows / c.perToken;
  c.runs = tk_divide_up(c.group, c.rows);
  c.halves = mma && slices > 4 ? tk_divide_up(slices, 4) : 1;
  c.slices = tk_divide_up(slices, c.halves);
  if (mma) {
    c.threads = 128 * c.halves;
    int32_t words = tk_divide_up(s.head_dim, 32) * 16;
    c.queryPitch = words % 32 ? words : words + 16;
    c.keyPitch = words + 4;
    c.valuePitch = s.values_in_keys ? c.keyPitch : slices * 32 + 8;
    c.sharedBytes = 4 * (c.rows * c.queryPitch +
                         TK_TILE_KEYS * (c.keyPitch + (s.values_in_keys ? 0 : c.valuePitch)));
  } else {
    c.threads = 256;
    c.queryPitch = c.rows + 4;
    c.keyPitch = TK_TILE_KEYS + 4;
    c.valuePitch = slices * 64 + 4;
    int32_t keys = s.head_dim * c.keyPitch, values = TK_TILE_KEYS * c.valuePitch;
    c.sharedBytes = 4 * (s.head_dim * c.queryPitch + (keys > values ? keys : values) +
                         TK_TILE_KEYS * c.queryPitch);
  }
  return c;
}

// Whether tiles serve a shape: there is memory and there are registers enough for them.
TK_BOTH bool tk_attention_has_tiles(const tk_attention_shape &s) {
  int32_t valueDim = s.value_dim ? s.value_dim : s.head_dim;
  return tk_cut_tile(s).sharedBytes <= 160 * 1024 &&
         valueDim <= (tk_attention_uses_mma(s) ? 512 : 256) &&
         (!s.decode || s.keys == TK_KEYS_TOKENS);
}

#endif // TENON_CODEGEN_CUDA_KERNELS_ATTENTION_CUT_H
