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
    return emitOpError() << "scaling needs a type: linear or llama3";
  SmallVector<StringRef> keys;
  if (name.getValue() == "linear")
    keys = {"factor"};
  else if (name.getValue() == "llama3")
    keys = {"factor", "low", "high", "original"};
  else
    return emitOpError() << "unknown scaling type '" << name.getValue()
                         << "'; accepted: linear, llama3";
  for (StringRef key : keys) {
    auto value = scaling.getAs<FloatAttr>(key);
    if (!value || !(value.getValueAsDouble() > 0))
      return emitOpError() << "scaling " << name.getValue() << " needs a positive number '" << key
                           << "'";
  }
  for (NamedAttribute entry : scaling)
    if (entry.getName() != "type" && !llvm::is_contained(keys, entry.getName().getValue()))
      return emitOpError() << "scaling " << name.getValue() << " has no key '"
                           << entry.getName().getValue() << "'";
  if (name.getValue() == "llama3" && number(scaling, "low") >= number(scaling, "high"))
    return emitOpError() << "scaling llama3 needs low < high";
  return success();
}

SmallVector<double> RopeFrequenciesOp::evaluate() {
  SmallVector<double> table(getDim() / 2);
  for (auto [i, frequency] : llvm::enumerate(table))
    frequency = std::pow(getTheta().convertToDouble(), -2.0 * double(i) / double(getDim()));
  DictionaryAttr scaling = getScalingAttr();
  if (!scaling)
    return table;

  double factor = number(scaling, "factor");
  if (type(scaling) == "linear") {
    for (double &frequency : table)
      frequency /= factor;
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

} // namespace tenon::llm
