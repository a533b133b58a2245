#include "frontend/Checkpoint.h"
#include "frontend/Expression.h"
#include "frontend/weights/StoredWeights.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using llvm::StringRef;

namespace tenon {

bool matchPattern(StringRef pattern, StringRef name,
                  std::vector<std::pair<std::string, int64_t>> &found) {
  while (true) {
    auto [literal, rest] = pattern.split('$');
    if (!name.consume_front(literal))
      return false;
    if (literal.size() == pattern.size())
      return name.empty();
    StringRef word = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    StringRef digits = name.take_while(llvm::isDigit);
    int64_t number;
    if (digits.getAsInteger(10, number) || std::to_string(number) != digits)
      return false;
    found.emplace_back(word.str(), number);
    pattern = rest.drop_front(word.size());
    name = name.drop_front(digits.size());
  }
}

static std::string printShape(llvm::ArrayRef<int64_t> shape) {
  return "[" +
         llvm::join(llvm::map_range(shape, [](int64_t size) { return std::to_string(size); }),
                    ", ") +
         "]";
}

// The checkpoint's name and transforms for a canonical name.
llvm::Expected<StoredTensor> Checkpoint::translate(const std::string &stem,
                                                   const Place &place) const {
  StoredTensor stored;
  const Value *names = source && section ? section->find("tensors") : nullptr;
  if (!names) {
    stored.name = stem;
    return stored;
  }
  if (!names->asMap())
    return failAt(names->place, "'tensors' must be a map of names");
  for (const Entry &entry : *names->asMap()) {
    Scope scope{&parameters, {}};
    if (!matchPattern(entry.key, stem, scope.variables))
      continue;
    const Value *name = &entry.value;
    if (entry.value.asMap()) {
      if (llvm::Error error =
              checkKeys(entry.value, "a tensor", {"name", "deinterleave", "from_row", "of_rows"}))
        return error;
      name = entry.value.find("name");
    }
    llvm::Expected<Value> text =
        name ? evaluate(*name, scope) : Value(std::monostate(), entry.place);
    if (!text)
      return text.takeError();
    if (!text->asString())
      return failAt(text->place,
                    "'" + entry.key + "' needs a name in the file, got " + text->describe());
    stored.name = *text->asString();
    auto read = [&](StringRef key, int64_t least, StringRef what, int64_t &number) -> llvm::Error {
      const Value *expression = entry.value.find(key);
      if (!expression)
        return llvm::Error::success();
      llvm::Expected<Value> value = evaluate(*expression, scope);
      if (!value)
        return value.takeError();
      if (!value->asInteger() || *value->asInteger() < least)
        return failAt(value->place,
                      "'" + key + "' must be a number of " + what + ", got " + value->describe());
      number = *value->asInteger();
      return llvm::Error::success();
    };
    if (llvm::Error error = read("deinterleave", 1, "heads", stored.deinterleaveHeads))
      return error;
    if (llvm::Error error = read("from_row", 0, "rows", stored.firstRow))
      return error;
    if (llvm::Error error = read("of_rows", 1, "rows", stored.ofRows))
      return error;
    return stored;
  }
  return failAt(place, "no name in 'tensors' (line " + llvm::Twine(names->place.line) + ") for '" +
                           stem + "'");
}

// "h.0.ln_1.weight" for "transformer.h.0.ln_1.weight" where the section says `base: transformer`.
std::string Checkpoint::withoutBase(StringRef name) const {
  const Value *base = section ? section->find("base") : nullptr;
  if (base && base->asString())
    name.consume_front(*base->asString() + ".");
  return name.str();
}

llvm::Expected<StoredTensor> Checkpoint::resolve(const std::string &stem, const std::string &suffix,
                                                 llvm::ArrayRef<int64_t> shape,
                                                 const Place &place) {
  llvm::Expected<StoredTensor> stored = translate(stem, place);
  if (!stored)
    return stored.takeError();
  stored->name += suffix;
  if (!source)
    return stored;
  // A file of the base model alone has its tensors without the prefix.
  std::string bare = withoutBase(stored->name);
  if (!source->find(stored->name) && source->find(bare))
    stored->name = bare;
  const TensorInfo *info = source->find(stored->name);
  llvm::SmallVector<int64_t, 4> whole(shape);
  if (stored->ofRows) {
    if (stored->firstRow + shape.front() > stored->ofRows)
      return failAt(place, "'" + stem + "' is " + llvm::Twine(shape.front()) + " rows from row " +
                               llvm::Twine(stored->firstRow) + " on, of only " +
                               llvm::Twine(stored->ofRows));
    whole[0] = stored->ofRows;
  }
  Place file = Place::inFile(source->getName());
  if (!info) {
    const auto *reader = dynamic_cast<const StoredWeights *>(source);
    if (reader && !reader->explain(stored->name).empty())
      return failAt(file, reader->explain(stored->name));
    return failAt(file,
                  "tensor '" + stored->name + "' is missing; expected shape " + printShape(whole));
  }
  // A part may be rows of a stack of matrices, counted through all of them.
  llvm::SmallVector<int64_t, 4> found(info->shape);
  while (stored->ofRows && found.size() > whole.size()) {
    found[1] *= found[0];
    found.erase(found.begin());
  }
  // A vector may be stored as a matrix of one row.
  if (whole.size() == 1 && found.size() == 2 && found[0] == 1)
    found.erase(found.begin());
  if (found != whole)
    return failAt(file, "tensor '" + stored->name + "' has shape " + printShape(info->shape) +
                            ", expected " + printShape(whole));
  int64_t rows = shape.front(), heads = stored->deinterleaveHeads;
  if (heads && rows % (2 * heads))
    return failAt(file, "tensor '" + stored->name + "' has " + llvm::Twine(rows) +
                            " rows, which are not pairs in " + llvm::Twine(heads) + " heads");
  stored->storage = info->storage;
  used.insert(stored->name);
  return stored;
}

// A pattern, or {name: PATTERN, when: CONDITION}.
llvm::Expected<bool> Checkpoint::isIgnored(StringRef tensor, const Value &rule) const {
  const Value *pattern = &rule;
  if (rule.asMap()) {
    if (llvm::Error error = checkKeys(rule, "an ignored tensor", {"name", "when"}))
      return error;
    pattern = rule.find("name");
    if (const Value *when = rule.find("when")) {
      llvm::Expected<Value> holds = evaluate(*when, {&parameters, {}});
      if (!holds)
        return holds.takeError();
      if (!holds->asFlag())
        return failAt(holds->place, "'when' must be true or false, got " + holds->describe());
      if (!*holds->asFlag())
        return false;
    }
  }
  if (!pattern || !pattern->asString())
    return failAt(rule.place, "an ignored tensor must be a name or {name: ..., when: ...}");
  std::vector<std::pair<std::string, int64_t>> found;
  return matchPattern(*pattern->asString(), tensor, found) ||
         matchPattern(withoutBase(*pattern->asString()), tensor, found);
}

llvm::Error Checkpoint::checkSurplus(StringRef architecture) const {
  if (!source)
    return llvm::Error::success();
  const Value *ignored = section ? section->find("ignored_tensors") : nullptr;
  if (ignored && !ignored->asList())
    return failAt(ignored->place, "'ignored_tensors' must be a list");
  std::vector<StringRef> names;
  for (const TensorInfo &tensor : source->getTensors())
    names.push_back(tensor.name);
  if (const auto *reader = dynamic_cast<const StoredWeights *>(source))
    for (const StoredWeights::UnreadableTensor &tensor : reader->getUnreadable())
      names.push_back(tensor.name);
  StringRef first;
  int64_t surplus = 0;
  for (StringRef name : names) {
    bool known = used.contains(name);
    for (size_t i = 0; ignored && !known && i < ignored->asList()->size(); ++i) {
      llvm::Expected<bool> skip = isIgnored(name, (*ignored->asList())[i]);
      if (!skip)
        return skip.takeError();
      known = *skip;
    }
    if (!known && !surplus++)
      first = name;
  }
  if (!surplus)
    return llvm::Error::success();
  std::string others = surplus > 1 ? " (and " + std::to_string(surplus - 1) + " more)" : "";
  return failAt(Place::inFile(source->getName()), "tensor '" + first + "'" + others +
                                                      " is not read by architecture '" +
                                                      architecture + "'");
}

} // namespace tenon
