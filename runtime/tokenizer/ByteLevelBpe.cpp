// Byte-level byte pair encoding: every word is a sequence of bytes, so that there are no unknown
// characters.
#include "runtime/tokenizer/BytePairMerge.h"

namespace tenon::rt {

namespace {
class ByteLevelBpe : public Model {
public:
  explicit ByteLevelBpe(const BlobView &view)
      : view(view), unknown(view.header->unknown),
        ignoreMerges(view.header->modelFlags & blob::IgnoreMerges),
        fuseUnknown(view.header->modelFlags & blob::FuseUnknown) {
    for (int byte = 0; byte < 256; ++byte) {
      char text = char(byte);
      byteIds[byte] = view.findToken({&text, 1}); // kEmpty is -1: not in the vocabulary
    }
  }

  void encode(std::string_view word, std::vector<WordToken> &out) const override {
    uint32_t whole = view.findToken(word);
    if (whole != blob::kEmpty && (ignoreMerges || (view.tokenFlags[whole] & blob::Reachable))) {
      out.push_back({int32_t(whole), 0, uint32_t(word.size())});
      return;
    }
    size_t first = out.size();
    for (uint32_t i = 0; i < word.size(); ++i) {
      int32_t id = byteIds[uint8_t(word[i])];
      if (id >= 0)
        out.push_back({id, i, i + 1});
      else
        appendUnknown(out, first, i);
    }
    out.resize(first + mergePairs(view, out.data() + first, out.size() - first));
  }

private:
  /// A vocabulary without some byte and without an unknown token loses that byte.
  void appendUnknown(std::vector<WordToken> &out, size_t first, uint32_t i) const {
    if (unknown < 0)
      return;
    if (fuseUnknown && out.size() > first && out.back().id == unknown && out.back().end == i)
      out.back().end = i + 1;
    else
      out.push_back({unknown, i, i + 1});
  }

  const BlobView &view;
  int32_t byteIds[256];
  int32_t unknown;
  bool ignoreMerges, fuseUnknown;
};
} // namespace

std::unique_ptr<Model> makeByteLevelBpe(const BlobView &view) {
  return std::make_unique<ByteLevelBpe>(view);
}

} // namespace tenon::rt
