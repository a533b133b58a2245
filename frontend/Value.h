// A value of a YAML or JSON file, or of an expression in one, and where it stands.
//
// The whole frontend works on this one type: yaml-cpp is seen by Yaml.cpp alone.
#ifndef TENON_FRONTEND_VALUE_H
#define TENON_FRONTEND_VALUE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace tenon {

// `file:line:column`, counted from 1. What has no lines (a GGUF file, an option) has only a name.
struct Place {
  std::shared_ptr<const std::string> file;
  int line = 0, column = 0;

  static Place inFile(const llvm::Twine &file) {
    return {std::make_shared<const std::string>(file.str()), 0, 0};
  }
  std::string str() const;
};

// `PLACE: error: MESSAGE`, on one line whatever the message holds.
llvm::Error failAt(const Place &place, const llvm::Twine &message);

struct Entry;

struct Value {
  using List = std::vector<Value>;
  using Map = std::vector<Entry>; // in file order
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Map> data;
  Place place;

  Value() = default;
  template <typename T>
  Value(T &&data, Place place) : data(std::forward<T>(data)), place(std::move(place)) {}

  bool isNull() const { return std::holds_alternative<std::monostate>(data); }
  const bool *asFlag() const { return std::get_if<bool>(&data); }
  const int64_t *asInteger() const { return std::get_if<int64_t>(&data); }
  bool isNumber() const { return asInteger() || std::holds_alternative<double>(data); }
  double getNumber() const; // of an integer too
  const std::string *asString() const { return std::get_if<std::string>(&data); }
  const List *asList() const { return std::get_if<List>(&data); }
  const Map *asMap() const { return std::get_if<Map>(&data); }
  Map *asMap() { return std::get_if<Map>(&data); }

  // The member of a map; null when there is none or this is no map.
  const Value *find(llvm::StringRef key) const;
  // The same through nested maps: "rope.scaling.factor".
  const Value *findPath(llvm::StringRef path) const;
  // Sets a member through nested maps, which are made as needed.
  void setPath(llvm::StringRef path, Value value, const Place &keyPlace);

  // Without the members of maps that are null.
  Value withoutNulls() const;

  // As a message says it: 3, 'silu', true, null, a list, a map.
  std::string describe() const;
  // As YAML flow text that reads back as the same value.
  std::string print() const;

  // Scalars and structure alike; places don't matter, 2 and 2.0 are equal.
  bool operator==(const Value &other) const;
};

struct Entry {
  std::string key;
  Place place; // of the key
  Value value;

  bool operator==(const Entry &other) const { return key == other.key && value == other.value; }
};

// What an unquoted scalar means: null, true, 17, 1.0e-5, or else a string. Numbers must be finite
// and integers fit 64 bits, so that `.inf` and `1e999` are strings and refused where a number is
// due.
Value parseScalar(llvm::StringRef text, Place place);

// Refuses keys of a map that are not in the list: "unknown key 'x'; accepted: a, b".
llvm::Error checkKeys(const Value &map, llvm::StringRef what,
                      llvm::ArrayRef<llvm::StringRef> accepted);

// The shortest text that reads back as the same number.
std::string printNumber(double number);

} // namespace tenon

#endif // TENON_FRONTEND_VALUE_H
