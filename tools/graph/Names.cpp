// Short texts for tensors, bytes and families; see GraphModel.h.
#include "tools/graph/GraphModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace tenon::graph {

StringRef getName(Family family) {
  switch (family) {
  case Family::embedding:
    return "embedding";
  case Family::norm:
    return "norm";
  case Family::linear:
    return "linear";
  case Family::rope:
    return "rope";
  case Family::attention:
    return "attention";
  case Family::cache:
    return "cache";
  case Family::elementwise:
    return "elementwise";
  case Family::view:
    return "view";
  case Family::other:
    break;
  }
  return "other";
}

Family getFamily(StringRef mnemonic) {
  StringRef name = mnemonic.rsplit('.').second;
  if (name.empty())
    name = mnemonic;
  auto has = [&](StringRef part) { return name.contains(part); };
  if (has("norm"))
    return Family::norm;
  if (has("rope") || has("position"))
    return Family::rope;
  if (has("embedding"))
    return Family::embedding;
  if (has("attention"))
    return Family::attention;
  if (has("kv_append") || has("kv_read") || has("cache"))
    return Family::cache;
  if (has("linear") || has("expert") || has("router"))
    return Family::linear;
  if (has("slice") || has("gather") || has("repeat") || has("select"))
    return Family::view;
  if (has("add") || has("mul") || has("activation") || has("softcap") || has("scale"))
    return Family::elementwise;
  return Family::other;
}

std::string formatBytes(int64_t bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes;
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  // Three digits, no zeros at the end.
  std::string text = formatv(value < 10 ? "{0:f2}" : value < 100 ? "{0:f1}" : "{0:f0}", value);
  if (StringRef(text).contains('.'))
    text = StringRef(text).rtrim('0').rtrim('.').str();
  return text + " " + units[unit];
}

// "layers.12.q" becomes "layers.", "12", ".q": digits are at odd places.
static SmallVector<StringRef> splitDigits(StringRef text) {
  SmallVector<StringRef> runs;
  while (!text.empty() || runs.size() % 2) {
    bool digits = runs.size() % 2;
    size_t length = digits ? text.find_if_not(isDigit) : text.find_if(isDigit);
    runs.push_back(text.take_front(length));
    text = text.drop_front(runs.back().size());
  }
  return runs;
}

// 0, 1, 2 becomes "{0…2}"; 5, 11, 17 becomes "{5, 11…17}".
static std::string mergeNumbers(ArrayRef<StringRef> numbers) {
  SmallVector<int64_t> values;
  for (StringRef number : numbers) {
    int64_t value;
    if (number.getAsInteger(10, value))
      return "…";
    values.push_back(value);
  }
  int64_t step = values[1] - values[0];
  for (size_t i = 1; i < values.size(); ++i)
    if (values[i] - values[i - 1] != step)
      return "{…}";
  std::string second = step == 1 ? "" : ", " + std::to_string(values[1]);
  return "{" + std::to_string(values[0]) + second + "…" + std::to_string(values.back()) + "}";
}

std::string mergeNames(ArrayRef<std::string> names) {
  if (names.empty())
    return "";
  if (all_equal(names))
    return names[0];
  SmallVector<SmallVector<StringRef>> split;
  for (const std::string &name : names)
    split.push_back(splitDigits(name));
  std::string merged;
  for (size_t i = 0; i < split[0].size(); ++i) {
    SmallVector<StringRef> column;
    for (auto &runs : split)
      column.push_back(runs.size() == split[0].size() ? runs[i] : "");
    if (all_equal(column))
      merged += split[0][i];
    else if (i % 2)
      merged += mergeNumbers(column);
    else
      return names[0] + ", …";
  }
  return merged;
}

std::string getShortName(ArrayRef<std::string> tensors) {
  SmallVector<StringRef> parts;
  for (StringRef name : tensors) {
    for (StringRef suffix : {".weight", ".bias"})
      name.consume_back(suffix);
    parts.push_back(name.contains('.') ? name.rsplit('.').second : name);
  }
  if (parts.empty())
    return "";
  // q_proj, k_proj or attn_q, attn_k: what they share once.
  StringRef beginning, ending;
  if (size_t at = parts[0].rfind('_'); at != StringRef::npos && parts.size() > 1) {
    beginning = parts[0].take_front(at + 1);
    ending = parts[0].drop_front(at);
  }
  if (!all_of(parts, [&](StringRef part) { return part.ends_with(ending); }))
    ending = "";
  if (!all_of(parts, [&](StringRef part) { return part.starts_with(beginning); }) ||
      !ending.empty())
    beginning = "";
  std::string text;
  for (StringRef part : parts)
    text += (text.empty() ? "" : "+") +
            part.drop_front(beginning.size()).drop_back(ending.size()).str();
  return (beginning + text + ending).str();
}

} // namespace tenon::graph
