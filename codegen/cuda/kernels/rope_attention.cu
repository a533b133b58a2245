// tk_rope_attention (decode): rotates q and k, appends k and v, attends. The block that reads the
// last span of a kv head appends first. Where several read it, a launch before them appends.
#include "attend_split.h"
#include "rotate.h"

namespace tk {

TK_DEVICE AttentionOperands operandsOf(const tk_rope_attention_shape &s, const tk_args &args) {
  int32_t next = 5;
  AttentionOperands io = {
      (const float *)args.io[0], args.io[4], nullptr, nullptr, nullptr, nullptr, nullptr};
  io.bias = s.attention.bias ? (const float *)args.io[next++] : nullptr;
  io.sinks = s.attention.sinks ? (const float *)args.io[next++] : nullptr;
  io.out = (float *)args.io[next];
  return io;
}

// The key and value of one row and kv head, by a block with shared memory for the rotated key.
TK_DEVICE void appendRotated(const tk_rope_attention_shape &s, const tk_args &args, int64_t row,
                             int64_t head, float *rotated) {
  const Cache cache = cacheOf(s.attention, args.io[4], args);
  const tenon_batch &batch = *args.batch;
  const float *k = (const float *)args.io[1] + row * s.k_stride + head * cache.headDim;
  const float *v = (const float *)args.io[2] + row * s.v_stride + head * cache.valueDim;
  const float *angles = (const float *)args.io[3] + row * s.angles_stride;
  int32_t position = batch.positions[row], slot = position % TENON_BLOCK_TOKENS;
  int64_t block = tk_blocks_of(&batch, batch.sequence_of[row])[position / TENON_BLOCK_TOKENS];
  for (int32_t i = threadIndex(); i < cache.headDim - s.rotary_dim / 2; i += threadCount())
    rotatePiece(s.style, s.rotary_dim, k, angles, i, [&](int32_t d, float x) { rotated[d] = x; });
  sync();
  storeRow(cache.dtype, cache.key(head, block, slot), cache.headDim,
           [&](int64_t d) { return rotated[d]; });
  if (!cache.valuesInKeys)
    storeRow(cache.dtype, cache.value(head, block, slot), cache.valueDim,
             [&](int64_t d) { return v[d]; });
}

} // namespace tk

TK_DEVICE void tk_rope_attention_append(const tk_rope_attention_shape &s, const tk_args &args) {
  tk::appendRotated(s, args, tk::blockY(), tk::blockX(), (float *)tk::shared());
}

TK_DEVICE void tk_rope_attention_split(const tk_rope_attention_shape &s, const tk_args &args) {
  using namespace tk;
  const tk_attention_shape &base = s.attention;
  AttentionOperands io = operandsOf(s, args);
  attendSplit(base, io, args,
              [&](const Split &w, int64_t row, int64_t head, int64_t firstHead, bool appends) {
                const float *angles = (const float *)args.io[3] + row * s.angles_stride;
                const float *q = io.q + row * base.q_stride + firstHead * base.head_dim;
                int32_t pieces = base.head_dim - s.rotary_dim / 2;
                for (int32_t i = threadIndex(); i < w.queries * pieces; i += threadCount())
                  rotatePiece(s.style, s.rotary_dim, q + i / pieces * base.head_dim, angles,
                              i % pieces,
                              [&](int32_t d, float value) { w.setQuery(i / pieces, d, value); });
                if (appends) // where there are no scores yet
                  appendRotated(s, args, row, head, w.scores);
              });
}

TK_DEVICE void tk_rope_attention_merge(const tk_rope_attention_shape &s, const tk_args &args) {
  tk::mergeShares(s.attention, tk::operandsOf(s, args), args);
}
