// The frequency table behind `llm.rope_frequencies`: RoPE (arXiv:2104.09864) and its scalings.
#include "ir/LLM.h"
#include <cmath>

using namespace mlir;

namespace tenon::llm {

namespace {

// A number of the scaling map; the verifier has made sure that it is there.
double number(DictionaryAttr scaling, StringRef key) {
  return scaling.getAs<FloatAttr>(key).getValueAsDouble();
}

double number(DictionaryAttr scaling, StringRef key, double fallback) {
  return scaling.get(key) ? number(scaling, key) : fallback;
}

StringRef type(DictionaryAttr scaling) { return scaling.getAs<StringAttr>("type").getValue(); }

} // namespace

LogicalResult RopeFrequenciesOp::verify() {
  if (getDim() % 2)
    return emitOpError() << "dim (" << getDim() << ") must be even: pairs are rotated";
  if (!(getTheta().convertToDouble() > 0))
    return emitOpError() << "theta must be positive";
  DictionaryAttr scaling = getScalingAttr();
  if (!scaling)
    return success();
  auto name = scaling.getAs<StringAttr>("type");
  if (!name)
    return emitOpError()
           << "scaling needs a type: linear, divided, llama3, yarn, longrope or dynamic";
  SmallVector<StringRef> keys, optional, lists;
  StringAttr edges;
  if (name.getValue() == "linear")
    keys = {"factor"};
  else if (name.getValue() == "divided")
    lists = {"by"};
  else if (name.getValue() == "llama3")
    keys = {"factor", "low", "high", "original"};
  else if (name.getValue() == "yarn")
    keys = {"factor", "original"}, optional = {"slow", "fast", "attention"},
    edges = scaling.getAs<StringAttr>("edges");
  else if (name.getValue() == "longrope")
    keys = {"original"}, optional = {"factor", "attention"}, lists = {"short", "long"};
  else if (name.getValue() == "dynamic")
    keys = {"factor", "original"};
  else
    return emitOpError() << "unknown scaling type '" << name.getValue()
                         << "'; accepted: linear, divided, llama3, yarn, longrope, dynamic";
  for (StringRef key : llvm::concat<StringRef>(keys, optional)) {
    auto value = scaling.getAs<FloatAttr>(key);
    if (!scaling.get(key) && llvm::is_contained(optional, key))
      continue;
    if (!value || !(value.getValueAsDouble() > 0))
      return emitOpError() << "scaling " << name.getValue() << " needs a positive number '" << key
                           << "'";
  }
  for (StringRef key : lists) {
    auto list = scaling.getAs<ArrayAttr>(key);
    auto isPositive = [](Attribute value) {
      auto number = dyn_cast<FloatAttr>(value);
      return number && number.getValueAsDouble() > 0;
    };
    if (!list || list.size() != getDim() / 2 || !llvm::all_of(list, isPositive))
      return emitOpError() << "scaling " << name.getValue() << " needs a list '" << key << "' of "
                           << getDim() / 2 << " positive numbers, one for each pair";
  }
  if (edges && edges.getValue() != "whole" && edges.getValue() != "exact")
    return emitOpError() << "scaling yarn has edges '" << edges.getValue()
                         << "'; accepted: whole, exact";
  for (NamedAttribute entry : scaling)
    if (entry.getName() != "type" && entry.getValue() != edges &&
        !llvm::is_contained(keys, entry.getName().getValue()) &&
        !llvm::is_contained(optional, entry.getName().getValue()) &&
        !llvm::is_contained(lists, entry.getName().getValue()))
      return emitOpError() << "scaling " << name.getValue() << " has no key '"
                           << entry.getName().getValue() << "'";
  if (name.getValue() == "llama3" && number(scaling, "low") >= number(scaling, "high"))
    return emitOpError() << "scaling llama3 needs low < high";
  if (name.getValue() == "dynamic" && number(scaling, "factor") < 1)
    return emitOpError() << "scaling dynamic needs a factor of at least 1";
  return success();
}

SmallVector<double> RopeFrequenciesOp::evaluate() {
  SmallVector<double> table(getDim() / 2);
  for (auto [i, frequency] : llvm::enumerate(table))
    frequency = std::pow(getTheta().convertToDouble(), -2.0 * double(i) / double(getDim()));
  DictionaryAttr scaling = getScalingAttr();
  if (!scaling)
    return table;

  if (type(scaling) == "dynamic")
    return table;

  // Each pair by a number of its own.
  SmallVector<double> rows;
  for (StringRef key : {"by", "short", "long"})
    if (auto divisors = scaling.getAs<ArrayAttr>(key))
      for (auto [frequency, divisor] : llvm::zip_equal(table, divisors.getAsRange<FloatAttr>()))
        rows.push_back(frequency / divisor.getValueAsDouble());
  if (!rows.empty())
    return rows;

  double factor = number(scaling, "factor");
  if (type(scaling) == "linear") {
    for (double &frequency : table)
      frequency /= factor;
    return table;
  }

  if (type(scaling) == "yarn") {
    // The index of the pair that turns this often within the original context, as a real number.
    auto indexOf = [&](double turns) {
      return double(getDim()) * std::log(number(scaling, "original") / (turns * 2 * M_PI)) /
             (2 * std::log(getTheta().convertToDouble()));
    };
    double last = double(getDim()) - 1;
    double first = indexOf(number(scaling, "fast", 32)), end = indexOf(number(scaling, "slow", 1));
    auto edges = scaling.getAs<StringAttr>("edges");
    if (!edges || edges.getValue() == "whole")
      first = std::floor(first), end = std::ceil(end);
    first = std::max(first, 0.0), end = std::min(end, last);
    if (first == end)
      end += 0.001;
    for (auto [i, frequency] : llvm::enumerate(table)) {
      double slowed = std::clamp((double(i) - first) / (end - first), 0.0, 1.0);
      frequency = (1 - slowed) * frequency + slowed * frequency / factor;
    }
    return table;
  }

  // llama3: a pair that turns more than `high` times within the original context is kept, one that
  // turns less than `low` times is slowed down by `factor`, and those between are blended.
  double low = number(scaling, "low"), high = number(scaling, "high"),
         original = number(scaling, "original");
  for (double &frequency : table) {
    double turns = original * frequency / (2 * M_PI);
    double keep = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    frequency = keep * frequency + (1 - keep) * frequency / factor;
  }
  return table;
}

double RopeFrequenciesOp::getAngleFactor() {
  DictionaryAttr scaling = getScalingAttr();
  if (!scaling || (type(scaling) != "yarn" && type(scaling) != "longrope"))
    return 1;
  double factor = number(scaling, "factor", 1), usual = 1;
  if (factor > 1)
    usual = type(scaling) == "yarn"
                ? 0.1 * std::log(factor) + 1
                : std::sqrt(1 + std::log(factor) / std::log(number(scaling, "original")));
  return number(scaling, "attention", usual);
}

SmallVector<float> SinusoidalOp::evaluate(int64_t first, int64_t count) {
  int64_t columns = getResult().getType().getColumns(), sines = (columns + 1) / 2;
  bool isHalved = getOrder() == SinusoidOrder::halves;
  SmallVector<float> table(count * columns);
  for (int64_t row = 0; row < count; ++row)
    for (int64_t i = 0; i < columns; ++i) {
      int64_t pair = i / 2, column = !isHalved ? i : i % 2 ? sines + pair : pair;
      double angle = double(first + row) * std::pow(10000.0, -2.0 * double(pair) / double(columns));
      table[row * columns + column] = float(i % 2 ? std::cos(angle) : std::sin(angle));
    }
  return table;
}

} // namespace tenon::llm
