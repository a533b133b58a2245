#include "frontend/Parameters.h"
#include "frontend/Expression.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <limits>

using llvm::StringRef;

namespace tenon {

namespace {

// Without a range an integer is a size: positive, and products of a few of them fit 64 bits.
constexpr double defaultMaxInteger = 1 << 24;
// Doubles hold integers exactly up to here.
constexpr double largestInteger = int64_t(1) << 53;

bool isWord(StringRef text) {
  return !text.empty() && llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

} // namespace

//===------------------------------------------------------------------------------------------===//
// One parameter
//===------------------------------------------------------------------------------------------===//

static llvm::Error badDeclaration(const Place &place, StringRef text) {
  return failAt(place,
                "cannot read the declaration '" + text +
                    "'; accepted: integer [MIN..MAX], number [MIN..MAX], flag or word | word, each "
                    "with or without 'list of' and '= DEFAULT'");
}

// "integer 1..4096 = 8"
static llvm::Expected<Parameter> readParameter(const std::string &name, const Place &place,
                                               const Value &declaration) {
  const std::string *text = declaration.asString();
  if (!text)
    return badDeclaration(declaration.place, declaration.print());
  Parameter parameter;
  parameter.name = name;
  parameter.place = place;

  auto [head, fallback] = StringRef(*text).split('=');
  if (head.size() != text->size())
    parameter.fallback = parseScalar(fallback.trim(), declaration.place);
  head = head.trim();
  parameter.isList = head.consume_front("list of ");
  auto [type, range] = head.split(' ');
  bool integer = type == "integer", number = type == "number";
  double lowest = integer ? 1 : -std::numeric_limits<double>::max();
  double highest = integer ? defaultMaxInteger : std::numeric_limits<double>::max();
  auto readBound = [&](StringRef bound, double &value) {
    Value number = parseScalar(bound.trim(), declaration.place);
    if (number.isNumber())
      value = number.getNumber();
    return number.isNull() || number.isNumber();
  };
  parameter.min = lowest;
  parameter.max = highest;

  if (integer || number) {
    parameter.type = integer ? Parameter::Type::Integer : Parameter::Type::Number;
    size_t dots = range.find("..");
    bool good = range.trim().empty() ||
                (dots != StringRef::npos && readBound(range.take_front(dots), parameter.min) &&
                 readBound(range.drop_front(dots + 2), parameter.max));
    if (!good || (integer && parameter.max > largestInteger))
      return badDeclaration(declaration.place, *text);
  } else if (type == "flag" && range.empty()) {
    parameter.type = Parameter::Type::Flag;
  } else {
    parameter.type = Parameter::Type::Word;
    for (StringRef word : llvm::split(head, '|')) {
      if (!isWord(word.trim()))
        return badDeclaration(declaration.place, *text);
      parameter.words.push_back(word.trim().str());
    }
  }
  return parameter;
}

std::string Parameter::describe() const {
  if (isList)
    return "a list, each " + element().describe();
  auto bound = [&](double value) {
    return type == Type::Integer ? std::to_string(int64_t(value)) : printNumber(value);
  };
  switch (type) {
  case Type::Flag:
    return "true or false";
  case Type::Word:
    return (words.size() > 1 ? "one of " : "") + llvm::join(words, ", ");
  case Type::Integer:
  case Type::Number:
    break;
  }
  std::string text = type == Type::Integer ? "an integer" : "a number";
  if (min > -std::numeric_limits<double>::max())
    text += " from " + bound(min);
  if (max < std::numeric_limits<double>::max())
    text += " to " + bound(max);
  return text;
}

Parameter Parameter::element() const {
  Parameter result = *this;
  result.isList = false;
  return result;
}

llvm::Error Parameter::check(const Value &value) const {
  if (isList && value.asList()) {
    for (const Value &item : *value.asList())
      if (llvm::Error error = element().check(item))
        return error;
    return llvm::Error::success();
  }
  bool good = false;
  switch (type) {
  case Type::Flag:
    good = value.asFlag();
    break;
  case Type::Word:
    good = value.asString() && llvm::is_contained(words, *value.asString());
    break;
  case Type::Integer:
    good =
        value.asInteger() && double(*value.asInteger()) >= min && double(*value.asInteger()) <= max;
    break;
  case Type::Number:
    good = value.isNumber() && value.getNumber() >= min && value.getNumber() <= max;
    break;
  }
  if (good && !isList)
    return llvm::Error::success();
  return failAt(value.place, "'" + name + "' must be " + describe() + ", got " + value.describe());
}

//===------------------------------------------------------------------------------------------===//
// All of them
//===------------------------------------------------------------------------------------------===//

llvm::Error Parameters::read(const Value &section, const std::string &prefix) {
  if (!section.asMap())
    return failAt(section.place, "parameters must be a map, got " + section.describe());
  for (const Entry &entry : *section.asMap()) {
    if (!isWord(entry.key))
      return failAt(entry.place,
                    "a parameter's name has letters, digits and '_' only, got '" + entry.key + "'");
    if (entry.value.asMap()) {
      if (llvm::Error error = read(entry.value, prefix + entry.key + "."))
        return error;
      continue;
    }
    llvm::Expected<Parameter> parameter =
        readParameter(prefix + entry.key, entry.place, entry.value);
    if (!parameter)
      return parameter.takeError();
    parameters.push_back(std::move(*parameter));
  }
  return llvm::Error::success();
}

llvm::Expected<Parameters> Parameters::read(const Value &section) {
  Parameters result;
  if (llvm::Error error = result.read(section, ""))
    return error;
  return result;
}

const Parameter *Parameters::find(StringRef name) const {
  auto at =
      llvm::find_if(parameters, [&](const Parameter &parameter) { return parameter.name == name; });
  return at == parameters.end() ? nullptr : &*at;
}

bool Parameters::isGroup(StringRef name) const {
  return llvm::any_of(parameters, [&](const Parameter &parameter) {
    StringRef rest = parameter.name;
    return rest.consume_front(name) && rest.starts_with(".");
  });
}

std::string Parameters::names() const {
  return llvm::join(llvm::map_range(parameters, [](const Parameter &p) { return p.name; }), ", ");
}

llvm::Error Parameters::checkConfig(const Value &config, const std::string &prefix) const {
  for (const Entry &entry : *config.asMap()) {
    std::string name = prefix + entry.key;
    if (const Parameter *parameter = find(name)) {
      if (!entry.value.isNull())
        if (llvm::Error error = parameter->check(entry.value))
          return error;
    } else if (!isGroup(name)) {
      return failAt(entry.place, "unknown parameter '" + name + "'; accepted: " + names());
    } else if (entry.value.asMap()) {
      if (llvm::Error error = checkConfig(entry.value, name + "."))
        return error;
    } else if (!entry.value.isNull()) {
      return failAt(entry.value.place,
                    "'" + name + "' must be a map, got " + entry.value.describe());
    }
  }
  return llvm::Error::success();
}

// A group stands where the config has it.
static void copyPlaces(const Value &from, Value &to) {
  to.place = from.place;
  if (Value::Map *map = to.asMap())
    for (Entry &entry : *map)
      if (const Value *value = from.find(entry.key))
        copyPlaces(*value, entry.value);
}

// Groups without any value become null, so that `$rope.scaling` is null when there is no scaling.
static void dropEmptyGroups(Value &value) {
  Value::Map *map = value.asMap();
  if (!map)
    return;
  for (Entry &entry : *map)
    dropEmptyGroups(entry.value);
  if (llvm::all_of(*map, [](const Entry &entry) { return entry.value.isNull(); }))
    value.data = std::monostate();
}

llvm::Expected<Value> Parameters::bind(const Value &config) const {
  if (!config.asMap())
    return failAt(config.place, "'config' must be a map, got " + config.describe());
  if (llvm::Error error = checkConfig(config, ""))
    return error;
  Value bound(Value::Map(), config.place);
  for (const Parameter &parameter : parameters) {
    const Value *given = config.findPath(parameter.name);
    if (given && !given->isNull()) {
      bound.setPath(parameter.name, *given, given->place);
      continue;
    }
    if (!parameter.fallback)
      return failAt(given ? given->place : config.place,
                    "'" + parameter.name + "' is missing; accepted: " + parameter.describe());
    // What a default is computed from stands in the model file, and so does the mistake if it
    // cannot be.
    Value expression = *parameter.fallback;
    if (expression.asString() && expression.asString()->find('$') != std::string::npos)
      expression.place = config.place;
    llvm::Expected<Value> fallback = evaluate(expression, {&bound, {}});
    if (!fallback)
      return llvm::createStringError(llvm::toString(fallback.takeError()) + ", the default of '" +
                                     parameter.name + "'");
    if (!fallback->isNull())
      if (llvm::Error error = parameter.check(*fallback))
        return error;
    bound.setPath(parameter.name, *fallback, fallback->place);
  }
  copyPlaces(config, bound);
  for (Entry &entry : *bound.asMap())
    dropEmptyGroups(entry.value);
  return bound;
}

} // namespace tenon
