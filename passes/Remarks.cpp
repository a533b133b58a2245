// See Remarks.h.
#include "passes/Remarks.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;

namespace tenon {

static remark::RemarkOpts makeOptions(StringRef name, StringRef pass, Operation *op) {
  // The function, or the program.
  Operation *parent = op->getParentOp();
  while (parent && !isa<SymbolOpInterface>(parent))
    parent = parent->getParentOp();
  auto symbol = dyn_cast_or_null<SymbolOpInterface>(parent);
  return remark::RemarkOpts::name(name).category(pass).function(
      symbol && symbol.getNameAttr() ? symbol.getName() : StringRef());
}

void emitMissed(Operation *op, StringRef pass, const Twine &why, StringRef what) {
  remark::missed(op->getLoc(), makeOptions(what, pass, op)) << why.str();
}

void emitPassed(Operation *op, StringRef pass, const Twine &what) {
  remark::passed(op->getLoc(), makeOptions("done", pass, op)) << what.str();
}

void emitFused(llm::FusedOp fused, StringRef pass) {
  std::string parts;
  for (Operation &op : fused.getBody().front().without_terminator())
    parts += (parts.empty() ? "" : ", ") + op.getName().stripDialect().str();
  remark::passed(fused.getLoc(), makeOptions("fused", pass, fused)) << parts;
}

namespace {

// The file's place, and "layer 3" where the frontend has said so.
std::pair<FileLineColLoc, StringRef> findPlace(Location location) {
  if (auto fused = dyn_cast<FusedLoc>(location))
    return findPlace(fused.getLocations().front());
  if (auto named = dyn_cast<NameLoc>(location)) {
    auto [place, inner] = findPlace(named.getChildLoc());
    return {place, named.getName()};
  }
  return {dyn_cast<FileLineColLoc>(location), ""};
}

// "layer 0", "layer 1", "layer 2", "layer 5" as "layer 0..2, 5".
std::string joinLayers(ArrayRef<std::string> layers) {
  std::string text;
  int64_t first = 0, last = -2;
  auto flush = [&] {
    if (last >= first)
      text += std::to_string(first) + (last > first ? ".." + std::to_string(last) : "");
  };
  StringRef word;
  for (StringRef layer : layers) {
    auto [name, number] = layer.rsplit(' ');
    int64_t index;
    if (number.getAsInteger(10, index) || (!word.empty() && word != name))
      return llvm::join(layers, ", ");
    if (word.empty())
      text = name.str() + " ";
    word = name;
    if (index != last + 1) {
      flush();
      text += last >= 0 ? ", " : "";
      first = index;
    }
    last = index;
  }
  flush();
  return text;
}

class Streamer : public remark::detail::MLIRRemarkStreamerBase {
public:
  explicit Streamer(raw_ostream &os) : os(os) {}

  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    auto [place, layer] = findPlace(remark.getLocation());
    std::string prefix, suffix;
    if (place)
      prefix = (place.getFilename().getValue() + ":" + Twine(place.getLine()) + ":" +
                Twine(place.getColumn()) + ": ")
                   .str();
    StringRef function = remark.getFunction();
    if (!function.starts_with("<"))
      suffix = ("@" + function + ": ").str();
    suffix += (remark.getCategoryName() + ": " + remark.getRemarkName() + ": " +
               remark.getArgs().front().val)
                  .str();
    std::vector<std::string> &layers = lines[{prefix, suffix}];
    if (!layer.empty())
      layers.push_back(layer.str());
  }

  void finalize() override {
    for (const auto &[line, layers] : lines)
      os << line.first << (layers.empty() ? "" : joinLayers(layers) + ": ") << line.second << '\n';
    os.flush();
    lines.clear();
  }

private:
  raw_ostream &os;
  llvm::MapVector<std::pair<std::string, std::string>, std::vector<std::string>,
                  std::map<std::pair<std::string, std::string>, unsigned>>
      lines;
};

} // namespace

void printRemarks(MLIRContext &context, ArrayRef<std::string> kinds, raw_ostream &os) {
  auto filter = [&](StringRef kind) {
    return llvm::is_contained(kinds, kind) ? std::optional<std::string>(".*") : std::nullopt;
  };
  remark::RemarkCategories categories;
  categories.missed = filter("missed");
  categories.passed = filter("passed");
  (void)remark::enableOptimizationRemarks(context, std::make_unique<Streamer>(os),
                                          std::make_unique<remark::RemarkEmittingPolicyAll>(),
                                          categories);
}

} // namespace tenon
