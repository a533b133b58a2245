// tk_embedding: gathers rows of tokens, positions or types from the packed table, which, for
// tokens, is the copy that a tied output head multiplies with. A token for each y, an element for
// each thread.
#include "reduce.h"

namespace tk {

TK_DEVICE float embeddingElement(int32_t format, int64_t cols, const char *tile, int64_t lane,
                                 int64_t column) {
  if (format == TK_F32)
    return ((const float *)tile)[column * 16 + lane];
  if (tk_is_rows(format)) {
    uint16_t bits = ((const uint16_t *)tile)[lane * cols + column];
    return format == TK_BF16_ROWS ? bf16ToFloat(bits) : halfToFloat(bits);
  }
  const char *group = tile + column / TK_GROUP * tk_group_bytes(format);
  int64_t c = column % TK_GROUP;
  const char *scales = group + tk_half_scales(format, c / 16);
  const uint8_t *codes = (const uint8_t *)group + tk_scale_bytes(format) + lane * 4 + c % 4;
  int code = tk_has_nibbles(format) ? codes[c / 8 * 64] >> (c % 8 / 4 * 4) & 15 : codes[c / 4 * 64];
  if (tk_has_min(format)) {
    const uint16_t *halves = (const uint16_t *)scales;
    return halfToFloat(halves[lane]) * (float)code + halfToFloat(halves[16 + lane]);
  }
  return ((const float *)scales)[lane] * (float)(code - 128);
}

} // namespace tk

TK_DEVICE void tk_embedding(const tk_embedding_shape &s, const tk_args &args) {
  const tenon_batch &batch = *args.batch;
  const int32_t *index = s.index == TK_INDEX_POSITIONS ? batch.positions
                         : s.index == TK_INDEX_TYPES   ? batch.types
                                                       : batch.ids;
  int64_t id = (int64_t)index[tk::blockY()] + s.offset;
  const char *tile = (const char *)args.io[0] + id / TK_TILE_ROWS * tk_tile_bytes(s.format, s.cols);
  float *out = (float *)args.io[1] + tk::blockY() * s.out_stride;
  int64_t step = tk::gridX() * tk::threadCount();
  for (int64_t c = tk::blockX() * tk::threadCount() + tk::threadIndex(); c < s.cols; c += step)
    out[c] = s.scale * tk::embeddingElement(s.format, tk_padded_cols(s.format, s.cols), tile,
                                            id % TK_TILE_ROWS, c);
}
