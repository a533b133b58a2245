// A Hugging Face tokenizer.json -> TokenizerSpec. The file names each stage of its pipeline; those
// that this project has are listed in the functions below, one function for each section of the
// file. Whatever else the file asks for is refused by name: a stage that is skipped gives wrong ids
// silently.
//
// `truncation` and `padding` are settings of a batch and not of the tokenizer: they have no effect
// here.
#include "frontend/Value.h"
#include "frontend/tokenizer/BuildTokenizer.h"
#include "frontend/tokenizer/Pattern.h"
#include "frontend/tokenizer/TokenizerSpec.h"
#include "runtime/tokenizer/Normalise.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <nlohmann/json.hpp>

using llvm::StringRef;
using llvm::Twine;
using namespace tenon::rt::blob;
using Json = nlohmann::json;

namespace tenon {

namespace {
constexpr uint64_t kMaxBytes = 128 << 20;
constexpr size_t kMaxDepth = 16; // of lists in lists

// How GPT-2 cuts text, which is what "ByteLevel" with use_regex means.
constexpr char kByteLevelPattern[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// What "Punctuation" means: Unicode's and ASCII's.
constexpr char kPunctuation[] = R"([\p{P}$+<=>^`|~])";

/// Thrown in this file only.
struct Refusal {
  std::string message;
};
[[noreturn]] void refuse(const Twine &message) { throw Refusal{message.str()}; }

/// A value and what messages call it: "pre_tokenizer.pretokenizers[1].pattern".
struct Node {
  const Json *json;
  std::string name;

  bool isNull() const { return json->is_null(); }
  bool has(const char *key) const {
    return json->is_object() && json->contains(key) && !(*json)[key].is_null();
  }
  Node operator[](const char *key) const {
    if (!json->is_object())
      refuse(name + " must be an object");
    auto member = json->find(key);
    if (member == json->end())
      refuse(name + " has no '" + key + "'");
    return {&*member, name + "." + key};
  }
  std::vector<Node> list() const {
    if (!json->is_array())
      refuse(name + " must be a list");
    std::vector<Node> nodes;
    // "[" in the name counts the lists that hold this one.
    if (StringRef(name).count('[') > kMaxDepth)
      refuse(StringRef(name).take_front(80) + "… is nested deeper than " + Twine(kMaxDepth) +
             " lists");
    for (const Json &item : *json)
      nodes.push_back({&item, name + "[" + std::to_string(nodes.size()) + "]"});
    return nodes;
  }
  const Json::object_t &object() const {
    if (!json->is_object())
      refuse(name + " must be an object");
    return json->get_ref<const Json::object_t &>();
  }
  const std::string &string() const {
    if (!json->is_string())
      refuse(name + " must be a string");
    return json->get_ref<const std::string &>();
  }
  bool flag(const char *key, bool otherwise) const {
    if (!has(key))
      return otherwise;
    Node member = (*this)[key];
    if (!member.json->is_boolean())
      refuse(member.name + " must be true or false");
    return member.json->get<bool>();
  }
  uint32_t number(uint32_t below) const {
    if (!json->is_number_unsigned() || json->get<uint64_t>() >= below)
      refuse(name + " must be a whole number below " + Twine(below));
    return json->get<uint32_t>();
  }
  uint32_t id() const { return number(kMaxTokens); }
  const std::string &type() const { return (*this)["type"].string(); }
};

class Reader {
public:
  explicit Reader(const Json &json) : root{&json, "the file"} {}

  TokenizerSpec read() {
    if (!json().is_object())
      refuse("a tokenizer.json must be an object");
    readModel(section("model"));
    if (root.has("normalizer"))
      readNormaliser(section("normalizer"));
    readAddedTokens();
    if (root.has("pre_tokenizer"))
      readPreTokenizer(section("pre_tokenizer"));
    if (!byteLevel)
      refuse("pre_tokenizer has no 'ByteLevel': only byte-level vocabularies are supported");
    if (root.has("post_processor"))
      readPostProcessor(section("post_processor"));
    readDecoder(section("decoder"));
    return std::move(spec);
  }

private:
  const Json &json() const { return *root.json; }
  Node section(const char *key) const {
    Node node = root[key];
    node.name = key;
    return node;
  }

  void readModel(const Node &model);
  llvm::Error addMerge(const MergeResolver &merges, const Node &merge);
  void readNormaliser(const Node &node);
  void readAddedTokens();
  void readPreTokenizer(const Node &node);
  void readSplit(const Node &node);
  void readPostProcessor(const Node &node);
  void readTemplate(const Node &processor, const char *key, std::vector<TemplateItem> &items);
  void readClsSep(const Node &processor, bool twoBetween);
  void readTrimming(const Node &processor);
  void readDecoder(const Node &node);
  std::string normalised(const std::string &text) const;
  void splitBy(const std::string &pattern, Behaviour behaviour, bool invert = false) {
    spec.split.push_back({StepKind::Regex, uint32_t(behaviour) | (invert ? kInvert : 0), pattern});
  }

  Node root;
  TokenizerSpec spec;
  std::vector<StringRef> vocabulary; // the model's tokens as written, by id
  bool byteLevel = false;            // the pre-tokenizer has had its ByteLevel
};
} // namespace

static std::string translated(const std::string &pattern) {
  llvm::Expected<std::string> result = translatePattern(pattern);
  if (!result)
    refuse(llvm::toString(result.takeError()));
  return *result;
}

[[noreturn]] static void refuseType(const Node &node, StringRef accepted) {
  refuse(node.name + " has type '" + node.type() + "'; supported: " + accepted);
}

// ---- model ----

void Reader::readModel(const Node &model) {
  model.object();
  // Old files do not name the type of a BPE model.
  if (model.has("type") ? model.type() != "BPE" : !model.has("merges"))
    refuse("model.type is '" + (model.has("type") ? model.type() : std::string("missing")) +
           "'; supported: BPE");
  for (const char *key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (model.has(key) && !model[key].string().empty())
      refuse("model." + Twine(key) + " is '" + model[key].string() +
             "'; supported: none, as in byte-level vocabularies");
  if (model.flag("byte_fallback", false))
    refuse("model.byte_fallback is true; supported: false, as in byte-level vocabularies");
  if (model.flag("fuse_unk", false))
    spec.modelFlags |= FuseUnknown;
  if (model.flag("ignore_merges", false))
    spec.modelFlags |= IgnoreMerges;

  MergeResolver merges;
  Node vocab = model["vocab"];
  for (const auto &[token, id] : vocab.object()) {
    uint32_t index = Node{&id, vocab.name + "['" + token + "']"}.id();
    if (index >= vocabulary.size())
      vocabulary.resize(index + 1);
    if (vocabulary[index].data())
      refuse("model.vocab gives the id " + Twine(index) + " to both '" + vocabulary[index] +
             "' and '" + token + "'");
    vocabulary[index] = token;
    setByteLevelToken(spec, index, token);
    merges.addToken(token, index);
  }
  if (model.has("unk_token")) {
    const std::string &unknown = model["unk_token"].string();
    auto found = vocab.object().find(unknown);
    if (found == vocab.object().end())
      refuse("model.unk_token is '" + unknown + "', which is not in the vocabulary");
    spec.unknown = found->second.get<uint32_t>();
  }
  for (const Node &merge : model["merges"].list())
    if (llvm::Error error = addMerge(merges, merge))
      refuse(llvm::toString(std::move(error)));
}

/// ["Ġ", "t"], or "Ġ t" in old files.
llvm::Error Reader::addMerge(const MergeResolver &merges, const Node &merge) {
  if (!merge.json->is_array())
    return merges.addMerge(spec, merge.string());
  std::vector<Node> parts = merge.list();
  if (parts.size() != 2)
    refuse(merge.name + " must have two tokens");
  return merges.addMerge(spec, parts[0].string(), parts[1].string());
}

// ---- normalizer ----

void Reader::readNormaliser(const Node &node) {
  const std::string &type = node.type();
  if (type == "Sequence") {
    for (const Node &part : node["normalizers"].list())
      readNormaliser(part);
    return;
  }
  auto kind = llvm::StringSwitch<StepKind>(type)
                  .Case("NFC", StepKind::Nfc)
                  .Case("NFD", StepKind::Nfd)
                  .Case("NFKC", StepKind::Nfkc)
                  .Case("NFKD", StepKind::Nfkd)
                  .Default(StepKind::Regex);
  if (kind == StepKind::Regex)
    refuseType(node, "NFC, NFD, NFKC, NFKD, Sequence");
  spec.normalise.push_back({kind, 0, {}});
}

std::string Reader::normalised(const std::string &text) const {
  std::string result = text;
  for (const TokenizerSpec::Step &step : spec.normalise) {
    rt::Rewritten rewritten;
    if (rt::normalForm(step.kind, rt::Piece{result}, rewritten))
      result = rewritten.text;
  }
  return result;
}

// ---- added_tokens ----

void Reader::readAddedTokens() {
  if (!root.has("added_tokens"))
    return;
  for (const Node &node : section("added_tokens").list()) {
    const std::string &content = node["content"].string();
    if (content.empty())
      continue;
    uint32_t id = node["id"].id();
    if (id < vocabulary.size() && vocabulary[id].data() && vocabulary[id] != content)
      refuse(node.name + " gives '" + content + "' the id " + Twine(id) + ", which is '" +
             vocabulary[id] + "' in the vocabulary");
    uint32_t flags = 0;
    if (node.flag("single_word", false))
      flags |= SingleWord;
    if (node.flag("lstrip", false))
      flags |= StripLeft;
    if (node.flag("rstrip", false))
      flags |= StripRight;
    bool inNormalised = node.flag("normalized", true);
    setAddedToken(spec, id, content, node.flag("special", false), flags, inNormalised,
                  inNormalised ? normalised(content) : content);
  }
}

// ---- pre_tokenizer ----

static Behaviour behaviourOf(const Node &node) {
  const std::string &name = node["behavior"].string();
  auto behaviour = llvm::StringSwitch<std::optional<Behaviour>>(name)
                       .Case("Isolated", Behaviour::Isolated)
                       .Case("Removed", Behaviour::Removed)
                       .Case("MergedWithPrevious", Behaviour::MergedWithPrevious)
                       .Case("MergedWithNext", Behaviour::MergedWithNext)
                       .Case("Contiguous", Behaviour::Contiguous)
                       .Default(std::nullopt);
  if (!behaviour)
    refuse(node.name + ".behavior is '" + name +
           "'; supported: Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous");
  return *behaviour;
}

void Reader::readPreTokenizer(const Node &node) {
  const std::string &type = node.type();
  if (type == "Sequence") {
    for (const Node &part : node["pretokenizers"].list())
      readPreTokenizer(part);
    return;
  }
  // What follows would see the byte alphabet and not the text.
  if (byteLevel)
    refuse(node.name + " ('" + type + "') comes after 'ByteLevel'; supported: 'ByteLevel' last");
  if (type == "ByteLevel") {
    byteLevel = true;
    if (node.flag("add_prefix_space", true))
      spec.split.push_back({StepKind::PrefixSpace, 0, {}});
    if (node.flag("use_regex", true))
      splitBy(translated(kByteLevelPattern), Behaviour::Isolated);
  } else if (type == "Digits") {
    splitBy("\\p{N}",
            node.flag("individual_digits", false) ? Behaviour::Isolated : Behaviour::Contiguous);
  } else if (type == "Split") {
    readSplit(node);
  } else if (type == "Punctuation") {
    splitBy(kPunctuation, behaviourOf(node));
  } else {
    refuseType(node, "ByteLevel, Digits, Punctuation, Split, Sequence");
  }
}

/// {"String": " "} or {"Regex": "\\s+"}
void Reader::readSplit(const Node &node) {
  Node pattern = node["pattern"];
  bool literal = pattern.has("String");
  const std::string &text = pattern[literal ? "String" : "Regex"].string();
  splitBy(literal ? literalPattern(text) : translated(text), behaviourOf(node),
          node.flag("invert", false));
}

// ---- post_processor ----

void Reader::readPostProcessor(const Node &node) {
  const std::string &type = node.type();
  if (type == "Sequence") {
    for (const Node &part : node["processors"].list())
      readPostProcessor(part);
  } else if (type == "ByteLevel") {
    readTrimming(node);
  } else if (type == "TemplateProcessing") {
    readTemplate(node, "single", spec.single);
    readTemplate(node, "pair", spec.pair);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    readClsSep(node, type == "RobertaProcessing");
  } else {
    refuseType(node, "BertProcessing, ByteLevel, RobertaProcessing, TemplateProcessing, Sequence");
  }
}

void Reader::readTrimming(const Node &processor) {
  if (!processor.flag("trim_offsets", true))
    return;
  spec.postFlags |= TrimOffsets;
  if (processor.flag("add_prefix_space", true))
    spec.postFlags |= KeepPrefixSpace;
}

void Reader::readTemplate(const Node &processor, const char *key,
                          std::vector<TemplateItem> &items) {
  items.clear();
  for (const Node &item : processor[key].list()) {
    bool isText = item.has("Sequence");
    Node piece = item[isText ? "Sequence" : "SpecialToken"];
    const std::string &name = piece["id"].string();
    int32_t typeId = piece["type_id"].id();
    if (isText) {
      if (name != "A" && name != "B")
        refuse(piece.name + ".id is '" + name + "'; accepted: A, B");
      items.push_back({name == "A" ? kFirstText : kSecondText, typeId});
      continue;
    }
    for (const Node &id : processor["special_tokens"][name.c_str()]["ids"].list())
      items.push_back({int32_t(id.number(spec.tokens.size())), typeId});
  }
}

/// [CLS] A [SEP], [CLS] A [SEP] B [SEP]; RoBERTa has two [SEP] between the texts, and no type ids.
void Reader::readClsSep(const Node &processor, bool twoBetween) {
  auto token = [&](const char *key) {
    std::vector<Node> parts = processor[key].list(); // ["</s>", 2]
    if (parts.size() != 2)
      refuse(processor[key].name + " must have a token and its id");
    return int32_t(parts[1].number(spec.tokens.size()));
  };
  int32_t cls = token("cls"), sep = token("sep"), second = twoBetween ? 0 : 1;
  spec.single = {{cls, 0}, {kFirstText, 0}, {sep, 0}};
  spec.pair = spec.single;
  if (twoBetween) {
    readTrimming(processor);
    spec.pair.push_back({sep, 0});
  }
  spec.pair.push_back({kSecondText, second});
  spec.pair.push_back({sep, second});
}

// ---- decoder ----

void Reader::readDecoder(const Node &node) {
  if (node.isNull())
    refuse("decoder is missing; supported: ByteLevel");
  if (node.type() == "Sequence") {
    std::vector<Node> parts = node["decoders"].list();
    if (parts.size() == 1)
      return readDecoder(parts.front());
  }
  if (node.type() != "ByteLevel")
    refuseType(node, "ByteLevel");
}

// ---- the file ----

static llvm::Expected<TokenizerSpec> readSpec(StringRef path, StringRef text) {
  try {
    Json json = Json::parse(text.begin(), text.end());
    return Reader(json).read();
  } catch (const Refusal &refusal) {
    return failAt(Place::inFile(path), refusal.message);
  } catch (const Json::exception &error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: …; last read: '…'": the
    // middle is of use, the end may be any bytes.
    StringRef message = error.what();
    message = message.substr(message.find(']') + 1).split("; last read").first;
    return failAt(Place::inFile(path), message.trim());
  }
}

llvm::Expected<std::vector<uint8_t>> buildTokenizerFromJson(StringRef path) {
  Place place = Place::inFile(path);
  llvm::sys::fs::file_status status;
  if (std::error_code error = llvm::sys::fs::status(path, status))
    return failAt(place, "cannot read: " + error.message());
  if (status.type() != llvm::sys::fs::file_type::regular_file)
    return failAt(place, "not a file");
  if (status.getSize() > kMaxBytes)
    return failAt(place, "is " + Twine(status.getSize()) + " bytes; accepted: at most " +
                             Twine(kMaxBytes));
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return failAt(place, "cannot read: " + buffer.getError().message());
  llvm::Expected<TokenizerSpec> spec = readSpec(path, (*buffer)->getBuffer());
  if (!spec)
    return spec.takeError();
  llvm::Expected<std::vector<uint8_t>> blob = writeBlob(*spec);
  if (!blob)
    return failAt(place, llvm::toString(blob.takeError()));
  return blob;
}

} // namespace tenon
