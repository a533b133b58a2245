// tk_attention: paged attention with causal visibility by position, grouped queries, an optional
// window, softcap and score bias; over an encoder's memory, and bidirectional over the batch's own
// rows.
#include "attend_float_tile.h"
#include "attend_split.h"
#include "attend_tensor_tile.h"

namespace tk {

TK_DEVICE AttentionOperands operandsOf(const tk_attention_shape &s, const tk_args &args) {
  bool cached = s.keys != TK_KEYS_TOKENS;
  int32_t next = cached ? 2 : 3;
  AttentionOperands io = {(const float *)args.io[0],
                          cached ? args.io[1] : nullptr,
                          cached ? nullptr : (const float *)args.io[1],
                          cached ? nullptr : (const float *)args.io[2],
                          nullptr,
                          nullptr,
                          nullptr};
  io.bias = s.bias ? (const float *)args.io[next++] : nullptr;
  io.sinks = s.sinks ? (const float *)args.io[next++] : nullptr;
  io.out = (float *)args.io[next];
  return io;
}

} // namespace tk

TK_DEVICE void tk_attention_split(const tk_attention_shape &s, const tk_args &args) {
  using namespace tk;
  AttentionOperands io = operandsOf(s, args);
  attendSplit(s, io, args, [&](const Split &w, int64_t row, int64_t, int64_t firstHead, bool) {
    const float *q = io.q + row * s.q_stride + firstHead * s.head_dim;
    for (int32_t i = threadIndex(); i < w.queries * s.head_dim; i += threadCount())
      w.setQuery(i / s.head_dim, i % s.head_dim, q[i]);
  });
}

TK_DEVICE void tk_attention_merge(const tk_attention_shape &s, const tk_args &args) {
  tk::mergeShares(s, tk::operandsOf(s, args), args);
}

TK_DEVICE void tk_attention_tile(const tk_attention_shape &s, const tk_args &args) {
  using namespace tk;
  AttentionOperands io = operandsOf(s, args);
  Tile tile = tileOf(s, io, args);
  if (!tile.ownsAny())
    return;
  auto attend = [&](auto work) { work.run(); };
  if (tk_attention_uses_mma(s))
    switch (tile.cut.slices) {
    case 1:
      return attend(TensorTile<2, 1>(tile));
    case 2:
      return attend(TensorTile<1, 2>(tile));
    case 3:
      return attend(TensorTile<1, 3>(tile));
    default:
      return attend(TensorTile<1, 4>(tile));
    }
  switch (tile.cut.slices) {
  case 1:
    return attend(FloatTile<1>(tile));
  case 2:
    return attend(FloatTile<2>(tile));
  case 3:
    return attend(FloatTile<3>(tile));
  default:
    return attend(FloatTile<4>(tile));
  }
}
