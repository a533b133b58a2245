#include "frontend/tokenizer/TokenizerSpec.h"

#include "runtime/tokenizer/ByteAlphabet.h"
#include "runtime/tokenizer/Utf8.h"

using llvm::StringRef;
using namespace tenon::rt::blob;

namespace tenon {

llvm::Error MergeResolver::addMerge(TokenizerSpec &spec, StringRef left, StringRef right) const {
  std::string merged = (left + right).str();
  uint32_t found[3];
  const StringRef parts[3] = {left, right, merged};
  for (int i = 0; i < 3; ++i) {
    auto entry = ids.find(parts[i]);
    if (entry == ids.end())
      return llvm::createStringError("merge " + std::to_string(spec.merges.size()) + " joins '" +
                                     left + "' and '" + right + "', but '" + parts[i] +
                                     "' is not in the vocabulary");
    found[i] = entry->second;
  }
  spec.merges.push_back({found[0], found[1], found[2]});
  return llvm::Error::success();
}

llvm::Error MergeResolver::addMerge(TokenizerSpec &spec, StringRef pair) const {
  size_t space = pair.find(' ', 1);
  if (space == StringRef::npos || pair.find(' ', space + 1) != StringRef::npos)
    return llvm::createStringError("merge " + std::to_string(spec.merges.size()) + " is '" + pair +
                                   "'; accepted: two tokens with a space between");
  return addMerge(spec, pair.take_front(space), pair.drop_front(space + 1));
}

static TokenizerSpec::Token &tokenAt(TokenizerSpec &spec, uint32_t id) {
  if (id >= spec.tokens.size())
    spec.tokens.resize(id + 1);
  return spec.tokens[id];
}

void setByteLevelToken(TokenizerSpec &spec, uint32_t id, StringRef written) {
  std::optional<std::string> bytes;
  if (rt::isValidUtf8(written))
    bytes = rt::fromByteAlphabet(written);
  if (bytes)
    tokenAt(spec, id) = {*bytes, 0, !bytes->empty()};
  else
    tokenAt(spec, id) = {written.str(), Verbatim, false};
}

void setAddedToken(TokenizerSpec &spec, uint32_t id, StringRef content, bool special,
                   uint32_t flags, bool normalised, StringRef searched) {
  TokenizerSpec::Token &token = tokenAt(spec, id);
  // One of the vocabulary stays there too, if it is written as it reads.
  bool fromText = token.fromText && token.bytes == content;
  token = {content.str(), uint8_t(Added | (special ? Special : 0)), fromText};
  spec.added.push_back({id, flags, normalised, (normalised ? searched : content).str()});
}

} // namespace tenon
