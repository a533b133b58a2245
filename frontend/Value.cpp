#include "frontend/Value.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include <charconv>
#include <cmath>

using llvm::StringRef;

namespace tenon {

static constexpr size_t maxMessage = 2000;

std::string Place::str() const {
  std::string text = file ? *file : "?";
  return line ? text + ":" + std::to_string(line) + ":" + std::to_string(column) : text;
}

llvm::Error failAt(const Place &place, const llvm::Twine &message) {
  std::string text = place.str() + ": error: " + message.str(), line;
  const auto *bytes = reinterpret_cast<const llvm::UTF8 *>(text.data());
  bool legal = llvm::isLegalUTF8String(&bytes, bytes + text.size());
  for (char c : text) { // names out of a file can be anything
    if (line.size() > maxMessage)
      return llvm::createStringError(line + "...");
    auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte == 0x7f || (byte >= 0x80 && !legal))
      line += "\\x" + llvm::toHex(StringRef(&c, 1));
    else
      line += c;
  }
  return llvm::createStringError(line);
}

double Value::getNumber() const {
  if (const int64_t *integer = asInteger())
    return static_cast<double>(*integer);
  return std::get<double>(data);
}

const Value *Value::find(StringRef key) const {
  if (const Map *map = asMap())
    for (const Entry &entry : *map)
      if (entry.key == key)
        return &entry.value;
  return nullptr;
}

const Value *Value::findPath(StringRef path) const {
  const Value *value = this;
  while (value && !path.empty()) {
    auto [head, tail] = path.split('.');
    value = value->find(head);
    path = tail;
  }
  return value;
}

void Value::setPath(StringRef path, Value value, const Place &keyPlace) {
  if (!asMap())
    data = Map();
  StringRef head = path.split('.').first, tail = path.split('.').second;
  Map &map = *asMap();
  auto at = llvm::find_if(map, [&](const Entry &entry) { return entry.key == head; });
  if (at == map.end())
    at = map.insert(at, {head.str(), keyPlace, Value(std::monostate(), value.place)});
  if (tail.empty())
    *at = {head.str(), keyPlace, std::move(value)};
  else
    at->value.setPath(tail, std::move(value), keyPlace);
}

Value Value::withoutNulls() const {
  Value result = *this;
  if (Map *map = result.asMap()) {
    llvm::erase_if(*map, [](const Entry &entry) { return entry.value.isNull(); });
    for (Entry &entry : *map)
      entry.value = entry.value.withoutNulls();
  }
  return result;
}

std::string printNumber(double number) {
  char buffer[64];
  bool large =
      std::abs(number) >= 1e5 && std::abs(number) < 1e15; // 100000.0 reads better than 1e+05
  char *end = large ? std::to_chars(buffer, std::end(buffer), number, std::chars_format::fixed).ptr
                    : std::to_chars(buffer, std::end(buffer), number).ptr;
  std::string text(buffer, end);
  // A number that happens to be whole must not read back as an integer.
  return StringRef(text).find_first_of(".en") == StringRef::npos ? text + ".0" : text;
}

std::string Value::describe() const {
  if (const std::string *text = asString())
    return "'" + *text + "'";
  if (asList())
    return "a list";
  if (asMap())
    return "a map";
  return print();
}

static void printString(std::string &out, const std::string &text) {
  auto isPlain = [](char c) { return llvm::isAlnum(c) || StringRef("_-./").contains(c); };
  bool plain = llvm::all_of(text, isPlain) && parseScalar(text, {}).asString();
  if (plain &&
      (llvm::isAlnum(text.front()) || text.front() == '/')) { // it reads back as the same string
    out += text;
    return;
  }
  out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (static_cast<unsigned char>(c) < ' ' || c == '\x7f')
      out += "\\x" + llvm::toHex(StringRef(&c, 1));
    else
      out += c;
  }
  out += '"';
}

static void printInto(std::string &out, const Value &value) {
  if (const bool *flag = value.asFlag()) {
    out += *flag ? "true" : "false";
  } else if (const int64_t *integer = value.asInteger()) {
    out += std::to_string(*integer);
  } else if (value.isNumber()) {
    out += printNumber(value.getNumber());
  } else if (const std::string *text = value.asString()) {
    printString(out, *text);
  } else if (const Value::List *list = value.asList()) {
    out += '[';
    for (const Value &item : *list) {
      out += &item == list->data() ? "" : ", ";
      printInto(out, item);
    }
    out += ']';
  } else if (const Value::Map *map = value.asMap()) {
    out += '{';
    for (const Entry &entry : *map) {
      out += &entry == map->data() ? "" : ", ";
      printString(out, entry.key);
      out += ": ";
      printInto(out, entry.value);
    }
    out += '}';
  } else {
    out += "null";
  }
}

std::string Value::print() const {
  std::string text;
  printInto(text, *this);
  return text;
}

bool Value::operator==(const Value &other) const {
  if (isNumber() && other.isNumber() && data.index() != other.data.index())
    return getNumber() == other.getNumber();
  if (const Map *map = asMap()) {
    if (!other.asMap() || map->size() != other.asMap()->size())
      return false;
    return llvm::all_of(*map, [&](const Entry &entry) {
      const Value *value = other.find(entry.key);
      return value && entry.value == *value;
    });
  }
  if (const List *list = asList())
    return other.asList() && *list == *other.asList();
  return !other.asMap() && !other.asList() && data == other.data;
}

Value parseScalar(StringRef text, Place place) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
    return Value(std::monostate(), std::move(place));
  if (text == "true" || text == "True" || text == "TRUE")
    return Value(true, std::move(place));
  if (text == "false" || text == "False" || text == "FALSE")
    return Value(false, std::move(place));

  StringRef unsignedText = text;
  unsignedText.consume_front("-") || unsignedText.consume_front("+");
  bool numeric = unsignedText.find_first_not_of("0123456789.eE+-") == StringRef::npos &&
                 unsignedText.find_first_of("0123456789") <= 1 &&
                 StringRef(".0123456789").contains(unsignedText.front());
  if (!numeric)
    return Value(text.str(), std::move(place));
  const char *begin = text.begin() + (text.front() == '+'), *end = text.end();
  if (unsignedText.find_first_not_of("0123456789") == StringRef::npos) {
    int64_t integer = 0;
    bool leadingZero = unsignedText.size() > 1 && unsignedText.front() == '0'; // octal elsewhere
    auto [at, error] = std::from_chars(begin, end, integer);
    if (error == std::errc() && at == end && !leadingZero)
      return Value(integer, std::move(place));
    return Value(text.str(), std::move(place));
  }
  double number = 0;
  auto [at, error] = std::from_chars(begin, end, number);
  if (error == std::errc() && at == end && std::isfinite(number))
    return Value(number, std::move(place));
  return Value(text.str(), std::move(place));
}

llvm::Error checkKeys(const Value &map, StringRef what, llvm::ArrayRef<StringRef> accepted) {
  if (!map.asMap())
    return failAt(map.place, what + " must be a map, got " + map.describe());
  for (const Entry &entry : *map.asMap())
    if (!llvm::is_contained(accepted, entry.key))
      return failAt(entry.place,
                    "unknown key '" + entry.key + "'; accepted: " + llvm::join(accepted, ", "));
  return llvm::Error::success();
}

} // namespace tenon
