// tk_embedding: gathers rows of tokens, positions or types from the packed table, which, for
// tokens, is the copy that a tied output head multiplies with. Row r of a tile is lane r of every
// line.
#include "isa.h"

namespace {

TK_INLINE float scalarHalf(const uint8_t *p) {
  HalfVec h = 0;
  h[0] = loadAs<uint16_t>(p);
  return fromHalf(h)[0];
}

// Elements 0 .. count - 1 of group (32 columns) g.
TK_INLINE void gatherGroup(int32_t format, const uint8_t *group, int lane, int64_t count,
                           float scale, float *out) {
  const uint8_t *codes = group + tk_scale_bytes(format);
  bool hasMin = tk_has_min(format);
  float scales[2], mins[2];
  for (int half = 0; half < 2; ++half) {
    const uint8_t *own = group + tk_half_scales(format, half);
    scales[half] = hasMin ? scalarHalf(own + 2 * lane) : loadAs<float>(own + 4 * lane);
    mins[half] = hasMin ? scalarHalf(own + 32 + 2 * lane) : 0;
  }
  for (int64_t i = 0; i < count; ++i) {
    int code;
    if (tk_has_nibbles(format))
      code = codes[i / 8 * 64 + lane * 4 + i % 4] >> (i % 8 / 4 * 4) & 15;
    else
      code = codes[i / 4 * 64 + lane * 4 + i % 4];
    if (!hasMin)
      code -= 128;
    out[i] = scale * (scales[i / 16] * (float)code + mins[i / 16]);
  }
}

} // namespace

TK_KERNEL(tk_embedding) {
  const auto &s = *(const tk_embedding_shape *)shape;
  const uint8_t *table = (const uint8_t *)io[0];
  float *out = (float *)io[1];
  const tenon_batch &batch = *env->batch;
  const int32_t *index = s.index == TK_INDEX_POSITIONS ? batch.positions
                         : s.index == TK_INDEX_TYPES   ? batch.types
                                                       : batch.ids;
  Range share = shareOf(batch.tokens, env);
  for (int64_t t = share.begin; t < share.end; ++t) {
    int64_t id = (int64_t)index[t] + s.offset;
    int lane = (int)(id % TK_TILE_ROWS);
    const uint8_t *tile = table + id / TK_TILE_ROWS * tk_tile_bytes(s.format, s.cols);
    float *row = out + t * s.out_stride;
    if (tk_is_quantised(s.format)) {
      for (int64_t c = 0; c < s.cols; c += TK_GROUP)
        gatherGroup(s.format, tile + c / TK_GROUP * tk_group_bytes(s.format), lane,
                    least(TK_GROUP, s.cols - c), s.scale, row + c);
    } else if (s.format == TK_F32) {
      for (int64_t c = 0; c < s.cols; ++c)
        row[c] = s.scale * loadAs<float>(tile + (c * 16 + lane) * 4);
    } else {
      for (int64_t c = 0; c < s.cols; ++c) {
        const uint8_t *p = tile + (c / 2 * 32 + lane * 2 + c % 2) * 2;
        row[c] = s.scale * (s.format == TK_BF16 ? floatOf((uint32_t)loadAs<uint16_t>(p) << 16)
                                                : scalarHalf(p));
      }
    }
  }
}
