// The tokenizer as it lies in the file: one blob, written by the compiler, used in place by the
// runtime.
//
//   Header | sections, each at a multiple of 8
//
//   strings        bytes         every string below is a range of it
//   token_offsets  u32[n + 1]    token i stands for strings[offsets[i], offsets[i+1])
//   token_flags    u8[n]         TokenFlag
//   token_hash     TokenSlot[]   bytes of a vocabulary token -> id; open addressing, linear probing
//   merge_hash     MergeSlot[]   (left id, right id) -> rank and merged id; likewise
//   added          AddedToken[]  tokens that are found in the text before anything is split
//   raw_trie       TrieNode[]    their strings, searched in the text as it is
//   normal_trie    TrieNode[]    the same for those that are searched in the normalised text
//   normalise      Step[]        how text is rewritten
//   split          Step[]        how it is cut into words
//   single, pair   TemplateItem[] what an encoding of one text, of two texts is made of
//
// Token strings are the bytes they stand for, not the printable alphabet in which byte-level
// vocabularies are written ("Ġthe" is stored as " the"). Everything is little-endian.
#ifndef TENON_RUNTIME_TOKENIZER_BLOB_H
#define TENON_RUNTIME_TOKENIZER_BLOB_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tenon::rt::blob {

constexpr char kMagic[8] = {'T', 'E', 'N', 'O', 'N', 'T', 'O', 'K'};
constexpr uint32_t kVersion = 1;
constexpr uint32_t kEmpty = 0xffffffff; // an unused slot of a hash table
constexpr uint32_t kMaxTokens = 1u << 22;

enum class Model : uint32_t { ByteLevelBpe = 1 };

enum ModelFlag : uint32_t {
  IgnoreMerges = 1, // a word that is a token becomes that token, whatever the merges say
  FuseUnknown = 2,  // neighbouring unknown bytes become one unknown token
};

enum PostFlag : uint32_t {
  TrimOffsets = 1,     // offsets leave out spaces at a token's ends …
  KeepPrefixSpace = 2, // … except one at the very start, which add_prefix_space put there
};

enum TokenFlag : uint8_t {
  Added = 1,     // written as it is, not in the byte alphabet
  Special = 2,   // left out by decode(…, skipSpecial)
  Reachable = 4, // the model turns exactly these bytes into this token alone: no need to run it
  Verbatim = 8,  // an ordinary token that is not written in the byte alphabet: no text leads to it
  Absent = 16,   // a gap between ids
};

enum Section {
  Strings,
  TokenOffsets,
  TokenFlags,
  TokenHash,
  MergeHash,
  AddedTokens,
  RawTrie,
  NormalTrie,
  Normalise,
  Split,
  Single,
  Pair,
  SectionCount
};

struct Range {
  uint64_t offset; // from the start of the blob; in Step: from the start of the strings
  uint64_t bytes;
};

struct Header {
  char magic[8];
  uint32_t version;
  Model model;
  uint64_t bytes;            // of the whole blob
  int32_t bos, eos, unknown; // -1: none
  uint32_t modelFlags;
  uint32_t postFlags;
  uint32_t reserved;
  Range sections[SectionCount];
};

struct TokenSlot {
  uint32_t tag; // low half of the hash
  uint32_t id;  // kEmpty: unused
};

struct MergeSlot {
  uint32_t left, right; // left == kEmpty: unused
  uint32_t rank;        // lower ranks merge first
  uint32_t merged;
};

enum AddedFlag : uint32_t { SingleWord = 1, StripLeft = 2, StripRight = 4 };

struct AddedToken {
  uint32_t id;
  uint32_t flags;
};

/// Children of a node are neighbours, sorted by `byte`, and come after it. Node 0 is the root.
struct TrieNode {
  uint32_t firstChild;
  uint16_t children;
  uint8_t byte;
  uint8_t reserved;
  int32_t added; // index of the added token that ends here, or -1
};

enum class StepKind : uint32_t {
  // normalise
  Nfc = 1,
  Nfd = 2,
  Nfkc = 3,
  Nfkd = 4,
  // split
  Regex = 16,       // `text` is a PCRE2 pattern; `option` a Behaviour, plus kInvert
  PrefixSpace = 17, // a word that does not start with a space gets one
};

/// What becomes of the matches of a splitting pattern.
enum class Behaviour : uint32_t {
  Isolated,
  Removed,
  MergedWithPrevious,
  MergedWithNext,
  Contiguous
};
constexpr uint32_t kInvert = 16; // what lies between the matches takes the part of the matches

struct Step {
  StepKind kind;
  uint32_t option;
  Range text;
};

struct TemplateItem {
  int32_t what; // a token id, or kFirstText or kSecondText
  int32_t typeId;
};
constexpr int32_t kFirstText = -1;
constexpr int32_t kSecondText = -2;

static_assert(sizeof(Header) == 48 + 16 * SectionCount);
static_assert(sizeof(TrieNode) == 12 && sizeof(MergeSlot) == 16 && sizeof(Step) == 24);

// ---- hashing: part of the format ----

inline uint64_t hashBytes(std::string_view bytes) {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15ull;
  uint64_t hash = bytes.size() * kFactor;
  auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 29;
  };
  const char *p = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; p += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    mix(word);
  }
  if (left) {
    uint64_t word = 0;
    std::memcpy(&word, p, left);
    mix(word);
  }
  mix(hash >> 32);
  return hash;
}

inline uint64_t hashPair(uint32_t left, uint32_t right) {
  uint64_t hash = ((uint64_t(left) << 32) | right) * 0x9e3779b97f4a7c15ull;
  return (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93ull;
}

/// The slot where probing starts: the hash's upper half scaled to the table.
inline size_t firstSlot(uint64_t hash, size_t slots) { return ((hash >> 32) * slots) >> 32; }

} // namespace tenon::rt::blob

#endif // TENON_RUNTIME_TOKENIZER_BLOB_H
