// tenon compare MODEL --golden F.safetensors [compile options]: names the first layer and operation
// whose values are not those of a dump.
//
//   1  the reference, with every value visible, against the dump     wrong: the description is
//   2  the backend, with the marked values visible, against the dump wrong: in this layer
//   3  the backend, with that layer's values visible, against 1      wrong: in this operation
//
// The dump has the inputs of `OUT logits`, and what it may be compared by: values that the
// architecture marks (logits, hidden, hidden_final), and outputs of modules under their names.
#include "codegen/Error.h"
#include "tools/Command.h"
#include "tools/compare/Dump.h"
#include "tools/compare/Points.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

namespace tenon {

namespace {

using compare::Dump;
using compare::Numbers;
using compare::Point;
using Values = llvm::ArrayRef<double>;

// A mark that counts, "hidden.3", is a part of one tensor, "hidden".
std::optional<Values> findMark(const Dump &dump, llvm::StringRef mark) {
  if (const Numbers *whole = dump.find(mark))
    return Values(whole->values);
  auto [name, number] = mark.rsplit('.');
  const Numbers *stacked = dump.find(name);
  int64_t index;
  if (!stacked || number.getAsInteger(10, index) || stacked->shape.empty() ||
      index >= stacked->shape[0])
    return std::nullopt;
  size_t size = stacked->values.size() / stacked->shape[0];
  return Values(stacked->values).slice(index * size, size);
}

// The first point whose values are wrong, and the last before it whose values are right.
struct Divergence {
  std::optional<size_t> before; // none: nothing before it could be compared
  size_t after;
  double errorBefore, errorAfter;
};

class Comparison {
public:
  Comparison(CompileArguments &arguments, std::optional<double> tolerance)
      : arguments(arguments), tolerance(tolerance) {}

  llvm::Error run(const std::string &path) {
    llvm::Expected<Dump> read = Dump::read(path);
    if (!read)
      return read.takeError();
    golden = std::move(*read);
    if (!golden.find("input_ids"))
      return refused(path + ": 'input_ids' is missing; accepted: the inputs of `logits`, with "
                            "hidden states, logits or outputs of modules");

    if (llvm::Error error = arguments.model.resolve().takeError())
      return error;
    const CompileOptions options = arguments.options;
    arguments.options.disabledPasses = arguments.listOptionalPasses();
    arguments.options.target = "reference";
    arguments.options.precision = "f32";
    arguments.options.cacheType = "";
    llvm::Expected<Dump> reference = compute(0, SIZE_MAX);
    if (!reference)
      return reference.takeError();
    auto wanted = [&](size_t i) { return findGolden(i); };
    llvm::Expected<std::optional<Divergence>> wrong =
        findDivergence("reference f32", *reference, wanted, tolerance.value_or(1e-3));
    if (!wrong)
      return wrong.takeError();
    if (*wrong)
      return report("reference f32", path, **wrong);
    if (options.target == "reference")
      return llvm::Error::success();

    arguments.options = options;
    const std::string what = options.target + " " + options.precision;
    const double allowed = tolerance.value_or(options.precision == "f32" ? 1e-3 : 0.1);
    llvm::Expected<Dump> marked = compute(0, 0);
    if (!marked)
      return marked.takeError();
    wrong = findDivergence(what, *marked, wanted, allowed);
    if (!wrong)
      return wrong.takeError();
    if (!*wrong)
      return llvm::Error::success();

    // Within the layer the reference stands in for the dump.
    Divergence layer = **wrong;
    size_t first = layer.before ? *layer.before + 1 : 0;
    llvm::Expected<Dump> closer = compute(first, layer.after);
    if (!closer)
      return closer.takeError();
    auto byReference = [&](size_t i) { return findValue(*reference, i); };
    wrong = findDivergence(what + ", seen one by one, against the reference", *closer, byReference,
                           allowed);
    if (!wrong)
      return wrong.takeError();
    if (*wrong)
      return report(what, "the reference", **wrong);
    return refused(what + " differs from " + path + " at " + points[layer.after].mark + " (error " +
                   print(layer.errorAfter) +
                   "), but not when every operation of it can be seen: a fusion is wrong; `tenon "
                   "bisect` names the pass");
  }

private:
  static std::string print(double error) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%.1e", error);
    return text;
  }

  // Compiles with points [first, last) and all marks visible, and runs it on the dump's inputs.
  llvm::Expected<Dump> compute(size_t first, size_t last) {
    llvm::SmallString<128> program, input, output;
    if (llvm::sys::fs::createTemporaryFile("tenon-compare", "", program) ||
        llvm::sys::fs::createTemporaryFile("tenon-compare", "in.safetensors", input) ||
        llvm::sys::fs::createTemporaryFile("tenon-compare", "out.safetensors", output))
      return refused("compare: cannot make a temporary file");
    llvm::FileRemover removeProgram(program), removeInput(input), removeOutput(output);
    llvm::SmallVector<llvm::StringRef> inputs;
    for (llvm::StringRef name :
         {"input_ids", "attention_mask", "token_type_ids", "decoder_input_ids"})
      if (golden.find(name))
        inputs.push_back(name);
    if (llvm::Error error = compare::writeIntegers(input, golden, inputs))
      return error;

    arguments.model.options.emitHidden = true;
    arguments.onLoaded = [&](mlir::ModuleOp module) {
      points = compare::listPoints(module);
      compare::reveal(module, first, last);
    };
    if (llvm::Error error = arguments.compile(program.str().str(), /*isQuiet=*/true))
      return error;
    llvm::StringRef command[] = {program,    "logits", "--input", input,
                                 "--output", output,   "--hidden"};
    // What the executable refuses, it says itself.
    if (llvm::sys::ExecuteAndWait(program, command))
      return refused("compare: the executable failed on the inputs of " + golden.path);
    return Dump::read(output);
  }

