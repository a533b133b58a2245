#include "frontend/ConfigMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using llvm::StringRef;

namespace tenon {

static void flattenInto(std::vector<Entry> &keys, const Value &map, const std::string &prefix) {
  for (const Entry &entry : *map.asMap()) {
    const Value::Map *members = entry.value.asMap();
    if (members && !members->empty())
      flattenInto(keys, entry.value, prefix + entry.key + ".");
    else // {} is as good as null
      keys.push_back({prefix + entry.key, entry.place,
                      members ? Value(std::monostate(), entry.value.place) : entry.value});
  }
}

std::vector<Entry> flatten(const Value &map) {
  std::vector<Entry> keys;
  flattenInto(keys, map, "");
  return keys;
}

static bool matches(StringRef key, StringRef pattern) {
  return pattern.consume_back("*") ? key.starts_with(pattern) : key == pattern;
}

namespace {

class Mapper {
public:
  Mapper(const ConfigMapping &mapping, const Place &file)
      : config(Value::Map(), file), mapping(mapping) {}

  llvm::Error check();
  llvm::Error add(const Entry &key);
  llvm::Error addDefault(const Entry &key);

  Value config;

private:
  bool isIgnored(StringRef key) const;
  llvm::Expected<Value> translate(const Entry &key, const Value &rule) const;

  const ConfigMapping &mapping;
  // Which key has set a parameter.
  std::vector<std::pair<std::string, std::string>> setBy;
};

llvm::Error badRule(const Entry &rule) {
  return failAt(rule.place,
                "'" + rule.key +
                    "' must be a parameter, {to: PARAMETER, values: {...}} or {only: [...]}");
}

// The rules themselves, so that later steps need not look twice.
llvm::Error Mapper::check() {
  const Value *rules = mapping.section.find("config");
  if (!rules || !rules->asMap())
    return failAt(mapping.section.place, "'config' is missing; accepted: a map");
  for (const Entry &rule : *rules->asMap()) {
    if (rule.value.asString())
      continue;
    const Value *to = rule.value.find("to"), *values = rule.value.find("values"),
                *only = rule.value.find("only");
    bool renames = to && to->asString() && values && values->asMap() && !only;
    bool restricts = only && only->asList() && !to && !values;
    if (!renames && !restricts)
      return badRule(rule);
  }
  if (const Value *ignored = mapping.section.find("ignored"))
    if (!ignored->asList() ||
        !llvm::all_of(*ignored->asList(), [](const Value &v) { return v.asString(); }))
      return failAt(ignored->place, "'ignored' must be a list of keys");
  return llvm::Error::success();
}

bool Mapper::isIgnored(StringRef key) const {
  const Value *ignored = mapping.section.find("ignored");
  return ignored && llvm::any_of(*ignored->asList(), [&](const Value &pattern) {
           return matches(key, *pattern.asString());
         });
}

std::string listValues(const Value::List &values) {
  return llvm::join(llvm::map_range(values, [](const Value &value) { return value.print(); }),
                    ", ");
}

// Applies `values` or `only`.
llvm::Expected<Value> Mapper::translate(const Entry &key, const Value &rule) const {
  auto refuse = [&](const std::string &accepted) {
    return failAt(key.value.place,
                  "'" + key.key + "' is " + key.value.print() + "; accepted: " + accepted);
  };
  if (const Value *only = rule.find("only")) {
    const Value::List single = {key.value};
    for (const Value &element : key.value.asList() ? *key.value.asList() : single)
      if (!llvm::is_contained(*only->asList(), element))
        return refuse(listValues(*only->asList()));
    return key.value;
  }
  const Value *values = rule.find("values");
  if (!values || key.value.isNull())
    return key.value;
  for (const Entry &word : *values->asMap())
    if (word.key == (key.value.asString() ? *key.value.asString() : key.value.print())) {
      Value value = word.value;
      value.place = key.value.place;
      return value;
    }
  return refuse(llvm::join(
      llvm::map_range(*values->asMap(), [](const Entry &word) { return word.key; }), ", "));
}

llvm::Error Mapper::add(const Entry &key) {
  const Value &rules = *mapping.section.find("config");
  const Value *rule = rules.find(key.key);
  if (!rule) {
    // A map that is null has none of the keys that could be in it.
    bool absentMap = key.value.isNull() && llvm::any_of(*rules.asMap(), [&](const Entry &other) {
                       StringRef rest = other.key;
                       return rest.consume_front(key.key) && rest.starts_with(".");
                     });
    if (absentMap || isIgnored(key.key) || mapping.allowUnused)
      return llvm::Error::success();
    return failAt(key.place,
                  "unknown key '" + key.key + "'; --allow-unused-config ignores such keys");
  }
  llvm::Expected<Value> value = translate(key, *rule);
  if (!value)
    return value.takeError();
  if (rule->find("only"))
    return llvm::Error::success();
  const std::string &parameter =
      rule->asString() ? *rule->asString() : *rule->find("to")->asString();
  for (const auto &[other, by] : setBy)
    if (other == parameter && !(*config.findPath(parameter) == *value))
      return failAt(key.value.place, "'" + key.key + "' is " + key.value.print() + ", but '" + by +
                                         "' says " + config.findPath(parameter)->print());
  setBy.emplace_back(parameter, key.key);
  config.setPath(parameter, std::move(*value), key.place);
  return llvm::Error::success();
}

// For a key that the file does not have.
llvm::Error Mapper::addDefault(const Entry &key) {
  const Value *rule = mapping.section.find("config")->find(key.key);
  if (!rule)
    return failAt(key.place, "'" + key.key + "' is not in 'config'");
  if (const Value *only = rule->find("only")) {
    if (llvm::is_contained(*only->asList(), key.value))
      return llvm::Error::success();
    return failAt(config.place, "'" + key.key + "' is missing, which means " + key.value.print() +
                                    "; accepted: " + listValues(*only->asList()));
  }
  const std::string &parameter =
      rule->asString() ? *rule->asString() : *rule->find("to")->asString();
  if (!config.findPath(parameter))
    config.setPath(parameter, Value(key.value.data, config.place), key.place);
  return llvm::Error::success();
}

} // namespace

llvm::Expected<Value> mapConfig(const ConfigMapping &mapping, llvm::ArrayRef<Entry> keys,
                                const Place &file) {
  Mapper mapper(mapping, file);
  if (llvm::Error error = mapper.check())
    return error;
  // What is known to be wrong says more than what is not known.
  const Value &rules = *mapping.section.find("config");
  for (bool known : {true, false})
    for (const Entry &key : keys)
      if ((rules.find(key.key) != nullptr) == known)
        if (llvm::Error error = mapper.add(key))
          return error;
  if (mapping.defaults && mapping.defaults->asMap())
    for (const Entry &key : *mapping.defaults->asMap())
      if (llvm::none_of(keys, [&](const Entry &given) { return given.key == key.key; }))
        if (llvm::Error error = mapper.addDefault(key))
          return error;
  return std::move(mapper.config);
}

} // namespace tenon
