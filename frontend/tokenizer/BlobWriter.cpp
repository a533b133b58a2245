// TokenizerSpec -> the bytes that the runtime maps (runtime/tokenizer/Blob.h).
#include "frontend/tokenizer/TokenizerSpec.h"
#include "runtime/tokenizer/Stages.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <algorithm>
#include <map>

using llvm::StringRef;
using namespace tenon::rt::blob;

namespace tenon {

constexpr uint64_t kMaxTokenBytes = 256 << 20;

namespace {
class BlobWriter {
public:
  explicit BlobWriter(const TokenizerSpec &spec) : spec(spec), bytes(sizeof(Header)) {}

  std::vector<uint8_t> write();

private:
  template <typename T> void section(Section index, const std::vector<T> &values) {
    bytes.resize((bytes.size() + 7) / 8 * 8);
    header.sections[index] = {bytes.size(), values.size() * sizeof(T)};
    auto *data = reinterpret_cast<const uint8_t *>(values.data());
    bytes.insert(bytes.end(), data, data + values.size() * sizeof(T));
  }

  void writeTokens();
  void writeTokenHash();
  void writeMergeHash();
  void writeAdded();
  std::vector<TrieNode> makeTrie(bool normalised) const;
  void writeSteps(Section index, const std::vector<TokenizerSpec::Step> &steps);

