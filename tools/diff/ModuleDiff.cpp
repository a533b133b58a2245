// See ModuleDiff.h.
#include "tools/diff/ModuleDiff.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/DebugStringHelper.h"
#include "tools/diff/UnitDiff.h"
#include "tools/graph/Units.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Unicode.h"

using namespace mlir;
using namespace tenon::graph;

namespace tenon::diff {

namespace {

class ModuleDiff {
public:
  ModuleDiff(ModuleOp before, ModuleOp after, llvm::raw_ostream &out)
      : before(before), after(after), out(out) {}

  llvm::Expected<bool> run() {
    compareAttributes();
    for (const auto &[from, to] : pairFunctions()) {
      if (from.empty() || to.empty()) {
        out << (from.empty() ? "+ @" + to : "- @" + from) << '\n';
        differs = true;
        continue;
      }
      if (llvm::Error error = compareFunctions(from, to))
        return error;
    }
    return differs;
  }

private:
  void compareAttributes() {
    std::map<std::string, std::pair<std::string, std::string>> attributes;
    for (NamedAttribute attribute : before->getAttrs())
      attributes[attribute.getName().str()].first = debugString(attribute.getValue());
    for (NamedAttribute attribute : after->getAttrs())
      attributes[attribute.getName().str()].second = debugString(attribute.getValue());
    for (const auto &[name, values] : attributes)
      if (values.first != values.second) {
        out << "~ module " << name << ": " << (values.first.empty() ? "(none)" : values.first)
            << " → " << (values.second.empty() ? "(none)" : values.second) << '\n';
        differs = true;
      }
  }

  // By name; what is new comes from the one that is gone, as @decode does from @main.
  std::vector<std::pair<std::string, std::string>> pairFunctions() {
    std::vector<std::string> from = getFunctionNames(before), to = getFunctionNames(after);
    std::vector<std::string> gone;
    for (const std::string &name : from)
      if (!llvm::is_contained(to, name))
        gone.push_back(name);
    std::vector<std::pair<std::string, std::string>> pairs;
    bool isUsed = false;
    for (const std::string &name : to) {
      if (llvm::is_contained(from, name))
        pairs.push_back({name, name});
      else
        pairs.push_back({gone.size() == 1 ? gone.front() : "", name});
      isUsed |= !gone.empty() && pairs.back().first == gone.front();
    }
    for (const std::string &name : gone)
      if (!isUsed)
        pairs.push_back({name, ""});
    return pairs;
  }

  //===--------------------------------------------------------------------===//
  // Functions
  //===--------------------------------------------------------------------===//

  llvm::Error compareFunctions(StringRef from, StringRef to) {
    llvm::Expected<Graph> a = buildGraph(before, from);
    if (!a)
      return a.takeError();
    llvm::Expected<Graph> b = buildGraph(after, to);
    if (!b)
      return b.takeError();
    std::string text;
    llvm::raw_string_ostream body(text);
    compareTypes(from, to, body);
    printStretches(*a, *b, body);
    printCounts(*a, *b, body);
    if (text.empty() && from == to)
      return llvm::Error::success();
    differs = true;
    out << "@" << from << (from == to ? "" : " → @" + to.str()) << '\n' << text;
    return llvm::Error::success();
  }

  void compareTypes(StringRef from, StringRef to, llvm::raw_ostream &body) {
    auto a = before.lookupSymbol<func::FuncOp>(from), b = after.lookupSymbol<func::FuncOp>(to);
    if (!a || !b)
      return;
    ArrayRef<Type> was = a.getArgumentTypes(), is = b.getArgumentTypes();
    for (size_t i = 0; i < std::max(was.size(), is.size()); ++i) {
      // Of two contexts, so that only the texts can be compared.
      std::string x = i < was.size() ? debugString(was[i]) : "(none)",
                  y = i < is.size() ? debugString(is[i]) : "(none)";
      if (x != y)
        body << "  ~ argument " << i << ": " << x << " → " << y << '\n';
    }
  }

  // Pairs of units that differ alike are told once.
  void printStretches(const Graph &a, const Graph &b, llvm::raw_ostream &body) {
    for (const std::string &line : compareNodes(getNodes(a, -1), getNodes(b, -1)))
      body << "  " << line << '\n';
    std::vector<std::pair<int, int>> pairs = alignUnits(a, b);
    std::vector<std::string> reports;
    for (auto [from, to] : pairs) {
      auto lines =
          compareNodes(from < 0 ? Nodes() : getNodes(a, from), to < 0 ? Nodes() : getNodes(b, to));
      if (lines.empty() && from >= 0 && to >= 0 && a.getSignature(from) != b.getSignature(to))
        lines.push_back("~ the same operations, connected differently");
      reports.push_back(llvm::join(lines, "\n"));
    }
    printFolded(fold(reports), reports, 2, body);
  }

  static bool isEmpty(const Stretch &stretch, ArrayRef<std::string> reports) {
    return llvm::all_of(reports.slice(stretch.first, stretch.length),
                        [](const std::string &report) { return report.empty(); });
  }

  static void printFolded(ArrayRef<Stretch> stretches, ArrayRef<std::string> reports, int indent,
                          llvm::raw_ostream &body) {
    for (const Stretch &stretch : stretches) {
      if (isEmpty(stretch, reports))
        continue;
      int inner = indent;
      if (stretch.count > 1) {
        body.indent(indent) << "in each of " << stretch.count << " layers:\n";
        inner += 2;
      }
      if (!stretch.inner.empty()) {
        printFolded(stretch.inner, reports, inner, body);
        continue;
      }
      for (const std::string &report : reports.slice(stretch.first, stretch.length))
        for (StringRef rest = report; !rest.empty();) {
          StringRef line;
          std::tie(line, rest) = rest.split('\n');
          body.indent(inner) << line << '\n';
        }
    }
  }

  static void printCounts(const Graph &a, const Graph &b, llvm::raw_ostream &body) {
    std::map<std::string, std::pair<int, int>> counts;
    for (const Node &node : a.nodes)
      ++counts[StringRef(getKind(node)).split(" {").first.str()].first;
    for (const Node &node : b.nodes)
      ++counts[StringRef(getKind(node)).split(" {").first.str()].second;
    bool isFirst = true;
    auto print = [&](StringRef name, int from, int to) {
      if (std::exchange(isFirst, false))
        body << llvm::formatv("  {0,-34}{1,8}{2,8}\n", "operations", "before", "after");
      body << llvm::formatv("    {0,-32}{1,8}{2,8}\n", name, from, to);
    };
    for (const auto &[name, count] : counts)
      if (count.first != count.second)
        print(name, count.first, count.second);
    if (a.nodes.size() != b.nodes.size())
      print("total", a.nodes.size(), b.nodes.size());
  }

  ModuleOp before, after;
  llvm::raw_ostream &out;
  bool differs = false;
};

} // namespace

llvm::Expected<bool> compareModules(ModuleOp before, ModuleOp after, llvm::raw_ostream &out) {
  return ModuleDiff(before, after, out).run();
}

} // namespace tenon::diff
