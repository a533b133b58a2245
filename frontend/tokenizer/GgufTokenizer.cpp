// GGUF metadata -> TokenizerSpec. The file names its vocabulary's kind (tokenizer.ggml.model) and
// how text is cut into words (tokenizer.ggml.pre); what those names mean stands in
// models/tokenizers.yaml.
#include "frontend/Yaml.h"
#include "frontend/tokenizer/BuildTokenizer.h"
#include "frontend/tokenizer/Pattern.h"
#include "frontend/tokenizer/TokenizerSpec.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using llvm::StringRef;
using llvm::Twine;
using namespace tenon::rt::blob;

namespace tenon {

namespace {
/// Values of tokenizer.ggml.token_type.
enum GgufTokenType { Normal = 1, Unknown, Control, UserDefined, Unused, Byte };

class Reader {
public:
  Reader(const GgufMetadata &metadata, const Value &names) : metadata(metadata), names(names) {}

  llvm::Expected<TokenizerSpec> read();

private:
  llvm::Error fail(const Twine &message) const {
    return failAt(Place::inFile(metadata.fileName()), message);
  }
  llvm::Expected<const Value *> lookUp(StringRef table, StringRef key, StringRef name) const;
  llvm::Expected<const Value *> member(const Value &map, StringRef table, const Value &name) const;
  llvm::Error readPipeline();
  llvm::Error addSplit(const Value &name);
  llvm::Error readVocabulary();
  llvm::Error readMerges(const std::vector<StringRef> &tokens);
  llvm::Error readTemplate();
  llvm::Expected<std::optional<uint32_t>> readId(StringRef key) const;