  const TokenizerSpec &spec;
  Header header{};
  std::vector<uint8_t> bytes;
  std::vector<char> strings;
};
} // namespace

static int32_t idOrNone(std::optional<uint32_t> id) { return id ? int32_t(*id) : -1; }

std::vector<uint8_t> BlobWriter::write() {
  std::copy(std::begin(kMagic), std::end(kMagic), header.magic);
  header.version = kVersion;
  header.model = spec.model;
  header.bos = idOrNone(spec.bos);
  header.eos = idOrNone(spec.eos);
  header.unknown = idOrNone(spec.unknown);
  header.modelFlags = spec.modelFlags;
  header.postFlags = spec.postFlags;
  writeTokens();
  writeTokenHash();
  writeMergeHash();
  writeAdded();
  writeSteps(Normalise, spec.normalise);
  writeSteps(Split, spec.split);
  section(Single, spec.single);
  section(Pair, spec.pair);
  section(Strings, strings);
  header.bytes = bytes.size();
  std::memcpy(bytes.data(), &header, sizeof(header));
  return std::move(bytes);
}

void BlobWriter::writeTokens() {
  std::vector<uint32_t> offsets = {0};
  std::vector<uint8_t> flags;
  for (const TokenizerSpec::Token &token : spec.tokens) {
    strings.insert(strings.end(), token.bytes.begin(), token.bytes.end());
    offsets.push_back(strings.size());
    flags.push_back(token.flags);
  }
  section(TokenOffsets, offsets);
  section(rt::blob::TokenFlags, flags);
}

/// Half full: a search that finds nothing looks at 2.5 slots on average. Of equal tokens the first
/// that is not an added token is the one.
void BlobWriter::writeTokenHash() {
  std::vector<TokenSlot> slots(2 * spec.tokens.size() + 1, {0, kEmpty});
  for (bool added : {false, true})
    for (uint32_t id = 0; id < spec.tokens.size(); ++id) {
      const TokenizerSpec::Token &token = spec.tokens[id];
      if (!token.fromText || bool(token.flags & Added) != added)
        continue;
      uint64_t hash = hashBytes(token.bytes);
      size_t slot = firstSlot(hash, slots.size());
      while (slots[slot].id != kEmpty && spec.tokens[slots[slot].id].bytes != token.bytes)
        slot = (slot + 1) % slots.size();
      if (slots[slot].id == kEmpty)
        slots[slot] = {uint32_t(hash), id};
    }
  section(TokenHash, slots);
}

void BlobWriter::writeMergeHash() {
  std::vector<MergeSlot> slots(2 * spec.merges.size() + 1, {kEmpty, 0, 0, 0});
  for (uint32_t rank = 0; rank < spec.merges.size(); ++rank) {
    const TokenizerSpec::Merge &merge = spec.merges[rank];
    size_t slot = firstSlot(hashPair(merge.left, merge.right), slots.size());
    auto isOther = [&](const MergeSlot &s) {
      return s.left != kEmpty && (s.left != merge.left || s.right != merge.right);
    };
    while (isOther(slots[slot]))
      slot = (slot + 1) % slots.size();
    slots[slot] = {merge.left, merge.right, rank, merge.merged}; // of equal merges the last counts
  }
  section(MergeHash, slots);
}

void BlobWriter::writeAdded() {
  std::vector<AddedToken> added;
  for (const TokenizerSpec::Added &token : spec.added)
    added.push_back({token.id, token.flags});
  section(AddedTokens, added);
  section(RawTrie, makeTrie(false));
  section(NormalTrie, makeTrie(true));
}

/// Breadth first over the sorted strings: a node is a range of strings that share `depth` bytes.
std::vector<TrieNode> BlobWriter::makeTrie(bool normalised) const {
  std::vector<std::pair<StringRef, int32_t>> entries;
  for (size_t i = 0; i < spec.added.size(); ++i) {
    const TokenizerSpec::Added &added = spec.added[i];
    if (added.normalised == normalised && !added.text.empty())
      entries.push_back({added.text, int32_t(i)});
  }
  if (entries.empty())
    return {};
  llvm::sort(entries);

  struct Open {
    size_t begin, end, depth;
  };
  std::vector<TrieNode> nodes = {{0, 0, 0, 0, -1}};
  std::vector<Open> open = {{0, entries.size(), 0}};
  for (size_t i = 0; i < nodes.size(); ++i) {
    auto [at, end, depth] = open[i];
    for (; at < end && entries[at].first.size() == depth; ++at)
      if (nodes[i].added < 0) // the first of several equal tokens is the one
        nodes[i].added = entries[at].second;
    nodes[i].firstChild = nodes.size();
    while (at < end) {
      char byte = entries[at].first[depth];
      size_t stop = at;
      while (stop < end && entries[stop].first[depth] == byte)
        ++stop;
      nodes.push_back({0, 0, uint8_t(byte), 0, -1});
      open.push_back({at, stop, depth + 1});
      ++nodes[i].children;
      at = stop;
    }
  }
  return nodes;
}

void BlobWriter::writeSteps(Section index, const std::vector<TokenizerSpec::Step> &steps) {
  std::vector<Step> written;
  for (const TokenizerSpec::Step &step : steps) {
    written.push_back({step.kind, step.option, {strings.size(), step.text.size()}});
    strings.insert(strings.end(), step.text.begin(), step.text.end());
  }
  section(index, written);
}

/// A word that is exactly a token's bytes needs no merging if merging would give that token. It
/// does for nearly all, but not for all: only asking tells.
static void markReachable(const rt::Stages &stages, llvm::MutableArrayRef<uint8_t> flags) {
  std::vector<rt::WordToken> tokens;
  for (uint32_t id = 0; id < flags.size(); ++id) {
    std::string_view bytes = stages.view.token(id);
    if (bytes.empty() || stages.view.findToken(bytes) != id)
      continue;
    tokens.clear();
    stages.model->encode(bytes, tokens);
    if (tokens.size() == 1 && tokens[0].id == int32_t(id))
      flags[id] |= Reachable;
  }
}

llvm::Expected<std::vector<uint8_t>> writeBlob(const TokenizerSpec &spec) {
  if (spec.tokens.empty())
    return llvm::createStringError("the vocabulary is empty");
  if (spec.tokens.size() > kMaxTokens)
    return llvm::createStringError("the vocabulary has " + std::to_string(spec.tokens.size()) +
                                   " tokens; accepted: at most " + std::to_string(kMaxTokens));
  uint64_t bytes = 0;
  for (const TokenizerSpec::Token &token : spec.tokens)
    bytes += token.bytes.size();
  if (bytes > kMaxTokenBytes)
    return llvm::createStringError("the vocabulary's tokens have " + std::to_string(bytes) +
                                   " bytes together; accepted: at most " +
                                   std::to_string(kMaxTokenBytes));
  std::vector<uint8_t> blob = BlobWriter(spec).write();
  try {
    rt::Stages stages(blob.data(), blob.size());
    for (const auto &pattern : stages.patterns)
      if (pattern)
        pattern->prepare();
    const Range &flags = stages.view.header->sections[rt::blob::TokenFlags];
    markReachable(stages, {blob.data() + flags.offset, size_t(flags.bytes)});
  } catch (const rt::TokenizerError &error) {
    return llvm::createStringError(error.what());
  }
  return blob;
}

} // namespace tenon
