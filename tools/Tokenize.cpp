// tenon tokenize --tokenizer F [--batch-json TEXTS.json] [--json] [TEXT]
#include "codegen/Error.h"
#include "runtime/tokenizer/Tokenizer.h"
#include "tools/Command.h"
#include "tools/Locations.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

namespace tenon {

namespace {

// A text, or two that are encoded as a pair.
struct Text {
  std::string first;
  std::optional<std::string> second;
};

llvm::Expected<std::vector<Text>> readBatch(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return refused("cannot read " + path + ": " + buffer.getError().message());
  llvm::Expected<llvm::json::Value> json = llvm::json::parse((*buffer)->getBuffer());
  if (!json)
    return refused(path + ": " + llvm::toString(json.takeError()));
  const llvm::json::Array *array = json->getAsArray();
  if (!array)
    return refused(path + ": expected an array of strings or {\"a\", \"b\"} pairs");
  std::vector<Text> texts;
  for (const llvm::json::Value &entry : *array) {
    if (auto text = entry.getAsString()) {
      texts.push_back({text->str(), std::nullopt});
      continue;
    }
    const llvm::json::Object *pair = entry.getAsObject();
    auto a = pair ? pair->getString("a") : std::nullopt,
         b = pair ? pair->getString("b") : std::nullopt;
    if (!a || !b)
      return refused(path + ": entry " + llvm::Twine(texts.size()) +
                     " is neither a string nor an {\"a\", \"b\"} pair");
    texts.push_back({a->str(), b->str()});
  }
  return texts;
}

void print(llvm::json::OStream &json, const rt::Tokenizer &tokenizer, const Text &text) {
  rt::Encoding encoding =
      text.second ? tokenizer.encodePair(text.first, *text.second) : tokenizer.encode(text.first);
  json.object([&] {
    json.attribute("ids", llvm::json::Array(encoding.ids));
    json.attributeArray("tokens", [&] {
      for (const std::string &token : encoding.tokens)
        json.value(llvm::json::fixUTF8(token));
    });
    json.attributeArray("offsets", [&] {
      for (auto [begin, end] : encoding.offsets)
        json.value(llvm::json::Array{begin, end});
    });
    if (text.second)
      json.attribute("type_ids", llvm::json::Array(encoding.typeIds));
    json.attribute("decoded", tokenizer.decode(encoding.ids));
  });
}

} // namespace

Action addTokenize(CLI::App &app) {
  struct Arguments {
    std::string tokenizer, batch, text;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  app.add_option("--tokenizer", arguments->tokenizer, "a tokenizer.json or .gguf file")->required();
  auto *batch =
      app.add_option("--batch-json", arguments->batch, "an array of texts, or of {a, b} pairs");
  app.add_option("TEXT", arguments->text)->excludes(batch);
  app.add_flag("--json", arguments->json);
  return [=]() -> llvm::Error {
    llvm::Expected<std::vector<uint8_t>> blob =
        buildTokenizer(arguments->tokenizer, getModelsFolder());
    if (!blob)
      return blob.takeError();
    std::vector<Text> texts{{arguments->text, std::nullopt}};
    if (!arguments->batch.empty()) {
      llvm::Expected<std::vector<Text>> read = readBatch(arguments->batch);
      if (!read)
        return read.takeError();
      texts = std::move(*read);
    }
    try {
      rt::Tokenizer tokenizer = rt::Tokenizer::open(blob->data(), blob->size());
      if (arguments->batch.empty() && !arguments->json) {
        llvm::interleave(tokenizer.encode(arguments->text).ids, llvm::outs(), ",");
        llvm::outs() << '\n';
        return llvm::Error::success();
      }
      llvm::json::OStream json(llvm::outs());
      if (arguments->batch.empty())
        print(json, tokenizer, texts.front());
      else
        json.array([&] {
          for (const Text &text : texts)
            print(json, tokenizer, text);
        });
      llvm::outs() << '\n';
      return llvm::Error::success();
    } catch (const rt::TokenizerError &error) {
      return refused(error.what());
    }
  };
}

} // namespace tenon
