// How architecture files build llm operations by their mnemonics. Arguments are documented in
// models/README.md.
#include "ir/LLM.h"
#include "ir/TemplateParts.h"

using namespace mlir;

namespace tenon::llm {

// embedding: {weight: NAME, rows: V, columns: C}
FailureOr<Value> EmbeddingOp::buildFromTemplate(TemplateArgs &args) {
  TENON_READ(rows, args.getInteger("rows"));
  TENON_READ(columns, args.getInteger("columns"));
  TENON_READ(table, args.getWeight("weight", ".weight", {rows, columns}));
  return EmbeddingOp::create(args.getBuilder(), args.getLoc(), args.getBatch(), table).getResult();
}

// position_embedding: {weight: NAME, or sinusoidal: ORDER, rows: P, columns: C, offset: 0}
FailureOr<Value> PositionEmbeddingOp::buildFromTemplate(TemplateArgs &args) {
  TENON_READ(rows, args.getInteger("rows"));
  TENON_READ(columns, args.getInteger("columns"));
  TENON_READ(offset, args.getInteger("offset", 0));
  if (offset < 0 || offset >= rows)
    return args.error("offset",
                      "leaves no position in " + Twine(rows) + " rows, got " + Twine(offset));
  OpBuilder &builder = args.getBuilder();
  if (!args.has("sinusoidal")) {
    TENON_READ(table, args.getWeight("weight", ".weight", {rows, columns}));
    return PositionEmbeddingOp::create(builder, args.getLoc(), args.getBatch(), table, offset)
        .getResult();
  }
  TENON_READ(name, args.getString("sinusoidal"));
  std::optional<SinusoidOrder> order = symbolizeSinusoidOrder(name);
  if (!order)
    return args.error("sinusoidal", "unknown order '" + name + "'; accepted: interleaved, halves");
  if (rows < 1 || columns < 1)
    return args.error("", "a table has rows and columns, not " + Twine(rows) + " and " +
                              Twine(columns));
  auto type = WeightType::get(builder.getContext(), {rows, columns}, Storage::F32);
  Value table = SinusoidalOp::create(builder, args.getLoc(), type, *order);
  return PositionEmbeddingOp::create(builder, args.getLoc(), args.getBatch(), table, offset)
      .getResult();
}

// type_embedding: {weight: NAME, rows: N, columns: C}
FailureOr<Value> TypeEmbeddingOp::buildFromTemplate(TemplateArgs &args) {
  TENON_READ(rows, args.getInteger("rows"));
  TENON_READ(columns, args.getInteger("columns"));
  TENON_READ(table, args.getWeight("weight", ".weight", {rows, columns}));
  return TypeEmbeddingOp::create(args.getBuilder(), args.getLoc(), args.getBatch(), table)
      .getResult();
}

// rms_norm: {weight: NAME, eps: E, heads: H = 1, offset: 0}
FailureOr<Value> RMSNormOp::buildFromTemplate(TemplateArgs &args) {
  Value stream = args.getStream();
  TENON_READ(eps, args.getNumber("eps"));
  TENON_READ(heads, args.getInteger("heads", 1));
  TENON_READ(offset, args.getNumber("offset", 0.0));
  if (heads <= 0 || getColumns(stream) % heads)
    return args.error("heads", Twine(heads) + " heads do not divide " + Twine(getColumns(stream)) +
                                   " columns");
  TENON_READ(weight, args.getWeight("weight", ".weight", {getColumns(stream) / heads}));
  return RMSNormOp::create(args.getBuilder(), args.getLoc(), stream.getType(), stream, weight,
                           heads, APFloat(eps), APFloat(offset))
      .getResult();
}

// layer_norm: {weight: NAME, eps: E, bias: true}
FailureOr<Value> LayerNormOp::buildFromTemplate(TemplateArgs &args) {
  Value stream = args.getStream();
  TENON_READ(eps, args.getNumber("eps"));
  TENON_READ(hasBias, args.getFlag("bias", true));
  TENON_READ(weight, args.getWeight("weight", ".weight", {getColumns(stream)}));
  Value bias;
  if (hasBias) {
    TENON_READ(vector, args.getWeight("weight", ".bias", {getColumns(stream)}));
    bias = vector;
  }
  return LayerNormOp::create(args.getBuilder(), args.getLoc(), stream.getType(), stream, weight,
                             bias, APFloat(eps))
      .getResult();
}

// linear: {weight: NAME, out: N, bias: false or TENSOR, transposed: false, rows: N, first: 0,
//          every: rows, stack: 1}
FailureOr<Value> LinearOp::buildFromTemplate(TemplateArgs &args) {
  Value stream = args.getStream();
  TENON_READ(out, args.getInteger("out"));
  bool isBiasNamed = args.isText("bias");
  bool hasBias = isBiasNamed;
  if (!isBiasNamed) {
    TENON_READ(flag, args.getFlag("bias", false));
    hasBias = flag;
  }
  TENON_READ(stack, args.getInteger("stack", 1));
  TENON_READ(part, TensorPart::read(args, out, stack));
  TENON_READ(matrix, args.getWeight("weight", ".weight", part.getShape(getColumns(stream))));
  Value weight = part.takeMatrix(args, matrix);
  Value bias;
  if (hasBias) {
    TENON_READ(vector, isBiasNamed ? args.getWeight("bias", "", {part.rows})
                                   : args.getWeight("weight", ".bias", {part.rows}));
    bias = part.take(args, vector);
  }
  return LinearOp::create(args.getBuilder(), args.getLoc(), stream, weight, bias).getResult();
}

// rope: {heads: H, theta: T, fraction: 1, dim: D = fraction * head_dim, first: 0, style: half,
//        scaling: {type: ..., ...}}
FailureOr<Value> RopeOp::buildFromTemplate(TemplateArgs &args) {
  Value stream = args.getStream();
  TENON_READ(heads, args.getInteger("heads"));
  if (heads <= 0 || getColumns(stream) % heads)
    return args.error("heads", Twine(heads) + " heads do not divide " + Twine(getColumns(stream)) +
                                   " columns");
  TENON_READ(fraction, args.getNumber("fraction", 1));
  if (!(fraction >= 0 && fraction <= 1))
    return args.error("fraction", "must be from 0 to 1");
  int64_t width = getColumns(stream) / heads;
  TENON_READ(dim, args.getInteger("dim", int64_t(double(width) * fraction)));
  if (dim <= 0 || dim % 2 || dim > width)
    return args.error("dim", "must be even and at most the head's width, " + Twine(width) +
                                 ", got " + Twine(dim));
  TENON_READ(first, args.getInteger("first", 0));
  if (first < 0 || first > width - dim)
    return args.error("first", Twine(dim) + " elements from element " + Twine(first) +
                                   " on are not within a head of " + Twine(width));
  TENON_READ(theta, args.getNumber("theta"));
  if (!(theta > 0))
    return args.error("theta", "must be positive");
  TENON_READ(styleName, args.getString("style", "half"));
  std::optional<RopeStyle> style = symbolizeRopeStyle(styleName);
  if (!style)
    return args.error("style",
                      "unknown rotary style '" + styleName + "'; accepted: half, interleaved");
  TENON_READ(scaling, args.getMap("scaling"));
  OpBuilder &builder = args.getBuilder();
  auto frequencies =
      RopeFrequenciesOp::create(builder, args.getLoc(), dim, APFloat(theta), scaling);
  // Refuse an incomplete scaling here, where the file's line is known.
  if (failed(frequencies.verify()))
    return failure();
  // Longrope and dynamic scaling go by the length of each sequence.
  double original = 0, dynamic = 0;
  if (auto type = scaling ? scaling.getAs<StringAttr>("type") : StringAttr()) {
    if (type == "longrope" || type == "dynamic")
      original = scaling.getAs<FloatAttr>("original").getValueAsDouble();
    if (type == "dynamic")
      dynamic = scaling.getAs<FloatAttr>("factor").getValueAsDouble();
  }
  auto angles = RopeAnglesOp::create(builder, args.getLoc(), args.getBatch(), frequencies,
                                     APFloat(frequencies.getAngleFactor()), int64_t(original),
                                     APFloat(dynamic));
  if (failed(angles.verify()))
    return failure();
  return RopeOp::create(builder, args.getLoc(), stream.getType(), stream, angles, heads, *style,
                        first)
      .getResult();
}

// join_heads: {heads: H, lhs: [...], rhs: [...]}
FailureOr<Value> JoinHeadsOp::buildFromTemplate(TemplateArgs &args) {
  TENON_READ(heads, args.getInteger("heads"));
  TENON_READ(lhs, args.getBranch("lhs"));
  TENON_READ(rhs, args.getBranch("rhs"));
  for (Value side : {lhs, rhs})
    if (heads <= 0 || getColumns(side) % heads)
      return args.error("heads", Twine(heads) + " heads do not divide " + Twine(getColumns(side)) +
                                     " columns");
  return JoinHeadsOp::create(args.getBuilder(), args.getLoc(), lhs, rhs, heads).getResult();
}

// repeat_kv: {heads: H, times: N}
FailureOr<Value> RepeatKVOp::buildFromTemplate(TemplateArgs &args) {
  TENON_READ(heads, args.getInteger("heads"));
  TENON_READ(times, args.getInteger("times"));
  if (heads <= 0 || getColumns(args.getStream()) % heads)
    return args.error("heads", Twine(heads) + " heads do not divide " +
                                   Twine(getColumns(args.getStream())) + " columns");
  if (times <= 0)
    return args.error("times", "must be positive, got " + Twine(times));
  return RepeatKVOp::create(args.getBuilder(), args.getLoc(), args.getStream(), heads, times)
      .getResult();
}

namespace {
// A table of score biases and how attention reads it; without a table there is no bias.
struct ScoreBias {
  Value table;
  BiasIndex by = BiasIndex::distance;
  int64_t origin = 0;
};
} // namespace

// alibi: {length: N = no bias, by: distance, largest: 8, scale: 1, round: no}
static FailureOr<ScoreBias> getAlibi(TemplateArgs &args, int64_t heads) {
  TENON_READ(map, args.getMap("alibi"));
  ScoreBias bias;
  if (!map)
    return bias;
  double length = 0, largest = 8, scale = 1;
  bool rounded = false;
  for (NamedAttribute entry : map) {
    StringRef key = entry.getName();
    double *place = key == "length" ? &length : key == "largest" ? &largest : &scale;
    if (auto number = dyn_cast<FloatAttr>(entry.getValue());
        number && llvm::is_contained({"length", "largest", "scale"}, key)) {
      *place = number.getValueAsDouble();
      if (!(*place > 0) || (place == &length && (length > (1 << 24) || length != floor(length))))
        return args.error("alibi", "'" + key + "' is out of range");
      continue;
    }
    auto text = dyn_cast<StringAttr>(entry.getValue());
    std::optional<BiasIndex> by =
        text && key == "by" ? symbolizeBiasIndex(text.getValue()) : std::nullopt;
    if (by)
      bias.by = *by;
    else if (text && key == "round" && text == "bfloat16")
      rounded = true;
    else
      return args.error("alibi", "has no such '" + key +
                                     "'; accepted: numbers length, largest and scale, by: distance "
                                     "or key, round: bfloat16");
  }
  if (length == 0)
    return bias;
  bias.origin = bias.by == BiasIndex::distance ? int64_t(length) - 1 : 0;
  bias.table = AlibiOp::create(args.getBuilder(), args.getLoc(), heads, int64_t(length),
                               bias.origin, APFloat(largest), APFloat(scale), rounded);
  return bias;
}

// relative_bias: NAME = no bias, buckets: B, max_distance: M, bidirectional: false
static FailureOr<ScoreBias> getRelativeBias(TemplateArgs &args, int64_t heads) {
  TENON_READ(buckets, args.getInteger("buckets"));
  TENON_READ(distance, args.getInteger("max_distance"));
  TENON_READ(bidirectional, args.getFlag("bidirectional", false));
  if (distance < 1 || distance > (1 << 24))
    return args.error("max_distance", "is out of range, got " + Twine(distance));
  TENON_READ(weight, args.getWeight("relative_bias", ".weight", {buckets, heads}));
  auto table =
      RelativeBiasOp::create(args.getBuilder(), args.getLoc(), weight, distance, bidirectional);
  // Refuse odd numbers of buckets here, where the file's line is known.
  if (failed(table.verify()))
    return failure();
  return ScoreBias{table, BiasIndex::distance, distance};
}

static FailureOr<ScoreBias> getScoreBias(TemplateArgs &args, int64_t heads) {
  TENON_READ(alibi, getAlibi(args, heads));
  if (!args.has("relative_bias"))
    return alibi;
  if (alibi.table)
    return args.error("relative_bias", "cannot be added to alibi");
  return getRelativeBias(args, heads);
}

// attention: {heads: H, scale: S = head_dim^-0.5, window: W = none, softcap: C = none,
//             alibi: {...} or relative_bias: NAME, ..., sinks: NAME, causal: true,
//             over: stream or memory,
//             query: [...], key: [...], value: [...]}
FailureOr<Value> AttentionOp::buildFromTemplate(TemplateArgs &args) {
  TENON_READ(heads, args.getInteger("heads"));
  TENON_READ(over, args.getString("over", "stream"));
  bool isCross = over == "memory";
  if (!isCross && over != "stream")
    return args.error("over", "must be stream or memory, got '" + over + "'");
  Value source = isCross ? args.getMemory() : args.getStream();
  if (isCross && !source)
    return args.error("over", "there is no memory: the graph has no 'encoder' before this node");
  TENON_READ(causal, args.getFlag("causal", !isCross));
  if (isCross && causal)
    return args.error("causal", "attention over memory sees all of it");
  TENON_READ(query, args.getBranch("query"));
  TENON_READ(key, args.getBranch("key", source));
  TENON_READ(value, args.getBranch("value", source));
  if (heads <= 0 || getColumns(query) % heads)
    return args.error("heads", Twine(heads) + " heads do not divide " + Twine(getColumns(query)) +
                                   " query columns");
  if (key.getType() != query.getType())
    return args.error("", "query and key must be equally wide, got " + Twine(getColumns(query)) +
                              " and " + Twine(getColumns(key)) + "; repeat_kv widens keys");
  if (getColumns(value) % heads)
    return args.error("heads", Twine(heads) + " heads do not divide " + Twine(getColumns(value)) +
                                   " value columns");
  TENON_READ(scale,
             args.getNumber("scale", 1.0 / std::sqrt(double(getColumns(query)) / double(heads))));
  TENON_READ(window, args.getInteger("window", 0));
  if (window < 0 || (window == 0 && args.has("window")))
    return args.error("window", "must be positive, got " + Twine(window));
  if (window && !causal)
    return args.error("window", "needs causal attention");
  TENON_READ(softcap, args.getNumber("softcap", 0.0));
  if (softcap < 0 || (softcap == 0 && args.has("softcap")))
    return args.error("softcap", "must be positive");
  TENON_READ(bias, getScoreBias(args, heads));
  Value sinks;
  if (args.has("sinks")) {
    TENON_READ(vector, args.getWeight("sinks", "", {heads}));
    sinks = vector;
  }
  return AttentionOp::create(args.getBuilder(), args.getLoc(), query, key, value, args.getBatch(),
                             bias.table, sinks, heads, heads, APFloat(scale),
                             isCross ? KeyRows::memory : KeyRows::tokens, window, APFloat(softcap),
                             bias.by, bias.origin, /*bidirectional=*/!causal && !isCross)
      .getResult();
}

// activation: {kind: silu}
FailureOr<Value> ActivationOp::buildFromTemplate(TemplateArgs &args) {
  TENON_READ(name, args.getString("kind"));
  std::optional<ActivationKind> kind = symbolizeActivationKind(name);
  if (!kind)
    return args.error("kind", "unknown activation '" + name +
                                  "'; accepted: silu, gelu, gelu_tanh, quick_gelu, relu, sigmoid");
  return ActivationOp::create(args.getBuilder(), args.getLoc(), args.getStream().getType(), *kind,
                              args.getStream())
      .getResult();
}

// scale: {by: F}
FailureOr<Value> ScaleOp::buildFromTemplate(TemplateArgs &args) {
  TENON_READ(factor, args.getNumber("by"));
  return ScaleOp::create(args.getBuilder(), args.getLoc(), args.getStream(), APFloat(factor))
      .getResult();
}

// shift: {by: F}
FailureOr<Value> ShiftOp::buildFromTemplate(TemplateArgs &args) {
  TENON_READ(value, args.getNumber("by"));
  return ShiftOp::create(args.getBuilder(), args.getLoc(), args.getStream(), APFloat(value))
      .getResult();
}

// clamp: {low: none, high: none}
FailureOr<Value> ClampOp::buildFromTemplate(TemplateArgs &args) {
  TENON_READ(low, args.getNumber("low", -HUGE_VAL));
  TENON_READ(high, args.getNumber("high", HUGE_VAL));
  if (!(low <= high))
    return args.error("low", "exceeds the upper bound");
  return ClampOp::create(args.getBuilder(), args.getLoc(), args.getStream(), APFloat(low),
                         APFloat(high))
      .getResult();
}

// softcap: {at: C}
FailureOr<Value> SoftcapOp::buildFromTemplate(TemplateArgs &args) {
  TENON_READ(cap, args.getNumber("at"));
  if (!(cap > 0))
    return args.error("at", "must be positive");
  return SoftcapOp::create(args.getBuilder(), args.getLoc(), args.getStream(), APFloat(cap))
      .getResult();
}

// add, mul: {lhs: [...], rhs: [...]}; a missing branch is the stream itself.
template <typename Op> static FailureOr<Value> buildBinary(TemplateArgs &args) {
  constexpr StringLiteral keys[] = {"lhs", "rhs"};
  Value sides[] = {args.getStream(), args.getStream()};
  for (auto [side, key] : llvm::zip(sides, keys))
    if (args.has(key)) {
      TENON_READ(branch, args.getBranch(key));
      side = branch;
    }
  if (sides[0].getType() != sides[1].getType())
    return args.error("", "sides must be equally wide, got " + Twine(getColumns(sides[0])) +
                              " and " + Twine(getColumns(sides[1])));
  return Op::create(args.getBuilder(), args.getLoc(), sides[0].getType(), sides[0], sides[1])
      .getResult();
}

FailureOr<Value> AddOp::buildFromTemplate(TemplateArgs &args) { return buildBinary<AddOp>(args); }

FailureOr<Value> MulOp::buildFromTemplate(TemplateArgs &args) { return buildBinary<MulOp>(args); }

} // namespace tenon::llm
