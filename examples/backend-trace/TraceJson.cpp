// The schedule as JSON:
//
//   {"model": "tiny",
//    "weights": [{"name": "w0", "offset": 0, "bytes": 12288}],
//    "programs": {"decode": {"arena": {"token": 1024, "scored": 384}, "stages": [
//      {"kernel": "embedding", "slice": "rows", "inputs": [...], "outputs": [...]},
//      {"barrier": true}]}}}
#include "Trace.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace tenon;

namespace {

// {"weight": "w0"}, {"cache": 0} or {"buffer": "tokens", "at": 512, "from": 64, "columns": 32}.
void writeOperand(llvm::json::OStream &json, Value operand) {
  json.object([&] {
    if (auto weight = operand.getDefiningOp<sched::ConstantOp>())
      return json.attribute("weight", weight.getWeight());
    if (auto cache = operand.getDefiningOp<sched::CacheOp>())
      return json.attribute("cache", int64_t(cache.getLayer()));
    int64_t begin = 0;
    Value root = operand;
    while (auto view = root.getDefiningOp<sched::ViewOp>()) {
      begin += view.getBegin();
      root = view.getSource();
    }
    json.attribute("buffer", sched::stringifySpace(sched::getSpace(operand)));
    if (auto buffer = root.getDefiningOp<sched::BufferOp>(); buffer && buffer.getOffset())
      json.attribute("at", int64_t(*buffer.getOffset()));
    if (begin)
      json.attribute("from", begin);
    json.attribute("columns", sched::getColumns(cast<MemRefType>(operand.getType())));
  });
}

void writeStage(llvm::json::OStream &json, sched::StageOp stage) {
  json.object([&] {
    json.attribute("kernel", stage.getKernel());
    json.attribute("slice", sched::stringifySlice(stage.getSlice()));
    auto writeList = [&](StringRef name, ValueRange values) {
      json.attributeArray(name, [&] {
        for (Value value : values)
          writeOperand(json, value);
      });
    };
    writeList("inputs", stage.getInputs());
    writeList("outputs", stage.getOutputs());
  });
}

void writeProgram(llvm::json::OStream &json, sched::ProgramOp program) {
  json.object([&] {
    json.attributeObject("arena", [&] {
      json.attribute("token", int64_t(program.getTokenBytes()));
      json.attribute("scored", int64_t(program.getScoredBytes()));
    });
    json.attributeArray("stages", [&] {
      program.walk([&](Operation *op) {
        if (auto stage = dyn_cast<sched::StageOp>(op))
          writeStage(json, stage);
        else if (isa<sched::BarrierOp>(op))
          json.object([&] { json.attribute("barrier", true); });
      });
    });
  });
}

} // namespace

std::string trace::toJson(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    if (auto name = module->getAttrOfType<StringAttr>("llm.model"))
      json.attribute("model", name.getValue());
    json.attributeArray("weights", [&] {
      for (auto weight : module.getOps<sched::WeightOp>())
        json.object([&] {
          json.attribute("name", weight.getSymName());
          json.attribute("offset", int64_t(weight.getOffset()));
          json.attribute("bytes", int64_t(weight.getBytes()));
        });
    });
    json.attributeObject("programs", [&] {
      for (auto program : module.getOps<sched::ProgramOp>()) {
        json.attributeBegin(program.getSymName());
        writeProgram(json, program);
        json.attributeEnd();
      }
    });
  });
  return text + "\n";
}
