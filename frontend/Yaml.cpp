// The only file that knows yaml-cpp. Its event interface is used, not its nodes: events come before
// aliases are expanded and duplicate keys are merged. yaml-cpp throws; nothing leaves this file.
#include "frontend/Yaml.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/parser.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <sstream>

using llvm::StringRef;

namespace tenon {

namespace {

constexpr size_t maxDepth = 64;
constexpr uint64_t maxBytes = 4 << 20; // yaml-cpp reads 2 MB a second

struct Refusal {
  Place place;
  std::string message;
};

class TreeBuilder : public YAML::EventHandler {
public:
  explicit TreeBuilder(std::shared_ptr<const std::string> file) : file(std::move(file)) {}

  Value root;

  Place at(const YAML::Mark &mark) const {
    return {file, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1};
  }

  void OnDocumentStart(const YAML::Mark &mark) override {
    if (complete)
      throw Refusal{at(mark), "a second document; accepted: one"};
  }
  void OnDocumentEnd() override { complete = true; }
  void OnNull(const YAML::Mark &mark, YAML::anchor_t anchor) override {
    check(mark, "?", anchor);
    add(Value(std::monostate(), at(mark)), "null");
  }
  void OnAlias(const YAML::Mark &mark, YAML::anchor_t) override {
    throw Refusal{at(mark), "aliases are not accepted: write the value out"};
  }
  void OnScalar(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor,
                const std::string &text) override {
    check(mark, tag, anchor);
    bool quoted = tag == "!";
    add(quoted ? Value(std::string(text), at(mark)) : parseScalar(text, at(mark)), text);
  }
  void OnSequenceStart(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Value(Value::List(), at(mark)), mark, tag, anchor);
  }
  void OnMapStart(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Value(Value::Map(), at(mark)), mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

private:
  // A list or map that is not finished, and in a map the key that waits for its value.
  struct Open {
    Value value;
    bool hasKey = false;
    std::string key;
    Place keyPlace;
    llvm::StringSet<> keys;
  };

  void check(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor) {
    if (anchor)
      throw Refusal{at(mark), "anchors are not accepted: write the value out"};
    if (!tag.empty() && tag != "?" && tag != "!")
      throw Refusal{at(mark), "tags are not accepted, got '" + tag + "'"};
  }

  void open(Value value, const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor) {
    check(mark, tag, anchor);
    if (stack.size() == maxDepth)
      throw Refusal{at(mark), "nested deeper than " + std::to_string(maxDepth) + " levels"};
    if (!stack.empty() && stack.back().value.asMap() && !stack.back().hasKey)
      throw Refusal{at(mark), "a key must be a plain word"};
    stack.emplace_back();
    stack.back().value = std::move(value);
  }

  void close() {
    Value value = std::move(stack.back().value);
    stack.pop_back();
    add(std::move(value), "");
  }

  // A finished value, or a key: `text` is how it was written.
  void add(Value value, const std::string &text) {
    if (stack.empty()) {
      root = std::move(value);
      return;
    }
    Open &top = stack.back();
    if (auto *list = std::get_if<Value::List>(&top.value.data)) {
      list->push_back(std::move(value));
    } else if (!top.hasKey) {
      if (!top.keys.insert(text).second)
        throw Refusal{value.place, "key '" + text + "' is already there"};
      top.hasKey = true;
      top.key = text;
      top.keyPlace = value.place;
    } else {
      top.value.asMap()->push_back({std::move(top.key), top.keyPlace, std::move(value)});
      top.hasKey = false;
    }
  }

  std::shared_ptr<const std::string> file;
  std::vector<Open> stack;
  bool complete = false;
};

} // namespace

llvm::Expected<Value> readYaml(StringRef text, StringRef name) {
  auto file = std::make_shared<const std::string>(name.str());
  TreeBuilder builder(file);
  const auto *bytes = reinterpret_cast<const llvm::UTF8 *>(text.begin());
  if (!llvm::isLegalUTF8String(&bytes, reinterpret_cast<const llvm::UTF8 *>(text.end())) ||
      text.contains('\0')) {
    size_t offset = reinterpret_cast<const char *>(bytes) - text.begin();
    offset = std::min(offset, text.find('\0'));
    return failAt({file, 0, 0}, "byte " + llvm::Twine(offset) + " is not UTF-8 text");
  }
  try {
    std::istringstream stream(text.str());
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder))
      return failAt({file, 1, 1}, "the file is empty");
    parser.HandleNextDocument(builder); // refuses a second one
  } catch (const Refusal &refusal) {
    return failAt(refusal.place, refusal.message);
  } catch (const YAML::Exception &error) {
    return failAt(builder.at(error.mark), error.msg);
  } catch (const std::exception &error) {
    return failAt({file, 0, 0}, error.what());
  }
  return std::move(builder.root);
}

llvm::Expected<Value> readYamlFile(StringRef path) {
  llvm::sys::fs::file_status status;
  if (std::error_code error = llvm::sys::fs::status(path, status))
    return failAt(Place::inFile(path), "cannot read: " + error.message());
  if (status.type() != llvm::sys::fs::file_type::regular_file)
    return failAt(Place::inFile(path), "not a file");
  if (status.getSize() > maxBytes)
    return failAt(Place::inFile(path), "is " + llvm::Twine(status.getSize()) +
                                           " bytes; accepted: at most " + llvm::Twine(maxBytes));
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return failAt(Place::inFile(path), "cannot read: " + buffer.getError().message());
  return readYaml((*buffer)->getBuffer(), path);
}

} // namespace tenon