  const GgufMetadata &metadata;
  const Value &names; // tokenizers.yaml
  TokenizerSpec spec;
  bool addBos = false; // where the file does not say
};
} // namespace

static std::string keysOf(const Value &map) {
  std::vector<StringRef> keys;
  for (const Entry &entry : *map.asMap())
    keys.push_back(entry.key);
  return llvm::join(keys, ", ");
}

/// What a name of the file's metadata means.
llvm::Expected<const Value *> Reader::lookUp(StringRef table, StringRef key, StringRef name) const {
  const Value *map = names.find(table);
  if (!map || !map->asMap())
    return failAt(names.place, "'" + table + "' must be a map");
  const Value *meaning = map->find(name);
  if (!meaning)
    return fail(key + " is '" + name + "'; accepted: " + keysOf(*map));
  return meaning;
}

/// A name that one part of tokenizers.yaml uses for what another defines.
llvm::Expected<const Value *> Reader::member(const Value &map, StringRef table,
                                             const Value &name) const {
  const std::string *text = name.asString();
  const Value *defined = map.find(table);
  const Value *found = text && defined ? defined->find(*text) : nullptr;
  if (!found)
    return failAt(name.place, name.describe() + " is not one of '" + table + "'");
  return found;
}

llvm::Error Reader::readPipeline() {
  StringRef name = metadata.getString("tokenizer.ggml.pre").value_or("default");
  auto use = lookUp("pre_tokenizers", "tokenizer.ggml.pre", name);
  if (!use)
    return use.takeError();
  auto pipeline = member(names, "pipelines", **use);
  if (!pipeline)
    return pipeline.takeError();
  if (llvm::Error error =
          checkKeys(**pipeline, "a pipeline", {"normalise", "split", "ignore_merges", "add_bos"}))
    return error;

  if (const Value *form = (*pipeline)->find("normalise")) {
    const std::string *text = form->asString();
    if (!text || *text != "NFC")
      return failAt(form->place, "normalise is " + form->describe() + "; accepted: NFC");
    spec.normalise.push_back({StepKind::Nfc, 0, {}});
  }
  if (metadata.getBool("tokenizer.ggml.add_space_prefix").value_or(false))
    spec.split.push_back({StepKind::PrefixSpace, 0, {}});
  const Value *split = (*pipeline)->find("split");
  if (!split || !split->asList())
    return failAt((*pipeline)->place, "a pipeline must have a list 'split'");
  for (const Value &pattern : *split->asList())
    if (llvm::Error error = addSplit(pattern))
      return error;
  auto flag = [&](StringRef key, bool &out) -> llvm::Error {
    const Value *value = (*pipeline)->find(key);
    if (value && !value->asFlag())
      return failAt(value->place, key + " must be true or false");
    out = value && *value->asFlag();
    return llvm::Error::success();
  };
  bool ignoreMerges = false;
  if (llvm::Error error = flag("ignore_merges", ignoreMerges))
    return error;
  if (ignoreMerges)
    spec.modelFlags |= IgnoreMerges;
  return flag("add_bos", addBos);
}

llvm::Error Reader::addSplit(const Value &name) {
  auto pattern = member(names, "patterns", name);
  if (!pattern)
    return pattern.takeError();
  const std::string *text = (*pattern)->asString();
  if (!text)
    return failAt((*pattern)->place, "a pattern must be a string");
  llvm::Expected<std::string> translated = translatePattern(*text);
  if (!translated)
    return failAt((*pattern)->place, llvm::toString(translated.takeError()));
  spec.split.push_back({StepKind::Regex, uint32_t(Behaviour::Isolated), *translated});
  return llvm::Error::success();
}

llvm::Error Reader::readVocabulary() {
  auto tokens = metadata.getStrings("tokenizer.ggml.tokens");
  if (!tokens || tokens->empty())
    return fail("has no tokenizer.ggml.tokens");
  if (tokens->size() > kMaxTokens)
    return fail("tokenizer.ggml.tokens has " + Twine(tokens->size()) +
                " tokens; accepted: at most " + Twine(kMaxTokens));
  auto types = metadata.getIntegers("tokenizer.ggml.token_type");
  if (types && types->size() != tokens->size())
    return fail("tokenizer.ggml.token_type has " + Twine(types->size()) + " entries for " +
                Twine(tokens->size()) + " tokens");

  for (uint32_t id = 0; id < tokens->size(); ++id) {
    StringRef token = (*tokens)[id];
    setByteLevelToken(spec, id, token);
    switch (types ? (*types)[id] : int64_t(Normal)) {
    case Normal:
    case Byte:
      break;
    case Unused: // padding of the vocabulary
      spec.tokens[id] = {token.str(), Verbatim, false};
      break;
    case UserDefined:
      setAddedToken(spec, id, token, /*special=*/false);
      break;
    case Unknown:
    case Control:
      setAddedToken(spec, id, token, /*special=*/true);
      break;
    default:
      return fail("tokenizer.ggml.token_type of token " + Twine(id) + " is " + Twine((*types)[id]) +
                  "; accepted: 1 to 6");
    }
  }
  return readMerges(*tokens);
}

llvm::Error Reader::readMerges(const std::vector<StringRef> &tokens) {
  auto merges = metadata.getStrings("tokenizer.ggml.merges");
  if (!merges)
    return fail("has no tokenizer.ggml.merges");
  MergeResolver resolver;
  for (uint32_t id = 0; id < tokens.size(); ++id)
    resolver.addToken(tokens[id], id);
  for (StringRef merge : *merges)
    if (llvm::Error error = resolver.addMerge(spec, merge))
      return fail("tokenizer.ggml.merges: " + llvm::toString(std::move(error)));
  return llvm::Error::success();
}

llvm::Expected<std::optional<uint32_t>> Reader::readId(StringRef key) const {
  std::optional<int64_t> id = metadata.getInteger(key);
  if (!id)
    return std::nullopt;
  if (*id < 0 || *id >= int64_t(spec.tokens.size()))
    return fail(key + " is " + Twine(*id) + "; there are " + Twine(spec.tokens.size()) + " tokens");
  return uint32_t(*id);
}

llvm::Error Reader::readTemplate() {
  auto bos = readId("tokenizer.ggml.bos_token_id");
  if (!bos)
    return bos.takeError();
  auto eos = readId("tokenizer.ggml.eos_token_id");
  if (!eos)
    return eos.takeError();
  spec.bos = *bos;
  spec.eos = *eos;

  bool withBos = metadata.getBool("tokenizer.ggml.add_bos_token").value_or(addBos);
  bool withEos = metadata.getBool("tokenizer.ggml.add_eos_token").value_or(false);
  if (withBos && !spec.bos)
    return fail("asks for a BOS token but has no tokenizer.ggml.bos_token_id");
  if (withEos && !spec.eos)
    return fail("asks for an EOS token but has no tokenizer.ggml.eos_token_id");
  auto addText = [&](std::vector<TemplateItem> &items, int32_t text, int32_t typeId) {
    if (withBos)
      items.push_back({int32_t(*spec.bos), typeId});
    items.push_back({text, typeId});
    if (withEos)
      items.push_back({int32_t(*spec.eos), typeId});
  };
  spec.single.clear();
  spec.pair.clear();
  addText(spec.single, kFirstText, 0);
  addText(spec.pair, kFirstText, 0);
  addText(spec.pair, kSecondText, 1);
  return llvm::Error::success();
}

llvm::Expected<TokenizerSpec> Reader::read() {
  if (llvm::Error error =
          checkKeys(names, "the file", {"models", "pre_tokenizers", "pipelines", "patterns"}))
    return error;
  auto model = metadata.getString("tokenizer.ggml.model");
  if (!model)
    return fail("has no tokenizer.ggml.model");
  auto kind = lookUp("models", "tokenizer.ggml.model", *model);
  if (!kind)
    return kind.takeError();
  const std::string *kindName = (*kind)->asString();
  if (!kindName || *kindName != "byte-level-bpe")
    return failAt((*kind)->place, "the kind of vocabulary is " + (*kind)->describe() +
                                      "; accepted: byte-level-bpe");
  if (llvm::Error error = readPipeline())
    return error;
  if (llvm::Error error = readVocabulary())
    return error;
  if (llvm::Error error = readTemplate())
    return error;
  return std::move(spec);
}

llvm::Expected<std::vector<uint8_t>> buildTokenizerFromGguf(const GgufMetadata &metadata,
                                                            StringRef tokenizersYaml) {
  llvm::Expected<Value> names = readYamlFile(tokenizersYaml);
  if (!names)
    return names.takeError();
  llvm::Expected<TokenizerSpec> spec = Reader(metadata, *names).read();
  if (!spec)
    return spec.takeError();
  llvm::Expected<std::vector<uint8_t>> blob = writeBlob(*spec);
  if (!blob)
    return failAt(Place::inFile(metadata.fileName()), llvm::toString(blob.takeError()));
  return blob;
}

} // namespace tenon