  // What the dump has for a point.
  std::optional<Values> findGolden(size_t i) const {
    const Point &point = points[i];
    if (!point.mark.empty())
      if (std::optional<Values> values = findMark(golden, getName(point, point.mark)))
        return values;
    const Numbers *module = point.weight.empty() ? nullptr : golden.find(point.weight);
    return module ? std::optional<Values>(module->values) : std::nullopt;
  }

  // What an executable gave for it.
  std::optional<Values> findValue(const Dump &values, size_t i) const {
    const Point &point = points[i];
    return findMark(values,
                    getName(point, point.mark.empty() ? "op" + std::to_string(i) : point.mark));
  }

  // Both sides of a model with an encoder have their own; there is one "logits".
  static std::string getName(const Point &point, const std::string &name) {
    return name == "logits" ? name : point.side + name;
  }

  // Compares in order up to the first difference, and prints what it sees.
  llvm::Expected<std::optional<Divergence>>
  findDivergence(llvm::StringRef what, const Dump &values,
                 llvm::function_ref<std::optional<Values>(size_t)> getWanted, double allowed) {
    llvm::outs() << what << '\n';
    std::optional<size_t> last;
    double lastError = 0;
    for (size_t i = 0; i < points.size(); ++i) {
      std::optional<Values> given = findValue(values, i), wanted = getWanted(i);
      if (!given || !wanted)
        continue;
      if (given->size() != wanted->size())
        return refused(golden.path + ": '" +
                       (points[i].mark.empty() ? points[i].weight : points[i].mark) + "' has " +
                       llvm::Twine(wanted->size()) + " values; accepted: " +
                       llvm::Twine(given->size()) + ", as the model gives for these inputs");
      double error = compare::getError(*given, *wanted);
      bool isWrong = !(error <= allowed);
      llvm::outs() << llvm::format("  %8.1e  ", error)
                   << (points[i].mark.empty() ? "  " + points[i].describe() : points[i].mark)
                   << (isWrong ? "  <- the first that differs" : "") << '\n';
      if (isWrong) {
        llvm::outs().flush(); // before the error
        return Divergence{last, i, lastError, error};
      }
      last = i;
      lastError = error;
    }
    if (!last)
      return refused(golden.path + ": nothing in it can be compared; accepted: logits, hidden, "
                                   "hidden_final, or outputs of modules under their names");
    llvm::outs() << "  all within " << print(allowed) << '\n';
    return std::nullopt;
  }

  // One line: where, how much, and which operations may be to blame.
  llvm::Error report(llvm::StringRef what, llvm::StringRef against, const Divergence &divergence) {
    size_t first = divergence.before ? *divergence.before + 1 : 0;
    std::vector<std::string> suspects;
    for (size_t i = first; i <= divergence.after; ++i)
      suspects.push_back(points[i].describe());
    auto name = [&](size_t i) {
      return points[i].mark.empty() ? points[i].describe() : points[i].mark;
    };
    std::string text =
        (what + " differs from " + against + " first at " + name(divergence.after)).str();
    text += " (" + getLayer(divergence.after) + "), error " + print(divergence.errorAfter);
    if (divergence.before)
      text += " after " + print(divergence.errorBefore) + " at " + name(*divergence.before);
    text += suspects.size() == 1 ? "; the operation is " : "; the operation is one of ";
    return refused(text + llvm::join(suspects, ", "));
  }

  // "layer 3": between the marks hidden.3 and hidden.4.
  std::string getLayer(size_t i) const {
    for (; i < points.size(); ++i) {
      auto [name, number] = llvm::StringRef(points[i].mark).rsplit('.');
      int64_t index;
      if (!number.empty() && !number.getAsInteger(10, index))
        return index ? "layer " + std::to_string(index - 1) : "before the first layer";
    }
    return "behind the last layer";
  }

  CompileArguments &arguments;
  std::optional<double> tolerance;
  Dump golden;
  std::vector<Point> points;
};

} // namespace

Action addCompare(CLI::App &app) {
  auto arguments = std::make_shared<CompileArguments>();
  auto path = std::make_shared<std::string>();
  auto tolerance = std::make_shared<double>(0);
  arguments->add(app);
  app.add_option("--golden", *path, "safetensors with inputs and what they lead to")
      ->required()
      ->type_name("FILE");
  CLI::Option *given =
      app.add_option("--tolerance", *tolerance,
                     "largest difference, in units of max(1, root mean square); default: 1e-3 in "
                     "f32, 0.1 in other precisions")
          ->check(CLI::PositiveNumber);
  return [=]() -> llvm::Error {
    return Comparison(*arguments, *given ? std::optional(*tolerance) : std::nullopt).run(*path);
  };
}

} // namespace tenon
